"""Who drives a catalog: a lease, its beats, and the fence that makes the writes of an older holder void."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from patternmill.errors import LeaseLost
from patternmill.identifiers import RunId
from patternmill.ledger.book import Book
from patternmill.ledger.records import Lease


class LeaseBook(Book):
    """One lease a catalog and environment."""

    def holder(self, environment: str, catalog: str) -> tuple[int, str, str, int] | None:
        """The lease of a catalog as (fence, run ID, holder's JSON, beats)."""
        rows = self.database.rows(
            "SELECT fence, run_id, holder, beats FROM leases "
            "WHERE environment = :environment AND catalog = :catalog",
            {"environment": environment, "catalog": catalog},
        )
        return tuple(rows[0]) if rows else None

    def take(
        self, environment: str, catalog: str, run_id: RunId, holder: str, *, over: int | None
    ) -> Lease | None:
        """Take the lease; `over` is the fence that was seen free or dead (None: no lease at all).

        None when somebody else was quicker.
        """
        params = {
            "environment": environment,
            "catalog": catalog,
            "run_id": run_id,
            "holder": holder,
            "fence": (over or 0) + 1,
            "over": over,
        }
        if over is None:
            taken = self.database.execute(
                "INSERT INTO leases (environment, catalog, fence, run_id, holder, beats) "
                "VALUES (:environment, :catalog, :fence, :run_id, :holder, 0) "
                "ON CONFLICT (environment, catalog) DO NOTHING",
                params,
            )
        else:
            taken = self.database.execute(
                "UPDATE leases SET fence = :fence, run_id = :run_id, holder = :holder, beats = 0 "
                "WHERE environment = :environment AND catalog = :catalog AND fence = :over",
                params,
            )
        return Lease(environment, catalog, (over or 0) + 1, run_id) if taken == 1 else None

    def beat(self, hold: Lease) -> None:
        """Show that the holder lives. Raises LeaseLost when it no longer holds."""
        self._update_lease(hold, "beats = beats + 1")

    def release(self, hold: Lease) -> None:
        """Give the catalog back; the fence stays, so that the next holder's is newer."""
        self._update_lease(hold, "holder = ''")

    def _update_lease(self, hold: Lease, assignment: str) -> None:
        changed = self.database.execute(
            f"UPDATE leases SET {assignment} "  # noqa: S608
            "WHERE environment = :environment AND catalog = :catalog AND fence = :fence",
            _lease_params(hold),
        )
        if changed != 1:
            raise _fenced(hold)

    def check_fence(self, hold: Lease) -> None:
        held = self.database.rows(
            "SELECT fence FROM leases WHERE environment = :environment "  # noqa: S608
            f"AND catalog = :catalog AND fence = :fence{self.database.lock_suffix}",
            _lease_params(hold),
        )
        if not held:
            raise _fenced(hold)


def _lease_params(hold: Lease) -> Mapping[str, Any]:
    return {"environment": hold.environment, "catalog": hold.catalog, "fence": hold.fence}


def _fenced(hold: Lease) -> LeaseLost:
    return LeaseLost(
        f"Another run took over the catalog {hold.catalog!r} ({hold.environment}) while this one stood still.",
        remedy="See `patternmill status`; nothing that this run does from here on counts.",
    )
