"""Why no new item may be begun: the first reason counts, unless a graver one follows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass

from patternmill.states import Outcome, Stage

#: The gravest first.
_GRAVITY = (Outcome.CANCELLED, Outcome.FAILED, Outcome.BUDGET_REACHED)


@dataclass(frozen=True)
class HaltReason:
    """The outcome that a run would have, and why."""

    outcome: Outcome
    code: str
    message: str


#: Next to the stages, in what `Halt.on_record` returns.
_NO_STAGE = "held_back"


def halts_from(record: Mapping[str, Mapping[str, str]]) -> Iterator[tuple[tuple[Stage, ...], HaltReason]]:
    for stage, reason in record.items():
        stages = () if stage == _NO_STAGE else (Stage(stage),)
        yield stages, HaltReason(Outcome(reason["outcome"]), reason["code"], reason["message"])


class Halt:
    """For each stage, whether a new item may be begun. What is in flight is finished all the same."""

    def __init__(self) -> None:
        self._reasons: dict[Stage, HaltReason] = {}
        #: Why one purchase was not made, while nothing is halted.
        self.kept_purchase: HaltReason | None = None

    def begin(self, reason: HaltReason, *, stages: tuple[Stage, ...] = tuple(Stage)) -> None:
        """Halt these stages. The first reason counts, unless a graver one comes: a person's stop is the gravest.

        Without stages nothing is halted, and the reason is remembered all the same.
        """
        if not stages:
            self.kept_purchase = self.kept_purchase or reason
        for stage in stages:
            before = self._reasons.get(stage)
            if before is None or _GRAVITY.index(reason.outcome) < _GRAVITY.index(before.outcome):
                self._reasons[stage] = reason

    def halts(self, stage: Stage) -> bool:
        return stage in self._reasons

    @property
    def is_total(self) -> bool:
        return all(map(self.halts, Stage))

    def forbids_sending(self, stage: Stage) -> bool:
        """Whether what has an intent must not be sent any more; within a budget it was reserved, and may be."""
        reason = self._reasons.get(stage)
        return reason is not None and reason.outcome is not Outcome.BUDGET_REACHED

    def on_record(self) -> dict[str, dict[str, str]]:
        found = {stage.value: asdict(reason) for stage, reason in self._reasons.items()}
        return found | ({_NO_STAGE: asdict(self.kept_purchase)} if self.kept_purchase else {})

    @property
    def reason(self) -> HaltReason | None:
        return min(self._reasons.values(), key=lambda reason: _GRAVITY.index(reason.outcome), default=None)
