"""The progress of a run in numbers, and why it begins nothing more."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from time import monotonic

from patternmill.ledger.brake import Pause
from patternmill.planning.plan import Plan, Reason
from patternmill.states import ROW_STAGES, Outcome, Stage


@dataclass
class Progress:
    """The counts of one run. Rows are those of the file; the rest is what this run did."""

    refused: int = 0
    #: Rows whose product existed before this run.
    done_before: int = 0
    #: Rows for which this run has something to do, and those of them that have ended.
    to_do: int = 0
    ended: int = 0
    #: Rows that a stop or a limit leaves for the next run.
    left_out: int = 0
    failed: int = 0
    in_flight: int = 0
    #: Failed attempts that were followed by another.
    tried_again: int = 0
    #: Items that this run made, and those that it could not make.
    made: Counter[Stage] = field(default_factory=Counter)
    items_failed: int = 0
    started: float = field(default_factory=monotonic)
    #: The number of Prefect's task runs that were begun for items and groups.
    task_runs: int = 0

    @classmethod
    def of(cls, plan: Plan) -> Progress:
        products = plan.reasons_of(Stage.PRODUCT)
        return cls(
            refused=plan.refused(),
            done_before=products[Reason.DONE],
            to_do=sum(1 for _ in plan.to_do()),
        )

    @property
    def rows_a_second(self) -> float:
        seconds = monotonic() - self.started
        return self.ended / seconds if seconds > 0 else 0.0

    def time_left(self, queued: int = 0) -> tuple[float, float] | None:
        """Return the least and the most seconds that are left; None while they are not known.

        They follow from the run's own rate once more rows have ended than are under way: till then all may end at once.
        `queued`: items in flight that still wait to be sent.
        """
        left = self.to_do - self.ended - self.left_out
        if not left:
            return 0.0, 0.0
        if self.ended >= max(_ENOUGH_ROWS, self.in_flight - queued):
            middle, spread = left / self.rows_a_second, 1 + _USUAL_SPREAD + self.ended**-0.5
            return middle / spread, middle * spread
        return None


#: The number of ended rows from which a rate is known, and the share by which the rest usually differs from it.
_ENOUGH_ROWS, _USUAL_SPREAD = 5, 0.1

#: The outcomes of halted runs, the gravest first.
_GRAVITY = (
    Outcome.CANCELLED,
    Outcome.FAILED,
    Outcome.PAUSED,
    Outcome.BUDGET_REACHED,
    Outcome.COMPLETED_WITH_FAILURES,
)

#: The code of a stop that a person requested.
STOPPED = "cancelled"


@dataclass(frozen=True)
class HaltReason:
    """The outcome that a run would have, and why."""

    outcome: Outcome
    code: str
    message: str


def paused(pause: Pause) -> HaltReason:
    """Return the reason to create nothing more of what a person has paused."""
    return HaltReason(Outcome.PAUSED, "paused", pause.message)


class Halt:
    """The stages at which no new item may be begun, and why. What is in flight is finished all the same."""

    def __init__(self) -> None:
        self._reasons: dict[Stage, HaltReason] = {}
        #: Why one purchase was not made although nothing is halted.
        self.kept_purchase: HaltReason | None = None

    def begin(self, reason: HaltReason, *, stages: tuple[Stage, ...] = tuple(Stage)) -> None:
        """Halt these stages. The first reason counts unless a graver one comes: a person's stop is the gravest.

        Without stages nothing is halted, and the reason is remembered all the same.
        """
        if not stages:
            self.kept_purchase = self.kept_purchase or reason
        for stage in stages:
            before = self._reasons.get(stage)
            if before is None or _GRAVITY.index(reason.outcome) < _GRAVITY.index(before.outcome):
                self._reasons[stage] = reason

    def lift(self, code: str) -> None:
        """Let items be begun again at the stages that were halted for this reason."""
        self._reasons = {stage: reason for stage, reason in self._reasons.items() if reason.code != code}

    def explain_stop(self, message: str) -> None:
        """Replace the message about a person's stop with what was learned about it since; other reasons stay."""
        for stage, reason in self._reasons.items():
            if reason.code == STOPPED:
                self._reasons[stage] = replace(reason, message=message)

    def halts(self, stage: Stage) -> bool:
        return stage in self._reasons

    @property
    def is_total(self) -> bool:
        return all(map(self.halts, ROW_STAGES))

    def forbids_sending(self, stage: Stage) -> bool:
        """Return whether intents must not be sent any more; those within a budget have reserved their part of it."""
        reason = self._reasons.get(stage)
        return reason is not None and reason.outcome is not Outcome.BUDGET_REACHED

    @property
    def why(self) -> str:
        """Return why something was not begun, as a text for people."""
        reason = self.reason or self.kept_purchase
        return reason.message if reason is not None else "the run did not come to it"

    @property
    def reason(self) -> HaltReason | None:
        return min(self._reasons.values(), key=lambda reason: _GRAVITY.index(reason.outcome), default=None)
