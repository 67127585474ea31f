"""What runs have reserved and spent, and the limits that no purchase exceeds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from patternmill.errors import BudgetReached
from patternmill.identifiers import RequestId, RunId
from patternmill.ledger.approvals import ApprovalTables
from patternmill.ledger.records import FirstPurchases, Intent, SpendingLimits
from patternmill.states import Stage
from patternmill.text import goods, money, plural

#: The code of BudgetReached where a limit is reached for second attempts only.
SECOND_ATTEMPT = "second_attempt"
_NOTHING: Mapping[Stage, int] = dict.fromkeys(Stage, 0)

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
class _SoFar:
    """What is spent or reserved: items of one stage and minor units of a run, minor units of a day."""

    items: int
    run_amount: int
    day_amount: int


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
            self._draw_on_approval(limits.approval, intent, limits.currency)
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
        self._unbook(environment, day_of(intended_at), run_id, stage, price)
        if approval is not None:
            self._return_to_approval(approval, price)

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

    def _refuse_over_limit(
        self, run_id: RunId, environment: str, intent: Intent, limits: SpendingLimits, day: str
    ) -> None:
        of_run, day_amount = self._spent(run_id, environment, day)
        spent = _SoFar(
            of_run.get(intent.stage, (0, 0))[0], sum(amount for _, amount in of_run.values()), day_amount
        )
        refusal = _refusal(intent, limits, spent, _NOTHING)
        if intent.attempt > 1 and self._failed_here(run_id, intent):
            refusal = refusal or self._refuse_second(run_id, intent, limits, spent)
            if refusal is not None:
                refusal.code = SECOND_ATTEMPT
        if refusal is not None:
            raise refusal

    def _failed_here(self, run_id: RunId, intent: Intent) -> bool:
        """Whether the attempt before failed in the same run."""
        return bool(self.database.rows(_FAILED_HERE, _about(run_id, intent)))

    def _refuse_second(
        self, run_id: RunId, intent: Intent, limits: SpendingLimits, spent: _SoFar
    ) -> BudgetReached | None:
        """What is outstanding is counted only where a limit does not cover the whole plan once more."""
        plan = {Stage.PATTERN: limits.first.patterns, Stage.PRODUCT: limits.first.products}
        if _refusal(intent, limits, spent, plan) is None:
            return None
        return _refusal(intent, limits, spent, self._outstanding(run_id, intent, limits.first))

    def _outstanding(self, run_id: RunId, intent: Intent, first: FirstPurchases) -> dict[Stage, int]:
        """How many first purchases of a run's plan are still to come, for other items than the intent's.

        A failed pattern makes the purchase of at least one product unnecessary.
        """
        begun, lost = dict.fromkeys(Stage, 0), 0
        for stage, its_begun, its_lost in self.database.rows(_BEGUN_AND_LOST, _about(run_id, intent)):
            begun[Stage(stage)] = its_begun
            lost += its_lost if Stage(stage) is Stage.PATTERN else 0
        return {
            Stage.PATTERN: max(0, first.patterns - begun[Stage.PATTERN]),
            Stage.PRODUCT: max(0, first.products - begun[Stage.PRODUCT] - lost),
        }

    def _spent(self, run_id: RunId, environment: str, day: str) -> tuple[dict[Stage, tuple[int, int]], int]:
        of_run: dict[Stage, tuple[int, int]] = {}
        day_amount = 0
        for its_day, its_run, stage, items, amount in self.database.rows(
            "SELECT day, run_id, stage, items, amount FROM spending "
            "WHERE environment = :environment AND (day = :day OR run_id = :run_id)",
            {"environment": environment, "day": day, "run_id": run_id},
        ):
            if its_run == run_id:
                before = of_run.get(Stage(stage), (0, 0))
                of_run[Stage(stage)] = (before[0] + items, before[1] + amount)
            if its_day == day:
                day_amount += amount
        return of_run, day_amount


def _refusal(
    intent: Intent, limits: SpendingLimits, spent: _SoFar, kept: Mapping[Stage, int]
) -> BudgetReached | None:
    """Why a purchase would exceed a limit; `kept`: how many of each stage have to remain possible after it."""
    limit = {Stage.PATTERN: limits.patterns, Stage.PRODUCT: limits.products}[intent.stage]
    if limit is not None and spent.items + 1 + kept[intent.stage] > limit:
        return BudgetReached(
            f"The limit of {plural(limit, intent.stage)} a run is reached{_kept_for_others(kept)}.",
            code=f"max_{intent.stage}s",
            remedy=f"Raise --max-{intent.stage}s and run the same command again.",
        )
    for amount, most, name, option in (
        (spent.run_amount, limits.run_amount, "this run", "--budget"),
        (spent.day_amount, limits.day_amount, "today", "PATTERNMILL_DAY_BUDGET"),
    ):
        if most is not None and amount + intent.price + _amount(kept, limits.first) > most:
            return BudgetReached(
                f"The budget of {money(most, limits.currency)} for {name} is reached: "
                f"{money(amount, limits.currency)} is spent or reserved, and the next {intent.stage} costs "
                f"{money(intent.price, limits.currency)}{_kept_for_others(kept)}.",
                code="budget",
                remedy=f"Raise {option} and run the same command again.",
            )
    return None


def _about(run_id: RunId, intent: Intent) -> dict[str, object]:
    return {"run_id": run_id, "key": intent.item_key, "attempt": intent.attempt}


def _amount(kept: Mapping[Stage, int], first: FirstPurchases) -> int:
    prices = {Stage.PATTERN: first.pattern_price, Stage.PRODUCT: first.product_price}
    return sum(count * prices[stage] for stage, count in kept.items())


def _kept_for_others(kept: Mapping[Stage, int]) -> str:
    """Why a second attempt may use less than the whole limit."""
    if not sum(kept.values()):
        return ""
    return f"; what is left is kept for {goods(kept[Stage.PATTERN], kept[Stage.PRODUCT])} of the plan"


def day_of(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).date().isoformat()
