"""How far a run is, in numbers."""

from __future__ import annotations

from dataclasses import dataclass, field
from time import monotonic

from patternmill.planning.plan import TO_DO, Plan, Reason
from patternmill.states import Stage


@dataclass
class Progress:
    """Counts of one run. Rows are those of the file; the rest is what this run did."""

    rows: int = 0
    refused: int = 0
    #: Rows whose product existed.
    done_before: int = 0
    #: Rows that this run has something to do for, and those of them that have ended.
    to_do: int = 0
    ended: int = 0
    products: int = 0
    patterns: int = 0
    failed: int = 0
    in_flight: int = 0
    #: Failed attempts that were followed by another.
    tried_again: int = 0
    items_ended: int = 0
    items_failed: int = 0
    started: float = field(default_factory=monotonic)
    #: What the run waits for, in a few words.
    notice: str = ""

    @classmethod
    def of(cls, plan: Plan) -> Progress:
        products = plan.product_counts()
        return cls(
            rows=len(plan.rows),
            refused=plan.refused(),
            done_before=products[Reason.DONE],
            to_do=sum(count for reason, count in products.items() if reason in TO_DO),
        )

    def made(self, stage: Stage) -> None:
        self.items_ended += 1
        count = f"{stage}s"
        setattr(self, count, getattr(self, count) + 1)

    def item_failed(self) -> None:
        self.items_ended += 1
        self.items_failed += 1

    @property
    def seconds(self) -> float:
        return monotonic() - self.started

    @property
    def rows_a_second(self) -> float:
        return self.ended / self.seconds if self.seconds > 0 else 0.0

    @property
    def seconds_left(self) -> float | None:
        """Estimated from this run's own rate; None before the first row has ended."""
        left = self.to_do - self.ended
        if not left:
            return 0.0
        return left / self.rows_a_second if self.ended else None
