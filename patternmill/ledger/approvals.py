"""Plans that were put before a person, what became of them, and what was bought under them."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from patternmill.errors import BudgetReached, LedgerError, Overtaken
from patternmill.identifiers import ItemKey
from patternmill.ledger.database import Tables
from patternmill.ledger.records import Approval, Intent
from patternmill.states import Verdict

_COLUMNS = ", ".join(Approval.__dataclass_fields__)


def refuse_overtaken(approval: Approval) -> None:
    """Raise Overtaken when a newer run ended the question about a plan."""
    if approval.verdict is Verdict.OVERTAKEN:
        raise Overtaken(
            f"Plan {approval.short} was overtaken by {approval.who}: the question about it has ended.",
            remedy="Begin a new run if it is still wanted. Nothing was bought.",
        )


class Approvals(Tables):
    """Approvals, each with the items of its plan; once one is decided, only what is bought under it changes."""

    #: The items of the plan that was asked about last: each purchase asks.
    _items: Mapping[str, frozenset[ItemKey]] = {}

    def request(self, approval: Approval, items: Collection[ItemKey]) -> None:
        """Put a plan on record that waits for a decision, with the items that it would make.

        The request of a flow run replaces what that run asked before, and ends every other question of the catalog.
        """
        sequence = self._next_sequence()
        if approval.flow_run_id is not None:
            self._withdraw(approval.flow_run_id)
            self.overtake(approval.environment, approval.catalog, f"flow run {approval.flow_run_id}")
        self._insert("approvals", **{**vars(approval), "verdict": approval.verdict.value}, sequence=sequence)
        self.keep_document(f"plan {approval.id}", json.dumps(list(items)).encode())

    def _withdraw(self, flow_run_id: str) -> None:
        """Delete what a flow run asked and nobody answered."""
        last = self.last_of(flow_run_id)
        if last is not None and last.verdict is Verdict.WAITING:
            self.database.execute("DELETE FROM approvals WHERE id = :id", id=last.id)
            self.database.execute("DELETE FROM documents WHERE name = :name", name=f"plan {last.id}")

    def overtake(self, environment: str, catalog: str, by: str) -> None:
        """End the questions about plans of a catalog that nobody answered; `by` is the newer run, for people.

        They keep their places among the decisions: a later approval of the same items still counts.
        """
        self.database.lock("approvals")
        self.database.execute(
            "UPDATE approvals SET verdict = 'overtaken', decided_at = :at, who = :by "
            "WHERE environment = :environment AND catalog = :catalog AND verdict = 'waiting'",
            at=self.now(),
            by=by,
            environment=environment,
            catalog=catalog,
        )

    def decide(self, approval_id: str, verdict: Verdict, *, who: str, note: str | None = None) -> Approval:
        """Record the decision. It is never changed: another request has to follow it.

        Raises Overtaken when a newer run ended the question, and LedgerError when it was decided before.
        """
        sequence = self._next_sequence()
        waiting = self.get(approval_id)
        if waiting is not None:
            refuse_overtaken(waiting)
        if waiting is None or waiting.verdict is not Verdict.WAITING:
            raise LedgerError(f"Approval {approval_id} does not wait for a decision.")
        decision: dict[str, Any] = {"decided_at": self.now(), "who": who, "note": note}
        self._update("approvals", {"id": approval_id}, verdict=verdict.value, sequence=sequence, **decision)
        return replace(waiting, verdict=verdict, **decision)

    def _next_sequence(self) -> int:
        self.database.lock("approvals")
        return int(self.database.rows("SELECT coalesce(max(sequence), 0) FROM approvals")[0][0]) + 1

    def get(self, approval_id: str) -> Approval | None:
        """Return an approval by its ID."""
        return next(iter(self._select("WHERE id = :id", id=approval_id)), None)

    def last_of(self, flow_run_id: str) -> Approval | None:
        """Return the last plan that a flow run asked about."""
        where = "WHERE flow_run_id = :flow_run_id ORDER BY sequence DESC"
        return next(iter(self._select(where, flow_run_id=flow_run_id)), None)

    def find(self, environment: str | None = None, catalog: str | None = None) -> list[Approval]:
        """Return the approvals of one catalog, or all, in the order of decisions or, while they wait, of requests."""
        where = (
            "WHERE coalesce(:environment, environment) = environment AND coalesce(:catalog, catalog) = catalog "
            "ORDER BY sequence"
        )
        return self._select(where, environment=environment, catalog=catalog)

    def items(self, approval_id: str) -> frozenset[ItemKey]:
        """Return the items of the plan, which never change."""
        if approval_id not in self._items:
            plan = self.document(f"plan {approval_id}")
            if plan is None:
                return frozenset()
            self._items = {approval_id: frozenset(json.loads(plan))}
        return self._items[approval_id]

    def covering(self, approval_id: str, intent: Intent) -> Approval:
        """Return the approval that a purchase rests on.

        Raises LedgerError where there is none, and BudgetReached where its plan lacks the item.
        """
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

    def _select(self, where: str, **params: str | None) -> list[Approval]:
        rows = self.database.rows(f"SELECT {_COLUMNS} FROM approvals {where}", params)
        return list(map(Approval.of, rows))
