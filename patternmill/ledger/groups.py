"""Groups of rows that several machines drive: their fences, their beats, and the one window of their run."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from patternmill.errors import LeaseLost
from patternmill.identifiers import ItemKey, RequestId, RunId
from patternmill.ledger.database import Tables
from patternmill.ledger.records import GroupLease, Lease, RunGroup, RunRecord

#: Seconds without a beat after which the execution of a group counts as lost.
LOST_AFTER = 10.0


class GroupTables(Tables):
    """One record for each group of a run; and the slots that attempts occupy in the run's window.

    An execution of a group writes under its own fence, and never waits for another group: a run that takes the
    catalog over closes the groups of the one before it, and so does the end of a run.
    """

    def add_groups(self, run_id: RunId, groups: Iterable[tuple[int, str, Collection[ItemKey]]]) -> None:
        """Each by its number, with its work (JSON), and with its items that were begun before.

        What of these is in flight occupies its slot from now on.
        """
        for number, work, begun in groups:
            beat = 0.0 if begun else None
            self._insert("run_groups", run_id=run_id, number=number, work=work, fence=0, beat_at=beat)
            self.database.execute_many(
                "UPDATE attempts SET slot = :run_id "
                "WHERE item_key = :key AND state IN ('intended', 'accepted')",
                ({"run_id": run_id, "key": key} for key in begun),
            )

    def groups(self, run_id: RunId) -> list[RunGroup]:
        rows = self.database.rows(
            "SELECT number, fence, beat_at, ended_at, report FROM run_groups "
            "WHERE run_id = :run_id ORDER BY number",
            {"run_id": run_id},
        )
        return [RunGroup(*values) for values in rows]

    def begin_group(self, run: RunRecord, number: int) -> tuple[GroupLease, str] | None:
        """The fence of a new execution, which ends all earlier ones, and the group's work.

        None where it has ended, or its run has.
        """
        rows = self.database.rows(
            "UPDATE run_groups SET fence = fence + 1, beat_at = :now WHERE run_id = :run_id "
            "AND number = :number AND fence IS NOT NULL AND ended_at IS NULL RETURNING fence, work",
            {"run_id": run.run_id, "number": number, "now": self.now()},
        )
        scope = run.environment, run.catalog
        return next(((GroupLease(*scope, fence, run.run_id, number), work) for fence, work in rows), None)

    def check_group(self, lease: GroupLease) -> None:
        """Raise LeaseLost where another execution has begun; none begins until the transaction ends."""
        found = self._row(
            "SELECT 1 FROM run_groups WHERE run_id = :run_id AND number = :number "  # noqa: S608
            f"AND fence = :fence{self.database.lock_suffix}",
            **vars(lease),
        )
        if found is None:
            raise LeaseLost(
                f"Group {lease.number} of run {lease.run_id} is driven elsewhere by now, or its run has ended.",
                remedy="Nothing that this execution of it does from now on counts.",
            )

    def beat_group(self, lease: GroupLease, report: str) -> tuple[str | None, int, bool]:
        """A heartbeat; called under the group's fence.

        Returns the run's orders, how many groups live, and whether a begun one has no execution.
        """
        key = {"run_id": lease.run_id, "number": lease.number}
        self._update("run_groups", key, beat_at=self.now(), report=report)
        ((orders, living, lost),) = self.database.rows(
            "SELECT max(CASE WHEN number = :number THEN orders END), "
            "sum(CASE WHEN beat_at > :since THEN 1 ELSE 0 END), "
            "sum(CASE WHEN beat_at <= :since THEN 1 ELSE 0 END) "
            "FROM run_groups WHERE run_id = :run_id AND ended_at IS NULL",
            key | {"since": self.now() - LOST_AFTER},
        )
        return orders, int(living), bool(lost)

    def end_group(self, lease: GroupLease) -> None:
        """Called under the group's fence, once nothing more can be done for it in its run."""
        key = {"run_id": lease.run_id, "number": lease.number}
        self._update("run_groups", key, ended_at=self.now())

    def order_groups(self, run_id: RunId, orders: str | None) -> None:
        """All groups of a run read it with their beats, also those that begin later."""
        self._update("run_groups", {"run_id": run_id}, orders=orders)

    #: How many jobs more the present transaction may begin; None: it has not counted.
    _room: int | None = None

    def has_room(self, run: Lease, window: int) -> bool:
        """Whether a run may have one more job in flight, which is begun then, in this transaction.

        It is counted once for a transaction: until that ends nobody else may begin one, and they do not wait for it:
        what else they have to write would wait with them, and that is what frees slots.
        """
        if self._room is None:
            self._room = window - self.in_flight(run.run_id)
            if self._room > 0:
                is_alone = self.database.try_lock(f"spending {run.environment}")
                self._room = window - self.in_flight(run.run_id) if is_alone else 0
        self._room -= 1
        return self._room >= 0

    def in_flight(self, run_id: RunId) -> int:
        """Attempts without an end that count in the window of a run."""
        ((occupied,),) = self.database.rows(
            "SELECT count(*) FROM attempts WHERE slot = :run_id AND state IN ('intended', 'accepted')",
            {"run_id": run_id},
        )
        return int(occupied)

    def free_slot(self, request_id: RequestId) -> None:
        """Of an attempt without an end, which this run follows no longer."""
        self._update("attempts", {"request_id": request_id}, slot=None)

    def close_groups(self, environment: str, catalog: str) -> None:
        """No execution of any group of the catalog's runs so far may write any more."""
        self.database.execute(
            "UPDATE run_groups SET fence = NULL WHERE fence IS NOT NULL AND run_id IN "
            "(SELECT run_id FROM runs WHERE environment = :environment AND catalog = :catalog)",
            {"environment": environment, "catalog": catalog},
        )
