"""Finds runs: the one that a person names, the latest of a catalog, and those that asked a service for anything."""

from __future__ import annotations

from collections.abc import Iterator

from patternmill.errors import ConfigurationError, SeveralCatalogs
from patternmill.ledger.ledger import Ledger
from patternmill.ledger.records import RunRecord
from patternmill.states import Outcome

LATEST = "latest"
_MOST_NAMED = 5


def find_run(
    ledger: Ledger, name: str, *, catalog: str | None = None, environment: str | None = None
) -> RunRecord:
    """Return the run called `name`: its ID, a unique beginning of it, or `latest`. Raises ConfigurationError."""
    if name == LATEST:
        return latest_run(ledger, catalog=catalog, environment=environment)
    runs = ledger.runs.find(environment=environment, catalog=catalog)
    matches = [run for run in runs if run.run_id.startswith(name)] if name else []
    matches = [run for run in matches if run.run_id == name] or matches
    if not matches:
        raise _no_run(f"There is no run {name!r} in this ledger.")
    if len(matches) > 1:
        named = ", ".join(run.run_id for run in matches[:_MOST_NAMED])
        more = " …" if len(matches) > _MOST_NAMED else ""
        raise ConfigurationError(
            f"{len(matches)} runs begin with {name!r}: {named}{more}.", remedy="Write more of the ID."
        )
    return matches[0]


def latest_run(ledger: Ledger, *, catalog: str | None = None, environment: str | None = None) -> RunRecord:
    """Return the latest run that had its catalog's lease. Raises ConfigurationError: none, or several catalogs."""
    runs = list(runs_with_lease(ledger, catalog, environment))
    scopes = sorted({(run.catalog, run.environment) for run in runs})
    if not runs:
        raise _no_run(f"There is no run{f' of {catalog!r}' if catalog else ''} in this ledger.")
    if len(scopes) > 1:
        raise SeveralCatalogs(scopes)
    return runs[0]


def runs_with_lease(
    ledger: Ledger, catalog: str | None = None, environment: str | None = None
) -> Iterator[RunRecord]:
    """Return the runs that had the lease of their catalog, the newest first."""
    return filter(had_lease, ledger.runs.find(catalog=catalog, environment=environment))


def had_lease(run: RunRecord) -> bool:
    """Return False for a run that found its catalog's lease taken: it has no rows and wrote no results."""
    return run.outcome is not Outcome.SKIPPED_OVERLAP


def asked_services(ledger: Ledger) -> list[RunRecord]:
    """Return the runs with a request that a real service did not refuse, the newest first.

    A run whose every request was refused, or never left, does not show where the products of its environment are.
    """
    rows = ledger.database.rows(
        "SELECT DISTINCT run_id FROM attempts WHERE state NOT IN ('withdrawn', 'rejected')"
    )
    asked = {run_id for (run_id,) in rows}
    return [run for run in ledger.runs.find() if run.studio_url and run.run_id in asked]


def _no_run(message: str) -> ConfigurationError:
    return ConfigurationError(message, remedy="See `patternmill status`.")
