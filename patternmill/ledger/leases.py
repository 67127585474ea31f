"""Who drives a catalog: leases, heartbeats, and the fences that make older writes void."""

from __future__ import annotations

from patternmill.errors import LeaseLost
from patternmill.identifiers import RunId
from patternmill.ledger.groups import GroupTables
from patternmill.ledger.records import HeldLease, Lease

_SELECT = "SELECT environment, catalog, fence, run_id, holder, beats, stop FROM leases "


class LeaseTable(GroupTables):
    """One lease for each catalog and environment."""

    def lease(self, environment: str, catalog: str) -> HeldLease | None:
        """The lease of a catalog, also one that was released; None when it never had any."""
        found = self._row(
            f"{_SELECT}WHERE environment = :environment AND catalog = :catalog",
            environment=environment,
            catalog=catalog,
        )
        return HeldLease(*found) if found else None

    def held_leases(self) -> list[HeldLease]:
        """The leases that were not released, whether their holders live or not."""
        rows = self.database.rows(f"{_SELECT}WHERE holder <> '' ORDER BY environment, catalog")
        return [HeldLease(*row) for row in rows]

    def claim_lease(
        self, environment: str, catalog: str, run_id: RunId, holder: str, *, over: int | None
    ) -> Lease | None:
        """Write a new lease; `over` is the fence that was seen free or dead (None: no lease at all).

        None when another process was quicker.
        """
        lease = Lease(environment, catalog, (over or 0) + 1, run_id)
        values = {"environment": environment, "catalog": catalog, "fence": lease.fence, "run_id": run_id}
        if over is None:
            claimed = self.database.execute(
                "INSERT INTO leases (environment, catalog, fence, run_id, holder, beats) "
                "VALUES (:environment, :catalog, :fence, :run_id, :holder, 0) "
                "ON CONFLICT (environment, catalog) DO NOTHING",
                {**values, "holder": holder},
            )
        else:
            claimed = self.database.execute(
                "UPDATE leases SET fence = :fence, run_id = :run_id, holder = :holder, beats = 0, stop = NULL "
                "WHERE environment = :environment AND catalog = :catalog AND fence = :over",
                {**values, "holder": holder, "over": over},
            )
            self.close_groups(environment, catalog)
        return lease if claimed == 1 else None

    def renew_lease(self, lease: Lease) -> None:
        """A heartbeat. Raises LeaseLost when the lease is another's by now."""
        self._update_lease(lease, "beats = beats + 1")

    def release_lease(self, lease: Lease) -> None:
        """The fence stays, so that the next holder's is newer. Raises LeaseLost."""
        self._update_lease(lease, "holder = ''")

    def record_stop(self, lease: Lease, why: str) -> None:
        """That its run was asked to stop: whatever becomes of its process, the run has ended. Raises LeaseLost."""
        self._update_lease(lease, "stop = :why", why=why)

    def _update_lease(self, lease: Lease, assignment: str, **params: str) -> None:
        changed = self.database.execute(
            f"UPDATE leases SET {assignment} "  # noqa: S608
            "WHERE environment = :environment AND catalog = :catalog AND fence = :fence",
            {"environment": lease.environment, "catalog": lease.catalog, "fence": lease.fence, **params},
        )
        if changed != 1:
            raise _fenced(lease)

    def check_fence(self, lease: Lease) -> None:
        """Raise LeaseLost when the lease is another's by now; it is not taken over until the transaction ends."""
        found = self._row(
            "SELECT fence FROM leases WHERE environment = :environment "  # noqa: S608
            f"AND catalog = :catalog AND fence = :fence{self.database.lock_suffix}",
            environment=lease.environment,
            catalog=lease.catalog,
            fence=lease.fence,
        )
        if found is None:
            raise _fenced(lease)


def _fenced(lease: Lease) -> LeaseLost:
    return LeaseLost(
        f"Another run took over the catalog {lease.catalog!r} ({lease.environment}) while this one was stopped.",
        remedy="See `patternmill status`; nothing that this run does from now on counts.",
    )
