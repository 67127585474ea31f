"""Who drives a catalog, or a part of a spread run: leases, heartbeats, and the fences that make older writes void."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from patternmill.errors import LeaseLost
from patternmill.identifiers import RunId
from patternmill.ledger.database import Tables
from patternmill.ledger.records import HeldLease, Lease, PartLease, PartProgress
from patternmill.states import PartState

_SELECT = "SELECT environment, catalog, fence, run_id, holder, beats FROM leases "


class LeaseTable(Tables):
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
                "UPDATE leases SET fence = :fence, run_id = :run_id, holder = :holder, beats = 0 "
                "WHERE environment = :environment AND catalog = :catalog AND fence = :over",
                {**values, "holder": holder, "over": over},
            )
        return lease if claimed == 1 else None

    def renew_lease(self, lease: Lease) -> None:
        """A heartbeat. Raises LeaseLost when the lease is another's by now."""
        self._update_lease(lease, "beats = beats + 1")

    def release_lease(self, lease: Lease) -> None:
        """The fence stays, so that the next holder's is newer. Raises LeaseLost."""
        self._update_lease(lease, "holder = ''")

    def _update_lease(self, lease: Lease, assignment: str) -> None:
        changed = self.database.execute(
            f"UPDATE leases SET {assignment} "  # noqa: S608
            "WHERE environment = :environment AND catalog = :catalog AND fence = :fence",
            {"environment": lease.environment, "catalog": lease.catalog, "fence": lease.fence},
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


#: The number under which the run itself halts its parts.
COORDINATOR = 0


class PartTable(LeaseTable):
    """Parts write under their run's lease and a fence each: of two processes with one part, one counts."""

    def add_parts(self, run_id: RunId, works: Iterable[tuple[int, str]]) -> None:
        """Record the work of each part: by number, as JSON."""
        self.database.execute_many(
            "INSERT INTO run_parts (run_id, number, work, state, fence, beats, counts, halt) "
            "VALUES (:run_id, :number, :work, 'granted', 0, 0, '{}', '{}') "
            # Done again after a commit of which only the answer was lost, it finds itself done.
            "ON CONFLICT (run_id, number) DO NOTHING",
            ({"run_id": run_id, "number": number, "work": work} for number, work in works),
        )

    def part_work(self, run_id: RunId, number: int) -> str | None:
        found = self._row(
            "SELECT work FROM run_parts WHERE run_id = :run_id AND number = :number",
            run_id=run_id,
            number=number,
        )
        return str(found[0]) if found else None

    def parts_of(self, run_id: RunId) -> list[PartProgress]:
        """How far the parts of a run are, with the run itself as COORDINATOR."""
        return [
            PartProgress(number, PartState(state), beats, json.loads(counts), json.loads(halt))
            for number, state, beats, counts, halt in self.database.rows(
                "SELECT number, state, beats, counts, halt FROM run_parts "
                "WHERE run_id = :run_id ORDER BY number",
                {"run_id": run_id},
            )
        ]

    def assign_part(self, lease: Lease, number: int) -> int:
        """Assign a part to a process, fencing off an earlier one; returns the grant with which it is begun."""
        part = {"run_id": lease.run_id, "number": number}
        self.database.execute(
            "UPDATE run_parts SET fence = fence + 1, state = 'granted' "
            "WHERE run_id = :run_id AND number = :number",
            part,
        )
        found = self._row("SELECT fence FROM run_parts WHERE run_id = :run_id AND number = :number", **part)
        assert found is not None, "its work is on record"
        return int(found[0])

    def begin_part(self, lease: Lease, number: int, grant: int) -> PartLease:
        """Raises LeaseLost when the grant was used, or the part was assigned once more since."""
        begun = PartLease(lease.environment, lease.catalog, lease.fence, lease.run_id, number, grant + 1)
        changed = self.database.execute(
            "UPDATE run_parts SET fence = fence + 1, beats = beats + 1, state = 'begun' "
            "WHERE run_id = :run_id AND number = :number AND fence = :grant",
            {"run_id": lease.run_id, "number": number, "grant": grant},
        )
        if changed != 1:
            raise _reassigned(begun)
        return begun

    def update_part(
        self,
        lease: PartLease,
        counts: Mapping[str, int],
        halt: Mapping[str, Any],
        state: PartState = PartState.BEGUN,
    ) -> None:
        """A part's heartbeat: how far it is, and why it begins nothing new."""
        self.database.execute(
            "UPDATE run_parts SET beats = beats + 1, counts = :counts, halt = :halt, state = :state "
            "WHERE run_id = :run_id AND number = :number AND fence = :fence",
            {
                "counts": json.dumps(counts),
                "halt": json.dumps(halt, ensure_ascii=False),
                "state": state.value,
                "run_id": lease.run_id,
                "number": lease.number,
                "fence": lease.part_fence,
            },
        )

    def halt_parts(self, run_id: RunId, halt: Mapping[str, Any]) -> None:
        """Why none of the run's parts is to begin anything new."""
        key = {"run_id": run_id, "number": COORDINATOR}
        self._update("run_parts", key, halt=json.dumps(halt, ensure_ascii=False))

    def end_parts(self, run_id: RunId) -> None:
        """The run ends: what a part writes from now on does not count."""
        self.database.execute(
            "UPDATE run_parts SET fence = fence + 1 WHERE run_id = :run_id", {"run_id": run_id}
        )

    def check_fence(self, lease: Lease) -> None:
        super().check_fence(lease)
        if not isinstance(lease, PartLease):
            return
        # Parts are assigned under the lease too, whose row is locked here: this cannot change until the commit.
        found = self._row(
            "SELECT fence FROM run_parts WHERE run_id = :run_id AND number = :number AND fence = :fence",
            run_id=lease.run_id,
            number=lease.number,
            fence=lease.part_fence,
        )
        if found is None:
            raise _reassigned(lease)


def _reassigned(lease: PartLease) -> LeaseLost:
    return LeaseLost(
        f"Part {lease.number} of run {lease.run_id} was assigned to another process, or its run has ended.",
        remedy="Nothing is to be done: the run drives the part's rows elsewhere.",
    )
