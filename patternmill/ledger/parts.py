"""The parts of a spread run: who has which, how far each is, and what one has to tell the others."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from patternmill.errors import LeaseLost
from patternmill.identifiers import RunId
from patternmill.ledger.leases import LeaseBook
from patternmill.ledger.records import Lease, PartHold, PartProgress
from patternmill.states import PartState

#: The number under which a run itself tells its parts something.
COORDINATOR = 0


class PartBook(LeaseBook):
    """Parts write under their run's hold and a fence each: of two processes with one part, one counts."""

    def add_parts(self, run_id: RunId, works: Iterable[tuple[int, str]]) -> None:
        """Put on record what each part has to do: by number, as JSON."""
        self.database.execute_many(
            "INSERT INTO run_parts (run_id, number, work, state, fence, beats, counts, halt) "
            "VALUES (:run_id, :number, :work, 'granted', 0, 0, '{}', '{}') "
            # Done again after a commit that was done and only unheard, it finds itself done.
            "ON CONFLICT (run_id, number) DO NOTHING",
            ({"run_id": run_id, "number": number, "work": work} for number, work in works),
        )

    def part_work(self, run_id: RunId, number: int) -> str | None:
        """What a part has to do; None when there is no such part."""
        rows = self.database.rows(
            "SELECT work FROM run_parts WHERE run_id = :run_id AND number = :number",
            {"run_id": run_id, "number": number},
        )
        return str(rows[0][0]) if rows else None

    def parts_of(self, run_id: RunId) -> list[PartProgress]:
        """How the parts of a run stand, the run's own voice among them."""
        return [
            PartProgress(number, PartState(state), fence, beats, json.loads(counts), json.loads(halt))
            for number, state, fence, beats, counts, halt in self.database.rows(
                "SELECT number, state, fence, beats, counts, halt FROM run_parts "
                "WHERE run_id = :run_id ORDER BY number",
                {"run_id": run_id},
            )
        ]

    def grant_part(self, hold: Lease, number: int) -> int:
        """Give a part away, from now on in vain for whoever has it; returns the grant, with which it is begun."""
        params = {"run_id": hold.run_id, "number": number}
        self.database.execute(
            "UPDATE run_parts SET fence = fence + 1, state = 'granted' "
            "WHERE run_id = :run_id AND number = :number",
            params,
        )
        return int(
            self.database.rows(
                "SELECT fence FROM run_parts WHERE run_id = :run_id AND number = :number", params
            )[0][0]
        )

    def begin_part(self, hold: Lease, number: int, grant: int) -> PartHold:
        """Take a part up. Raises LeaseLost when the grant was used, or another one was given since."""
        begun = PartHold(hold.environment, hold.catalog, hold.fence, hold.run_id, number, grant + 1)
        changed = self.database.execute(
            "UPDATE run_parts SET fence = fence + 1, beats = beats + 1, state = 'begun' "
            "WHERE run_id = :run_id AND number = :number AND fence = :grant",
            {"run_id": hold.run_id, "number": number, "grant": grant},
        )
        if changed != 1:
            raise _given_away(begun)
        return begun

    def tell_part(
        self,
        hold: PartHold,
        counts: Mapping[str, int],
        halt: Mapping[str, Any],
        state: PartState = PartState.BEGUN,
    ) -> None:
        """A part's beat: that it lives, how far it is, why it stops."""
        self.database.execute(
            "UPDATE run_parts SET beats = beats + 1, counts = :counts, halt = :halt, state = :state "
            "WHERE run_id = :run_id AND number = :number AND fence = :fence",
            {
                "counts": json.dumps(counts),
                "halt": json.dumps(halt, ensure_ascii=False),
                "state": state.value,
                "run_id": hold.run_id,
                "number": hold.number,
                "fence": hold.part_fence,
            },
        )

    def tell_parts(self, run_id: RunId, halt: Mapping[str, Any]) -> None:
        """What the run itself has to say to its parts."""
        self.database.execute(
            "UPDATE run_parts SET halt = :halt WHERE run_id = :run_id AND number = :number",
            {"halt": json.dumps(halt, ensure_ascii=False), "run_id": run_id, "number": COORDINATOR},
        )

    def end_parts(self, run_id: RunId) -> None:
        """The run ends: what a part writes from now on does not count."""
        self.database.execute(
            "UPDATE run_parts SET fence = fence + 1 WHERE run_id = :run_id", {"run_id": run_id}
        )

    def check_fence(self, hold: Lease) -> None:
        super().check_fence(hold)
        if not isinstance(hold, PartHold):
            return
        # Grants are given under the lease too, whose row is locked here: nobody changes this until the commit.
        held = self.database.rows(
            "SELECT fence FROM run_parts WHERE run_id = :run_id AND number = :number AND fence = :fence",
            {"run_id": hold.run_id, "number": hold.number, "fence": hold.part_fence},
        )
        if not held:
            raise _given_away(hold)


def _given_away(hold: PartHold) -> LeaseLost:
    return LeaseLost(
        f"Part {hold.number} of run {hold.run_id} was given to another process, or its run has ended.",
        remedy="Nothing is to be done: the run that the part belongs to sees to its rows.",
    )
