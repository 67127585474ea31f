"""The parts of a spread run: which process has which, how far each is, and why one begins nothing new."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from patternmill.errors import LeaseLost
from patternmill.identifiers import RunId
from patternmill.ledger.leases import LeaseTable
from patternmill.ledger.records import Lease, PartLease, PartProgress
from patternmill.states import PartState

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
            PartProgress(number, PartState(state), fence, beats, json.loads(counts), json.loads(halt))
            for number, state, fence, beats, counts, halt in self.database.rows(
                "SELECT number, state, fence, beats, counts, halt FROM run_parts "
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
