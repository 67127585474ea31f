"""What runs have reserved and spent, and the limits that no purchase passes."""

from __future__ import annotations

from datetime import UTC, datetime

from patternmill.errors import BudgetReached
from patternmill.identifiers import RequestId, RunId
from patternmill.ledger.approvals import ApprovalBook
from patternmill.ledger.records import Intent, Limits
from patternmill.states import Stage


class SpendingBook(ApprovalBook):
    """Reservations, by day and run. Amounts are in minor units."""

    def reserve(self, run_id: RunId, environment: str, intent: Intent, limits: Limits, day: str) -> None:
        if limits != Limits():
            self.database.lock(f"spending {environment}")
        of_run, day_amount = self._spent(run_id, environment, day)
        items, _ = of_run.get(intent.stage, (0, 0))
        run_amount = sum(amount for _, amount in of_run.values())
        limit = {Stage.PATTERN: limits.patterns, Stage.PRODUCT: limits.products}[intent.stage]
        if limit is not None and items + 1 > limit:
            raise BudgetReached(
                f"The limit of {limit} {intent.stage}s a run is reached.",
                code=f"max_{intent.stage}s",
                remedy=f"Raise --max-{intent.stage}s and run the same command again.",
            )
        for spent, most, name, option in (
            (run_amount, limits.run_amount, "this run", "--budget"),
            (day_amount, limits.day_amount, "today", "PATTERNMILL_DAY_BUDGET"),
        ):
            if most is not None and spent + intent.price > most:
                raise BudgetReached(
                    f"The budget of {most} for {name} is reached: {spent} is spent or reserved, "
                    f"and the next {intent.stage} costs {intent.price} (minor units).",
                    code="budget",
                    remedy=f"Raise {option} and run the same command again.",
                )
        if limits.approval is not None:
            self.draw(limits.approval, intent)
        self.database.run(
            "INSERT INTO spending (environment, day, run_id, stage, items, amount) "
            "VALUES (:environment, :day, :run_id, :stage, 1, :price) "
            "ON CONFLICT (environment, day, run_id, stage) "
            "DO UPDATE SET items = spending.items + 1, amount = spending.amount + :price",
            {
                "environment": environment,
                "day": day,
                "run_id": run_id,
                "stage": intent.stage.value,
                "price": intent.price,
            },
        )

    def give_back(self, request_id: RequestId) -> None:
        """Give back what was reserved for a request of which nothing came."""
        run_id, price, intended_at, stage, environment, approval = self.database.rows(
            "SELECT a.run_id, a.price, a.intended_at, i.stage, i.environment, a.approval_id FROM attempts a "
            "JOIN items i ON i.key = a.item_key WHERE a.request_id = :request_id",
            {"request_id": request_id},
        )[0]
        self.database.run(
            "UPDATE spending SET items = items - 1, amount = amount - :price "
            "WHERE environment = :environment AND day = :day AND run_id = :run_id AND stage = :stage",
            {
                "price": price,
                "environment": environment,
                "day": day_of(intended_at),
                "run_id": run_id,
                "stage": stage,
            },
        )
        if approval is not None:
            self.put_back(approval, price)

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


def day_of(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).date().isoformat()
