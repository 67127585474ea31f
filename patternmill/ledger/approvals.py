"""The plans that wait for a person, the decisions, and what was bought under each."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Any

from patternmill.errors import BudgetReached, LedgerError
from patternmill.identifiers import ItemKey, RunId
from patternmill.ledger.database import Tables
from patternmill.ledger.records import Approval, Ceiling, Intent
from patternmill.states import Verdict
from patternmill.text import money, plural

_PROPOSED = (
    *("id", "environment", "catalog", "digest", "items", "expected", "worst"),
    *("asked_at", "lapses_at", "flow_run_id", "question"),
)
_DECIDED = "verdict, decided_at, who, note, most_items, most_purchases, most_amount, purchases, amount"


class ApprovalTables(Tables):
    """Plans that a person has to decide on, the decisions, and the ceilings that follow from them."""

    def add_approval(self, approval: Approval, items: Collection[ItemKey]) -> None:
        """A plan that waits for a decision, with the items that it would make."""
        proposed = {name: getattr(approval, name) for name in _PROPOSED}
        self._insert("approvals", **proposed, verdict=Verdict.WAITING.value)
        self.database.execute_many(
            "INSERT INTO approval_items (approval_id, item_key) VALUES (:id, :key)",
            ({"id": approval.id, "key": key} for key in items),
        )
        self._record_approval(approval, "approval_asked")

    def rename_question(self, approval_id: str, question: str) -> None:
        """The same plan is asked about once more, under another name."""
        self.database.execute(
            "UPDATE approvals SET question = :question WHERE id = :id AND verdict = 'waiting'",
            {"id": approval_id, "question": question},
        )

    def decide_approval(
        self,
        approval_id: str,
        verdict: Verdict,
        *,
        who: str | None = None,
        note: str | None = None,
        ceiling: Ceiling | None = None,
        approved: Collection[ItemKey] = (),
    ) -> Approval:
        """Record the decision, once: it is never changed, only followed by another one.

        Raises LedgerError when there is one already.
        """
        waiting = self.approval(approval_id)
        if waiting is None or waiting.verdict is not Verdict.WAITING:
            raise LedgerError(f"Approval {approval_id} does not wait for a decision.")
        ceiling = ceiling or Ceiling()
        decided = replace(
            waiting, verdict=verdict, decided_at=self.now(), who=who, note=note, ceiling=ceiling
        )
        self._update(
            "approvals",
            {"id": approval_id},
            verdict=verdict.value,
            decided_at=decided.decided_at,
            who=who,
            note=note,
            most_items=ceiling.items,
            most_purchases=ceiling.purchases,
            most_amount=ceiling.amount,
        )
        self.database.execute_many(
            "UPDATE approval_items SET approved = 1 WHERE approval_id = :id AND item_key = :key",
            ({"id": approval_id, "key": key} for key in approved),
        )
        self._record_approval(decided, f"approval_{verdict.value}")
        return decided

    def approval(self, approval_id: str) -> Approval | None:
        return next(self._approvals("WHERE id = :id", id=approval_id), None)

    def waiting_approval(self, flow_run_id: str) -> Approval | None:
        """The plan with which a flow run waits."""
        where = "WHERE flow_run_id = :flow_run_id AND verdict = 'waiting' ORDER BY asked_at DESC, id"
        return next(self._approvals(where, flow_run_id=flow_run_id), None)

    def last_decision(self, environment: str, catalog: str) -> Approval | None:
        """The last plan of a catalog that a person approved or rejected: only the last decision counts."""
        where = (
            "WHERE environment = :environment AND catalog = :catalog AND verdict IN ('approved', 'rejected') "
            "ORDER BY decided_at DESC, asked_at DESC, id LIMIT 1"
        )
        return next(self._approvals(where, environment=environment, catalog=catalog), None)

    def approvals(self) -> list[Approval]:
        return list(self._approvals("ORDER BY asked_at DESC, id"))

    def approval_items(self, approval_id: str) -> dict[ItemKey, bool]:
        """The items of the plan, and whether the approval covers each."""
        rows = self.database.rows(
            "SELECT item_key, approved FROM approval_items WHERE approval_id = :id", {"id": approval_id}
        )
        return {ItemKey(key): bool(approved) for key, approved in rows}

    def _draw_on_approval(self, approval_id: str, intent: Intent, currency: str | None = None) -> None:
        """Reserve one purchase under an approval. Raises BudgetReached, reserving nothing, where it does not."""
        drawn = self.database.execute(
            "UPDATE approvals SET purchases = purchases + 1, amount = amount + :price "
            "WHERE id = :id AND verdict = 'approved' AND purchases + 1 <= most_purchases "
            "AND amount + :price <= most_amount AND EXISTS (SELECT 1 FROM approval_items i "
            "WHERE i.approval_id = :id AND i.item_key = :key AND i.approved = 1)",
            {"id": approval_id, "price": intent.price, "key": intent.item_key},
        )
        if drawn:
            return
        approval = self.approval(approval_id)
        if approval is None or approval.verdict is not Verdict.APPROVED:
            raise LedgerError(f"Approval {approval_id} is not in the ledger, or approves nothing.")
        raise BudgetReached(
            f"The approval of plan {approval.short} by {approval.who} is used up: it covers "
            f"{plural(approval.ceiling.items, 'item')} for at most {money(approval.ceiling.amount, currency)}, and "
            f"{money(approval.amount, currency)} is spent or reserved under it.",
            code="approval",
            remedy="Run again: what is left needs another approval.",
        )

    def _return_to_approval(self, approval_id: str, price: int) -> None:
        """Return one purchase that made nothing."""
        self.database.execute(
            "UPDATE approvals SET purchases = purchases - 1, amount = amount - :price WHERE id = :id",
            {"id": approval_id, "price": price},
        )

    def _approvals(self, where: str, **params: str) -> Iterator[Approval]:
        select = f"SELECT {', '.join(_PROPOSED)}, {_DECIDED} FROM approvals "  # noqa: S608
        return map(_approval, self.database.rows(select + where, params))

    def _record_approval(self, approval: Approval, kind: str) -> None:
        """There is no run yet: the event has the approval's own ID in its place."""
        detail = {
            "digest": approval.digest,
            "catalog": approval.catalog,
            "environment": approval.environment,
            "items": approval.items,
            "most_items": approval.ceiling.items,
            "most_amount": approval.ceiling.amount,
            "who": approval.who,
            "note": approval.note,
            "flow_run_id": approval.flow_run_id,
        }
        self.record_event(RunId(approval.id), kind, detail=json.dumps(detail, ensure_ascii=False))


def _approval(row: tuple[Any, ...]) -> Approval:
    proposed = dict(zip(_PROPOSED, row, strict=False))
    verdict, decided_at, who, note, items, most, most_amount, purchases, amount = row[len(_PROPOSED) :]
    return Approval(
        **proposed,
        verdict=Verdict(verdict),
        decided_at=decided_at,
        who=who,
        note=note,
        ceiling=Ceiling(items, most, most_amount),
        purchases=purchases,
        amount=amount,
    )
