"""What a person or a schedule asks for, and what keeps it from being bought by mistake."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from patternmill.catalog.rows import Row
from patternmill.engine.options import RunOptions
from patternmill.errors import ConfigurationError
from patternmill.identifiers import RunId
from patternmill.ledger.ledger import Ledger, has_ledger, open_ledger
from patternmill.ledger.reports.run_lookup import AskedService, asked_services
from patternmill.planning.items import Scope
from patternmill.planning.plan import Plan
from patternmill.runs.origin import Origin
from patternmill.runs.refresh_changes import RefreshTerms
from patternmill.runs.row_selection import Selection
from patternmill.settings import PRODUCTION, Settings, other_environment
from patternmill.text import plural


@dataclass(frozen=True)
class RunSpec:
    """What a person or a schedule asks for."""

    source: Path
    catalog: str
    settings: Settings
    options: RunOptions
    encoding: str | None = None
    #: Where the results go; None: results/<catalog>/<run>/.
    out: Path | None = None
    edition: str | None = None
    #: False when the catalog is only taken from the file's name.
    catalog_named: bool = True
    #: False when environment and edition are only what is set, or nothing: nobody named them for this file.
    environment_named: bool = True
    edition_named: bool = True
    #: The run whose results file the source is, where its manifest lies beside it.
    origin: Origin | None = None
    retry: Callable[[Row], bool] = field(default=lambda row: False)
    #: Only these rows are worked on; the others stand as they are.
    only: Callable[[Row], bool] = field(default=lambda row: True)
    #: The rows of an earlier run that this one takes up again.
    taken_up: Selection | None = None
    #: Into how many parts, for as many processes; None: this one drives all rows.
    spread: int | None = None
    #: A deployment started it: who did may not see this machine's files, so that no message quotes them.
    by_deployment: bool = False
    #: The source is the whole catalog: what it has no longer is retired.
    refresh: RefreshTerms | None = None

    @property
    def named_source(self) -> str:
        """The input as it is recorded: as the person named it, without secrets."""
        if self.taken_up is not None:
            return self.taken_up.source
        return self.refresh.shown if self.refresh is not None else str(self.source)

    @property
    def scope(self) -> Scope:
        return Scope(self.settings.environment, self.catalog)

    def out_of(self, run_id: RunId) -> Path:
        return self.out or Path("results") / self.catalog / run_id


def require_allowed_path(path: Path, settings: Settings) -> None:
    """Raise ConfigurationError when a deployment's run may not read or write there, wherever links lead."""
    allowed = [settings.home, *(settings.source_folders if settings.source_folders is not None else [Path()])]
    if any(path.resolve().is_relative_to(folder.resolve()) for folder in allowed):
        return
    raise ConfigurationError(
        f"{path} is outside of the folders that a deployment's runs may use.",
        code="folder_not_allowed",
        remedy="Name a file below the worker's folder, or add its folder to PATTERNMILL_SOURCE_FOLDERS (JSON list)"
        " where the worker is started.",
    )


def refuse_other_service(ledger: Ledger, settings: Settings) -> None:
    """Raise ConfigurationError when an environment's products are at another service than the one that would be asked.

    What is in the ledger of an environment was made by the service of its last run that asked for anything.
    """
    if settings.embedded or settings.studio_url is None:
        return
    asked, here = asked_services(ledger), settings.service_at(settings.studio_url)
    own = next((run for run in asked if run.environment == settings.environment), None)
    if own is not None and settings.service_at(own.url) == here:
        return
    for run in asked:
        if run.environment != settings.environment and settings.service_at(run.url) == here:
            raise other_environment(settings.studio_url, run.environment, settings.environment)
    if own is not None:
        raise _other_service(own, settings.studio_url)


def refuse_known_other_service(settings: Settings) -> None:
    """The same where there is a ledger; none is made."""
    if has_ledger(settings):
        with open_ledger(settings) as ledger:
            refuse_other_service(ledger, settings)


def _other_service(asked: AskedService, url: str) -> ConfigurationError:
    both = json.dumps([asked.url, url])
    return ConfigurationError(
        f"The environment {asked.environment!r} has asked {asked.url} so far (run {asked.run_id}), and {url} is named.",
        code="other_service",
        remedy=f"Name that address, or the environment of this one (--environment). If it is the same service, which "
        f"has moved: PATTERNMILL_SAME_SERVICE='{both}'. Nothing was asked for.",
    )


def require_confirmation(spec: RunSpec, plan: Plan) -> None:
    """Raise ConfigurationError when much would be bought in production and nobody has said that it is meant.

    Not to be asked about a plan that a person has approved.
    """
    settings, items = spec.settings, sum(plan.purchases())
    if settings.environment != PRODUCTION or items <= settings.confirm_above or settings.confirms(PRODUCTION):
        return
    raise ConfigurationError(
        f"{plural(items, 'item')} would be bought in production; more than {settings.confirm_above:,} have to be "
        "confirmed.",
        code="unconfirmed",
        remedy="Look at --plan-only, then add `--confirm production`. Nothing was bought.",
    )
