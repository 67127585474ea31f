"""The service that a command asks: the one of the settings, or an embedded studio for as long as it is asked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from cli.terminal import steps
from patternmill.profiles import EmbeddedProfile
from patternmill.settings import Settings

if TYPE_CHECKING:
    from patternmill.service.studio_api import StudioApi

T = TypeVar("T")


@contextmanager
def available_service(settings: Settings) -> Iterator[Settings]:
    """The settings with a service: the one they name, or an embedded studio while the context lasts."""
    if settings.studio_url is not None:
        yield settings
        return
    from cli.embedded_studio import EmbeddedStudio

    steps.show("Starting the embedded studio …")
    with EmbeddedStudio(settings.home, environment=settings.environment) as studio:
        yield settings.at(EmbeddedProfile(url=studio.url, key=studio.key))


def ask_service(settings: Settings, ask: Callable[[StudioApi], Coroutine[Any, Any, T]]) -> T:
    """The answer of the service, or of an embedded studio that lives as long as the question."""
    from patternmill.service.studio_api import StudioApi

    async def asked(settings: Settings) -> T:
        async with StudioApi.from_settings(settings) as api:
            return await ask(api)

    with available_service(settings) as available:
        return asyncio.run(asked(available))
