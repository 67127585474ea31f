"""The service that a command asks, or an embedded studio in its place; and what it offers now."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from socket import socket
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import SecretStr

from cli.terminal import steps
from patternmill.errors import ConfigurationError
from patternmill.files import fresh_secret
from patternmill.profiles import EmbeddedProfile
from patternmill.settings import Settings
from prefect_host.shared_process import SharedProcess, bound_socket

if TYPE_CHECKING:
    from patternmill.planning.extras import Extras
    from patternmill.planning.offer import Offer
    from patternmill.runs.spec import RunSpec
    from patternmill.service.studio_api import StudioApi
    from patternmill.tables.catalog import Catalog

T = TypeVar("T")


class EmbeddedStudio(SharedProcess):
    """Uses the studio of a home, which the first command starts and the last one ends.

    Its jobs, its pictures and its key, a new one at each start, are under `<home>/studio`.
    """

    title = "The embedded studio"
    remedy = "set PATTERNMILL_STUDIO_URL to a service."

    #: The address, known once it is ready. It ends with the version segment, as PATTERNMILL_STUDIO_URL does.
    url: str
    key: SecretStr

    def __init__(
        self, home: Path, *, environment: str = "staging", pace: str = "quick", port: int = 0
    ) -> None:
        """Take the pace and the port that the studio has if this command starts it."""
        super().__init__(home.resolve() / "studio")
        self._environment, self._pace, self._port = environment, pace, port
        self._ready_file, self._key_file = self.directory / "running.json", self.directory / "api-key"

    def is_ready(self) -> bool:
        """Return whether it has said where it answers."""
        return self._ready_file.exists()

    def wait_ready(self) -> None:
        """Wait until it answers. Raises ConfigurationError, too, when the running one is for another environment."""
        super().wait_ready()
        running = json.loads(self._ready_file.read_text())
        if running["environment"] != self._environment:
            raise ConfigurationError(
                f"An embedded studio for {running['environment']} runs on this home, and {self._environment} is "
                "requested.",
                remedy="Wait for the command that uses it, or set another PATTERNMILL_HOME.",
            )
        self.url, self.key = str(running["base_url"]), SecretStr(self._key_file.read_text().strip())

    def prepared(self) -> tuple[socket, Sequence[str], Mapping[str, str]]:
        bound = bound_socket(self._port)
        self._ready_file.unlink(missing_ok=True)
        fresh_secret(self._key_file, "studio_")
        files = ["--home", self.directory, "--key-file", self._key_file, "--ready-file", self._ready_file]
        options = ["--fd", 0, *files, "--pace", self._pace, "--environment", self._environment]
        return bound, ["studio", *map(str, options)], {}


@contextmanager
def available_service(settings: Settings) -> Iterator[Settings]:
    """Yield the settings with a service: the one that they name, or an embedded studio while the context lasts."""
    if settings.studio_url is not None:
        yield settings
        return
    steps.show("Starting the embedded studio …")
    with EmbeddedStudio(settings.home, environment=settings.environment) as studio:
        yield settings.at(EmbeddedProfile(url=studio.url, key=studio.key))


def ask_service(settings: Settings, ask: Callable[[StudioApi], Coroutine[Any, Any, T]]) -> T:
    """Return the answer of the service, or of an embedded studio that is started for this question."""
    from patternmill.service.studio_api import StudioApi

    async def answer(settings: Settings) -> T:
        async with StudioApi.from_settings(settings) as api:
            return await ask(api)

    with available_service(settings) as available:
        return asyncio.run(answer(available))


def offer_and_extras(spec: RunSpec, file: Catalog) -> tuple[Offer, Extras]:
    """Return what an import would check a sheet against now; offers that the ledger remembers count."""
    from patternmill.planning.extras import Extras
    from patternmill.planning.offer import Category, Offer
    from patternmill.runs.extras import read_extras, read_pictures

    offer = offer_of(spec.settings)
    if spec.settings.studio_url is None:
        from studio.models import MODELS

        # The embedded studio has every operation.
        models = Offer(tuple(Category(model.model_id, model.name) for model in MODELS), note=None)
        references = file.texts_in(file.columns.named.get("reference"))
        return offer, Extras(models, read_pictures(spec, references))
    return offer, ask_service(spec.settings, lambda api: read_extras(api, spec, file))


def offer_of(settings: Settings) -> Offer:
    """Return the categories with their options; those of the embedded studio without starting it.

    Raises ServiceStopped when the service does not answer and no offer is remembered.
    """
    if settings.studio_url is None:
        from patternmill.service import offer_shapes
        from studio.offer import categories_get, categories_list

        page = offer_shapes.read_page(categories_list(settings.environment))
        assert page is not None, "the embedded studio's own answer can be read"
        details = {
            category.id: categories_get(settings.environment, category.id) for category in page.categories
        }
        return offer_shapes.offer_of(page.categories, details)
    from patternmill.runs.input import current_offer
    from patternmill.runs.safeguards import refuse_other_service

    refuse_other_service(settings)
    _, offer = ask_service(settings, lambda api: current_offer(api, settings))
    return offer
