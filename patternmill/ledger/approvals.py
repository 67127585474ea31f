"""What persons approved: plans that were put before them, the word on each, and what was bought under it."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import replace
from typing import Any

from patternmill.errors import BudgetReached, LedgerError
from patternmill.identifiers import ItemKey, RunId
from patternmill.ledger.book import Book
from patternmill.ledger.records import Approval, Ceiling, Intent
from patternmill.states import Verdict
from patternmill.text import money, plural

_COLUMNS = (
    "id, environment, catalog, digest, items, expected, worst, asked_at, lapses_at, flow_run_id, question, "
    "verdict, decided_at, who, note, most_items, most_purchases, most_amount, purchases, amount"
)


class ApprovalBook(Book):
    """Questions about plans, their answers, and the ceilings that follow from them."""

    def ask(self, approval: Approval, items: Collection[ItemKey]) -> None:
        """Remember what is put before a person: a plan that waits, with the items that it would make."""
        self.database.execute(
            "INSERT INTO approvals (id, environment, catalog, digest, items, expected, worst, asked_at, "
            "lapses_at, flow_run_id, question, verdict) VALUES (:id, :environment, :catalog, :digest, :items, "
            ":expected, :worst, :asked_at, :lapses_at, :flow_run_id, :question, 'waiting')",
            {name: getattr(approval, name) for name in _ASKED},
        )
        self.database.execute_many(
            "INSERT INTO approval_items (approval_id, item_key) VALUES (:id, :key)",
            ({"id": approval.id, "key": key} for key in items),
        )
        self._note(approval, "approval_asked")

    def ask_again(self, approval_id: str, question: str) -> None:
        """The same plan, put before a person under another name."""
        self.database.execute(
            "UPDATE approvals SET question = :question WHERE id = :id AND verdict = 'waiting'",
            {"id": approval_id, "question": question},
        )

    def decide(
        self,
        approval_id: str,
        verdict: Verdict,
        *,
        who: str | None = None,
        note: str | None = None,
        ceiling: Ceiling | None = None,
        approved: Collection[ItemKey] = (),
    ) -> Approval:
        """Write the word on a plan down, once: a decision is never changed, only followed by another one.

        Raises LedgerError when there is one already.
        """
        waiting = self.approval(approval_id)
        if waiting is None or waiting.verdict is not Verdict.WAITING:
            raise LedgerError(f"Approval {approval_id} does not wait for a decision.")
        ceiling = ceiling or Ceiling()
        decided = replace(
            waiting, verdict=verdict, decided_at=self.now(), who=who, note=note, ceiling=ceiling
        )
        self.database.execute(
            "UPDATE approvals SET verdict = :verdict, decided_at = :decided_at, who = :who, note = :note, "
            "most_items = :items, most_purchases = :purchases, most_amount = :amount WHERE id = :id",
            {
                "verdict": verdict.value,
                "decided_at": decided.decided_at,
                "who": who,
                "note": note,
                "items": ceiling.items,
                "purchases": ceiling.purchases,
                "amount": ceiling.amount,
                "id": approval_id,
            },
        )
        self.database.execute_many(
            "UPDATE approval_items SET approved = 1 WHERE approval_id = :id AND item_key = :key",
            ({"id": approval_id, "key": key} for key in approved),
        )
        self._note(decided, f"approval_{verdict.value}")
        return decided

    def approval(self, approval_id: str) -> Approval | None:
        found = self._approvals("WHERE id = :id", {"id": approval_id})
        return found[0] if found else None

    def waiting_approval(self, flow_run_id: str) -> Approval | None:
        """The plan with which a flow run waits."""
        found = self._approvals(
            "WHERE flow_run_id = :flow_run_id AND verdict = 'waiting' ORDER BY asked_at DESC, id",
            {"flow_run_id": flow_run_id},
        )
        return found[0] if found else None

    def last_word(self, environment: str, catalog: str) -> Approval | None:
        """The last plan of a catalog that a person approved or rejected: only the last word counts."""
        found = self._approvals(
            "WHERE environment = :environment AND catalog = :catalog AND verdict IN ('approved', 'rejected') "
            "ORDER BY decided_at DESC, asked_at DESC, id LIMIT 1",
            {"environment": environment, "catalog": catalog},
        )
        return found[0] if found else None

    def approvals(self) -> list[Approval]:
        """All of them, the newest first."""
        return self._approvals("ORDER BY asked_at DESC, id", {})

    def approval_items(self, approval_id: str) -> dict[ItemKey, bool]:
        """The items of the plan that was put before a person, and whether the approval reaches to each."""
        rows = self.database.rows(
            "SELECT item_key, approved FROM approval_items WHERE approval_id = :id", {"id": approval_id}
        )
        return {ItemKey(key): bool(approved) for key, approved in rows}

    def draw(self, approval_id: str, intent: Intent, currency: str | None = None) -> None:
        """Take one purchase from an approval. Raises BudgetReached where it does not reach, and takes nothing."""
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
            remedy="Run again: what is left is put before a person as another plan.",
        )

    def put_back(self, approval_id: str, price: int) -> None:
        """Give one purchase back, of which nothing came."""
        self.database.execute(
            "UPDATE approvals SET purchases = purchases - 1, amount = amount - :price WHERE id = :id",
            {"id": approval_id, "price": price},
        )

    def _approvals(self, where: str, params: dict[str, Any]) -> list[Approval]:
        rows = self.database.rows(f"SELECT {_COLUMNS} FROM approvals {where}", params)  # noqa: S608
        return [_approval(row) for row in rows]

    def _note(self, approval: Approval, kind: str) -> None:
        """There is no run yet: the record goes by the approval's own ID."""
        told = {
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
        self.note(RunId(approval.id), kind, detail=json.dumps(told, ensure_ascii=False))


_ASKED = (
    "id",
    "environment",
    "catalog",
    "digest",
    "items",
    "expected",
    "worst",
    "asked_at",
    "lapses_at",
    "flow_run_id",
    "question",
)


def _approval(row: tuple[Any, ...]) -> Approval:
    asked = dict(zip(_ASKED, row, strict=False))
    verdict, decided_at, who, note, items, most, most_amount, purchases, amount = row[len(_ASKED) :]
    return Approval(
        **asked,
        verdict=Verdict(verdict),
        decided_at=decided_at,
        who=who,
        note=note,
        ceiling=Ceiling(items, most, most_amount),
        purchases=purchases,
        amount=amount,
    )
