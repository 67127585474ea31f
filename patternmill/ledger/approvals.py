"""Plans that were put before a person, the decisions, and what was bought under them."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import fields, replace
from typing import Any

from patternmill.errors import BudgetReached, LedgerError
from patternmill.identifiers import ItemKey
from patternmill.ledger.database import Tables
from patternmill.ledger.records import Approval, Intent
from patternmill.states import Verdict

_COLUMNS = [field.name for field in fields(Approval)]


class Approvals(Tables):
    """Approvals, each with the items of its plan; once decided, only what is bought under one changes."""

    #: Of the one that was asked for last: each purchase asks.
    _items: Mapping[str, frozenset[ItemKey]] = {}

    def request(self, approval: Approval, items: Collection[ItemKey]) -> None:
        """A plan that waits for a decision, with the items that it would make; in place of what its flow run asked."""
        if approval.flow_run_id is not None:
            earlier = self.waiting(approval.flow_run_id)
            its = {"id": earlier.id if earlier is not None else None}
            self.database.execute("DELETE FROM approvals WHERE id = :id", its)
            self.database.execute("DELETE FROM documents WHERE name = 'plan ' || :id", its)
        own = {**vars(approval), "verdict": approval.verdict.value}
        self._insert("approvals", **own, sequence=self._next_sequence())
        self.keep_document(f"plan {approval.id}", json.dumps(list(items)).encode())

    def decide(self, approval_id: str, verdict: Verdict, *, who: str, note: str | None = None) -> Approval:
        """Record the decision, once: it is never changed, only followed by another one.

        Raises LedgerError when there is one already.
        """
        waiting = self.get(approval_id)
        if waiting is None or waiting.verdict is not Verdict.WAITING:
            raise LedgerError(f"Approval {approval_id} does not wait for a decision.")
        decision: dict[str, Any] = {"decided_at": self.now(), "who": who, "note": note}
        sequence = self._next_sequence()
        self._update("approvals", {"id": approval_id}, verdict=verdict.value, sequence=sequence, **decision)
        return replace(waiting, verdict=verdict, **decision)

    def _next_sequence(self) -> int:
        self.database.lock("approvals")
        ((last,),) = self.database.rows("SELECT max(sequence) FROM approvals")
        return int(last or 0) + 1

    def get(self, approval_id: str) -> Approval | None:
        return next(iter(self._select("WHERE id = :id", id=approval_id)), None)

    def waiting(self, flow_run_id: str) -> Approval | None:
        """The plan with which a flow run waits."""
        where = "WHERE flow_run_id = :flow_run_id AND verdict = 'waiting'"
        return next(iter(self._select(where, flow_run_id=flow_run_id)), None)

    def find(self, environment: str | None = None, catalog: str | None = None) -> list[Approval]:
        """Those of one catalog, or all, in the order of their decisions and, of those that wait, their requests."""
        where = (
            "WHERE coalesce(:environment, environment) = environment AND coalesce(:catalog, catalog) = catalog "
            "ORDER BY sequence"
        )
        return self._select(where, environment=environment, catalog=catalog)

    def items(self, approval_id: str) -> frozenset[ItemKey]:
        """The items of the plan, which never change."""
        if approval_id not in self._items:
            found = self.document(f"plan {approval_id}")
            if found is None:
                return frozenset()
            self._items = {approval_id: frozenset(json.loads(found))}
        return self._items[approval_id]

    def covering(self, approval_id: str, intent: Intent) -> Approval:
        """What a purchase rests on. Raises LedgerError, and BudgetReached where its plan lacks the item."""
        approval = self.get(approval_id)
        if approval is None or approval.verdict is not Verdict.APPROVED:
            raise LedgerError(f"Approval {approval_id} is not in the ledger, or approves nothing.")
        if intent.item_key not in self.items(approval_id):
            raise BudgetReached(
                f"Plan {approval.short}, which {approval.who} approved, lacks the {intent.stage}.",
                code="approval",
                remedy="Run again: what is left needs another approval.",
            )
        return approval

    def draw_on(self, approval_id: str, purchases: int, amount: int) -> None:
        """Reserve a purchase under an approval that covers it; negative: return one that made nothing."""
        self.database.execute(
            "UPDATE approvals SET purchases = purchases + :purchases, amount = amount + :amount WHERE id = :id",
            {"id": approval_id, "purchases": purchases, "amount": amount},
        )

    def _select(self, where: str, **params: str | None) -> list[Approval]:
        rows = self.database.rows(f"SELECT {', '.join(_COLUMNS)} FROM approvals {where}", params)  # noqa: S608
        named = (dict(zip(_COLUMNS, row, strict=True)) for row in rows)
        return [Approval(**{**values, "verdict": Verdict(values["verdict"])}) for values in named]
