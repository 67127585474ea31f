"""What may be spent and what is: limits, and what runs have reserved under them and under approvals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from patternmill.errors import BudgetReached
from patternmill.identifiers import RequestId, RunId
from patternmill.ledger.approvals import ApprovalTables
from patternmill.ledger.records import Approval, Intent, SpendingLimits
from patternmill.limits import Limit
from patternmill.money import money
from patternmill.states import Stage
from patternmill.text import goods, plural

#: The code of BudgetReached where a limit is reached for second attempts only.
SECOND_ATTEMPT = "second_attempt"
_NOTHING: Mapping[Stage, int] = {}

_FAILED_HERE = (
    "SELECT 1 FROM attempts b JOIN events e ON e.request_id = b.request_id "
    "WHERE b.item_key = :key AND b.attempt = :attempt - 1 AND e.run_id = :run_id AND e.kind = 'failed' LIMIT 1"
)
#: By stage, of a run's attempts: those that no attempt of the same item which failed in the run went before, and
#: those of other items that failed, or are held, and have none after them.
_BEGUN_AND_LOST = (
    "SELECT i.stage, sum(CASE WHEN a.attempt = 1 OR NOT EXISTS ("
    "SELECT 1 FROM attempts b JOIN events e ON e.request_id = b.request_id "
    "WHERE b.item_key = a.item_key AND b.attempt = a.attempt - 1 AND e.run_id = :run_id AND e.kind = 'failed') "
    "THEN 1 ELSE 0 END), "
    "sum(CASE WHEN a.state IN ('failed', 'rejected', 'held') AND a.item_key <> :key AND NOT EXISTS "
    "(SELECT 1 FROM attempts b WHERE b.item_key = a.item_key AND b.attempt > a.attempt) THEN 1 ELSE 0 END) "
    "FROM attempts a JOIN items i ON i.key = a.item_key WHERE a.run_id = :run_id GROUP BY i.stage"
)


@dataclass(frozen=True)
class Spent:
    """What was reserved with intents, and not released. The amount is in minor units."""

    items: Counter[Stage] = field(default_factory=Counter)
    amount: int = 0

    def __add__(self, other: Spent) -> Spent:
        return Spent(self.items + other.items, self.amount + other.amount)


def spent_of(stage: str, items: int, amount: int) -> Spent:
    return Spent(Counter({Stage(stage): int(items)}), int(amount))


class SpendingTable(ApprovalTables):
    """Reservations, by day and run. Amounts are in minor units."""

    def reserve(
        self, run_id: RunId, environment: str, intent: Intent, limits: SpendingLimits, day: str
    ) -> None:
        """Reserve the price of a request. Raises BudgetReached, and reserves nothing, where a limit is reached.

        A second attempt leaves untouched what the run's plan still has to buy for the first time.
        """
        if limits != SpendingLimits():
            self.database.lock(f"spending {environment}")
            self._refuse_over_limit(run_id, environment, intent, limits, day)
        if limits.approval is not None:
            self.draw_on_approval(limits.approval, intent.price)
        self._book(environment, day, run_id, intent.stage.value, intent.price)

    def move_reservation(self, request_id: RequestId, to: str) -> None:
        """A price stays reserved for the run that wrote the intent, on the day that its attempt now names."""
        run_id, price, intended_at, stage, environment, _ = self._reservation(request_id)
        if day_of(intended_at) != to:
            self._unbook(environment, day_of(intended_at), run_id, stage, price)
            self._book(environment, to, run_id, stage, price)

    def release_reservation(self, request_id: RequestId) -> None:
        """Return what was reserved for a request that made nothing."""
        run_id, price, intended_at, stage, environment, approval = self._reservation(request_id)
        # First, as where it is reserved: of two machines none then waits for what the other one has locked.
        self.database.lock(f"spending {environment}")
        self._unbook(environment, day_of(intended_at), run_id, stage, price)
        if approval is not None:
            self.return_to_approval(approval, price)

    def _reservation(self, request_id: RequestId) -> tuple[Any, ...]:
        found = self._row(
            "SELECT a.run_id, a.price, a.intended_at, i.stage, i.environment, a.approval_id FROM attempts a "
            "JOIN items i ON i.key = a.item_key WHERE a.request_id = :request_id",
            request_id=request_id,
        )
        assert found is not None, "an attempt in the ledger has reserved its price"
        return found

    def _book(self, environment: str, day: str, run_id: str, stage: str, price: int) -> None:
        self.database.execute(
            "INSERT INTO spending (environment, day, run_id, stage, items, amount) "
            "VALUES (:environment, :day, :run_id, :stage, 1, :price) "
            "ON CONFLICT (environment, day, run_id, stage) "
            "DO UPDATE SET items = spending.items + 1, amount = spending.amount + excluded.amount",
            {"environment": environment, "day": day, "run_id": run_id, "stage": stage, "price": price},
        )

    def _unbook(self, environment: str, day: str, run_id: str, stage: str, price: int) -> None:
        self.database.execute(
            "UPDATE spending SET items = items - 1, amount = amount - :price "
            "WHERE environment = :environment AND day = :day AND run_id = :run_id AND stage = :stage",
            {"environment": environment, "day": day, "run_id": run_id, "stage": stage, "price": price},
        )

    def spent_today(self, environment: str) -> int:
        """What all runs of an environment have reserved today (UTC), in minor units."""
        ((amount,),) = self.database.rows(
            "SELECT coalesce(sum(amount), 0) FROM spending WHERE environment = :environment AND day = :day",
            {"environment": environment, "day": day_of(self.now())},
        )
        return int(amount)

    def spent_by_run(self, run_id: RunId) -> Spent:
        """What was reserved for a run's requests, and not released."""
        rows = self.database.rows(
            "SELECT stage, sum(items), sum(amount) FROM spending WHERE run_id = :run_id GROUP BY stage",
            {"run_id": run_id},
        )
        return sum((spent_of(*row) for row in rows), Spent())

    def failed_attempts(self, run_id: RunId) -> int:
        """How many of a run's requests the service refused, or ended as failed."""
        query = "SELECT count(*) FROM attempts WHERE run_id = :run_id AND state IN ('failed', 'rejected')"
        return int(self.database.rows(query, {"run_id": run_id})[0][0])

    def _refuse_over_limit(
        self, run_id: RunId, environment: str, intent: Intent, limits: SpendingLimits, day: str
    ) -> None:
        approval = self.approval_of(limits.approval, intent) if limits.approval is not None else None
        left = limits_of(limits, limits.prices, *self._spent(run_id, environment, day), approval)
        is_second = intent.attempt > 1 and self._failed_here(run_id, intent)
        refusal = _refusal(intent, left, limits, _NOTHING)
        # What is outstanding is counted only where a limit does not cover the whole plan once more.
        if refusal is None and is_second and _refusal(intent, left, limits, limits.first) is not None:
            refusal = _refusal(intent, left, limits, self._outstanding(run_id, intent, limits.first))
        if refusal is not None:
            refusal.code = SECOND_ATTEMPT if is_second else refusal.code
            raise refusal

    def _failed_here(self, run_id: RunId, intent: Intent) -> bool:
        """Whether the attempt before failed in the same run."""
        return bool(self.database.rows(_FAILED_HERE, _about(run_id, intent)))

    def _outstanding(self, run_id: RunId, intent: Intent, first: Mapping[Stage, int]) -> dict[Stage, int]:
        """How many first purchases of a run's plan are still to come, for other items than the intent's.

        A failed pattern, or what else a product is built on, makes the purchase of at least one product unnecessary.
        """
        begun: Counter[Stage] = Counter()
        for stage, its_begun, its_lost in self.database.rows(_BEGUN_AND_LOST, _about(run_id, intent)):
            begun[Stage(stage)] += its_begun
            begun[Stage.PRODUCT] += 0 if Stage(stage) is Stage.PRODUCT else its_lost
        return {stage: max(0, count - begun[stage]) for stage, count in first.items()}

    def _spent(self, run_id: RunId, environment: str, day: str) -> tuple[Spent, int]:
        """What is spent or reserved: by a run, and the minor units of a day."""
        of_run = Spent()
        day_amount = 0
        for its_day, its_run, stage, items, amount in self.database.rows(
            "SELECT day, run_id, stage, items, amount FROM spending "
            "WHERE environment = :environment AND (day = :day OR run_id = :run_id)",
            {"environment": environment, "day": day, "run_id": run_id},
        ):
            if its_run == run_id:
                of_run += spent_of(stage, items, amount)
            if its_day == day:
                day_amount += amount
        return of_run, day_amount


_REMEDY = "Raise {} and run the same command again."


def limits_of(
    limits: SpendingLimits,
    prices: Mapping[Stage, int],
    of_run: Spent,
    day_amount: int,
    approval: Approval | None = None,
) -> list[Limit]:
    """All limits of a run, as its plan is cut to them and as each purchase is held to them, with what is left of each.

    `day_amount`: spent or reserved today, by all runs.
    """
    found = []
    if limits.items is not None:
        left = limits.items - of_run.items.total()
        name = f"the limit of {plural(limits.items, 'item')}"
        found.append(Limit("max_items", name, _REMEDY.format("--max-items"), left, dict.fromkeys(Stage, 1)))
    for most, used, day, option in (
        (limits.run_amount, of_run.amount, "", "--budget"),
        (limits.day_amount, day_amount, " for today", "PATTERNMILL_DAY_BUDGET"),
    ):
        if most is not None:
            of_it = f", of which {money(used, limits.currency)} is spent or reserved," if used else ""
            name = f"the budget of {money(most, limits.currency)}{day}{of_it}"
            found.append(Limit("budget", name, _REMEDY.format(option), most - used, prices, is_money=True))
    if approval is not None:
        name = f"the approval of plan {approval.short} by {approval.who}"
        remedy = "Run again: what is left needs another approval."
        requests, amount = approval.most_purchases - approval.purchases, approval.worst - approval.amount
        found.append(Limit("approval", name, remedy, requests, dict.fromkeys(Stage, 1)))
        found.append(Limit("approval", name, remedy, amount, prices, is_money=True))
    return found


def _refusal(
    intent: Intent, left: list[Limit], limits: SpendingLimits, kept: Mapping[Stage, int]
) -> BudgetReached | None:
    """Why a purchase would exceed a limit; `kept`: how many of each stage have to remain possible after it."""
    for limit in left:
        takes = intent.price if limit.is_money else 1
        if not takes or limit.covers(kept, takes):
            continue
        cost = f": the next {intent.stage} costs {money(takes, limits.currency)}" if limit.is_money else ""
        for_others = f"; what is left is kept for {goods(kept)} of the plan" if sum(kept.values()) else ""
        message = f"{limit.name[:1].upper()}{limit.name[1:]} is reached{cost}{for_others}."
        return BudgetReached(message, code=limit.code, remedy=limit.remedy)
    return None


def _about(run_id: RunId, intent: Intent) -> dict[str, object]:
    return {"run_id": run_id, "key": intent.item_key, "attempt": intent.attempt}


def day_of(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).date().isoformat()
