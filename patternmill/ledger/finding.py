"""Finds the run that a person means: by its ID, the beginning of it, or as the latest of a catalog."""

from __future__ import annotations

from patternmill.errors import ConfigurationError
from patternmill.ledger.ledger import Ledger
from patternmill.ledger.records import RunRecord
from patternmill.states import Outcome

LATEST = "latest"
_MOST_NAMED = 5


def find_run(
    ledger: Ledger, name: str, *, catalog: str | None = None, environment: str | None = None
) -> RunRecord:
    """The run called `name`: its ID, a beginning that no other has, or `latest`. Raises ConfigurationError."""
    if name == LATEST:
        return latest_run(ledger, catalog=catalog, environment=environment)
    runs = ledger.runs(environment=environment, catalog=catalog)
    found = [run for run in runs if run.run_id == name] or [
        run for run in runs if run.run_id.startswith(name)
    ]
    if not name or not found:
        raise ConfigurationError(
            f"There is no run {name!r} in this ledger.", remedy="See `patternmill status`."
        )
    if len(found) > 1:
        raise ConfigurationError(
            f"{len(found)} runs begin with {name!r}: {_named([run.run_id for run in found])}.",
            remedy="Write more of the ID.",
        )
    return found[0]


def latest_run(ledger: Ledger, *, catalog: str | None = None, environment: str | None = None) -> RunRecord:
    """The latest run that held its catalog. Raises ConfigurationError when there is none, or several catalogs."""
    runs = [run for run in ledger.runs(environment=environment, catalog=catalog) if held_its_catalog(run)]
    scopes = sorted({(run.catalog, run.environment) for run in runs})
    if not runs:
        raise ConfigurationError(
            f"There is no run{f' of {catalog!r}' if catalog else ''} in this ledger.",
            remedy="See `patternmill status`.",
        )
    if len(scopes) > 1:
        named = _named([f"{name} ({its_environment})" for name, its_environment in scopes])
        raise ConfigurationError(
            f"Which catalog is meant: {named}?", remedy="Name it with --catalog and --environment."
        )
    return runs[0]


def held_its_catalog(run: RunRecord) -> bool:
    """False for one that found its catalog held by another: it has no rows and wrote no results."""
    return run.outcome is not Outcome.SKIPPED_OVERLAP


def _named(names: list[str]) -> str:
    return ", ".join(names[:_MOST_NAMED]) + (" …" if len(names) > _MOST_NAMED else "")
