"""The limits of purchases: those of a run, to which its plan is cut, and the plans that people have approved."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from patternmill.errors import BudgetReached, LedgerError, Overtaken
from patternmill.identifiers import ItemKey
from patternmill.ledger.database import Tables
from patternmill.ledger.records import Approval, Attempt, SpendingLimits
from patternmill.money import Limit, money, sums
from patternmill.states import Stage, Verdict
from patternmill.text import goods, plural

#: The code of BudgetReached where a limit is reached for second attempts only.
SECOND_ATTEMPT = "second_attempt"


@dataclass(frozen=True)
class Spent:
    """Money reserved with intents and not released, in minor units by currency."""

    items: Counter[Stage] = field(default_factory=Counter)
    amounts: Counter[str] = field(default_factory=Counter)

    @classmethod
    def of(cls, rows: Iterable[Sequence[Any]]) -> Spent:
        """Return the sums of reservations, each a stage, a currency, and numbers of items and minor units."""
        items, amounts = Counter[Stage](), Counter[str]()
        for stage, currency, count, amount in rows:
            items[Stage(stage)] += int(count)
            amounts[currency] += int(amount)
        return cls(+items, +amounts)


def prices_of(attempts: Iterable[Attempt]) -> Counter[str]:
    """Return what was reserved for attempts, by currency."""
    return sum((Counter({attempt.currency: attempt.price}) for attempt in attempts), Counter())


_REMEDY = "Raise {} and run the same command again."


def limits_of(
    limits: SpendingLimits,
    prices: Mapping[Stage, int],
    of_run: Spent,
    of_day: Spent,
    approval: Approval | None = None,
) -> list[Limit]:
    """Return all limits of a run with what is left of each.

    `of_day` is what all runs have spent or reserved today.
    """
    left_of_each = []
    if limits.items is not None:
        left = limits.items - of_run.items.total()
        name = f"the limit of {plural(limits.items, 'item')}"
        remedy = _REMEDY.format("--max-items")
        left_of_each.append(Limit("max_items", name, remedy, left, dict.fromkeys(Stage, 1)))
    for most, spent, day, option in (
        (limits.run_amount, of_run, "", "--budget"),
        (limits.day_amount, of_day, " for today", "PATTERNMILL_DAY_BUDGET"),
    ):
        if most is None:
            continue
        name, used = f"the budget of {money(most, limits.currency)}{day}", spent.amounts[limits.unit]
        remedy, left = _REMEDY.format(option), most - used
        if others := sums(spent.amounts - Counter({limits.unit: used})):
            name += f", which cannot be compared with the {others} spent or reserved,"
            remedy, left = f"Set PATTERNMILL_CURRENCY as it was, or leave out {option}.", 0
        elif used:
            name += f", of which {money(used, limits.currency)} is spent or reserved,"
        left_of_each.append(Limit("budget", name, remedy, left, prices, is_money=True))
    if approval is not None:
        name = f"the approval of plan {approval.short} by {approval.who}"
        remedy = "Run again: what is left needs another approval."
        requests = approval.most_purchases - approval.purchases
        amount = approval.worst - approval.amount if approval.currency == limits.unit else 0
        left_of_each.append(Limit("approval", name, remedy, requests, dict.fromkeys(Stage, 1)))
        left_of_each.append(Limit("approval", name, remedy, amount, prices, is_money=True))
    return left_of_each


#: The share of a day's budget, in percent, at which people are warned.
_NEARLY_ALL = 80


def nearly_spent(limits: SpendingLimits, of_day: Spent, more: int = 0) -> str | None:
    """Return a warning that most of a day's budget is spent or reserved, with `more`; None: enough is left."""
    used = of_day.amounts[limits.unit] + more
    if not limits.day_amount or used * 100 < limits.day_amount * _NEARLY_ALL:
        return None
    share = used * 100 // limits.day_amount
    return f"{share} % of today's budget of {money(limits.day_amount, limits.currency)} is spent or reserved."


def refusal(
    stage: Stage, price: int, left: list[Limit], limits: SpendingLimits, planned: Mapping[Stage, int]
) -> BudgetReached | None:
    """Return why a purchase would exceed a limit; after it, `planned` items of each stage must remain possible."""
    for limit in left:
        takes = price if limit.is_money else 1
        if not takes or limit.covers(planned, takes):
            continue
        cost = f": the next {stage} costs {money(takes, limits.currency)}" if limit.is_money else ""
        for_others = (
            f"; what is left is kept for {goods(planned)} of the plan" if sum(planned.values()) else ""
        )
        message = f"{limit.name[:1].upper()}{limit.name[1:]} is reached{cost}{for_others}."
        return BudgetReached(message, code=limit.code, remedy=limit.remedy)
    return None


def day_of(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).date().isoformat()


# -- approvals


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

    #: The items of the last plan that was read, kept because each purchase needs them.
    _items: Mapping[str, frozenset[ItemKey]] = {}

    def request(self, approval: Approval, items: Collection[ItemKey]) -> None:
        """Record a plan that waits for a decision, with the items that it would make.

        The request of a flow run replaces what that run asked before, and ends every other question of the catalog.
        """
        sequence = self._next_sequence()
        if approval.flow_run_id is not None:
            last = self.last_of(approval.flow_run_id)
            if last is not None and last.verdict is Verdict.WAITING:
                self.database.execute("DELETE FROM approvals WHERE id = :id", id=last.id)
                self.database.execute("DELETE FROM documents WHERE name = :name", name=f"plan {last.id}")
            self.overtake(approval.environment, approval.catalog, f"flow run {approval.flow_run_id}")
        self._insert("approvals", **{**vars(approval), "verdict": approval.verdict.value}, sequence=sequence)
        self.keep_document(f"plan {approval.id}", json.dumps(list(items)).encode())

    def overtake(self, environment: str, catalog: str, by: str) -> None:
        """End the undecided questions about plans of a catalog; `by` names the newer run, for people.

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
        """Record the decision. It is never changed: another decision needs another request.

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
        """Return the approvals of one catalog, or all, in the order of decisions (of requests while they wait)."""
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

    def covering(self, approval_id: str, key: ItemKey, stage: Stage) -> Approval:
        """Return the approval that the purchase of an item rests on.

        Raises LedgerError if there is none, and BudgetReached if its plan lacks the item.
        """
        approval = self.get(approval_id)
        if approval is None or approval.verdict is not Verdict.APPROVED:
            raise LedgerError(f"Approval {approval_id} is not in the ledger, or approves nothing.")
        if key not in self.items(approval_id):
            raise BudgetReached(
                f"Plan {approval.short}, which {approval.who} approved, lacks the {stage}.",
                code="approval",
                remedy="Run again: what is left needs another approval.",
            )
        return approval

    def _select(self, where: str, **params: str | None) -> list[Approval]:
        rows = self.database.rows(f"SELECT {_COLUMNS} FROM approvals {where}", params)
        return list(map(Approval.of, rows))
