"""Finds runs: the one that a person means, those that came after it, and those that asked a service for anything."""

from __future__ import annotations

from collections.abc import Iterator

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
    runs = ledger.runs.find(environment=environment, catalog=catalog)
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
    """The latest run that had its catalog's lease. Raises ConfigurationError: none, or several catalogs."""
    runs = list(runs_with_lease(ledger, catalog, environment))
    scopes = sorted({(run.catalog, run.environment) for run in runs})
    if not runs:
        raise ConfigurationError(
            f"There is no run{f' of {catalog!r}' if catalog else ''} in this ledger.",
            remedy="See `patternmill status`.",
        )
    if len(scopes) > 1:
        named = _named([f"{name} ({its_environment})" for name, its_environment in scopes])
        raise ConfigurationError(
            f"Which catalog is meant: {named}?", remedy="Name it: --catalog (or `look NAME`), --environment."
        )
    return runs[0]


def runs_with_lease(
    ledger: Ledger, catalog: str | None = None, environment: str | None = None
) -> Iterator[RunRecord]:
    """Those that had the lease of their catalog, the newest first."""
    return filter(had_lease, ledger.runs.find(catalog=catalog, environment=environment))


def had_lease(run: RunRecord) -> bool:
    """False for one that another run kept from its lease: it has no rows and wrote no results."""
    return run.outcome is not Outcome.SKIPPED_OVERLAP


def asked_services(ledger: Ledger) -> list[RunRecord]:
    """The runs that asked a service for anything that it did not refuse, the newest first; not the embedded studio's.

    A run whose every request was refused, or never left, does not show where the products of its environment are.
    """
    rows = ledger.database.rows(
        "SELECT run_id FROM runs WHERE EXISTS (SELECT 1 FROM attempts a WHERE a.run_id = runs.run_id "
        "AND a.state NOT IN ('withdrawn', 'rejected'))"
    )
    return [run for run in ledger.runs.find() if run.studio_url and (run.run_id,) in rows]


def _named(names: list[str]) -> str:
    return ", ".join(names[:_MOST_NAMED]) + (" …" if len(names) > _MOST_NAMED else "")
