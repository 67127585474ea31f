"""The outcome of a row: its status and the reason, from the last attempts at its pattern and its product."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from patternmill.ledger.records import Attempt
from patternmill.states import PASSING_REFUSALS, AttemptState, Outcome, RowStatus, Stage


@dataclass(frozen=True)
class RowOutcome:
    """A row's status with the reason and the remedy, as results show them."""

    status: RowStatus
    error_code: str | None = None
    error: str | None = None
    remedy: str | None = None

    @classmethod
    def from_json(cls, kept: Mapping[str, Any]) -> RowOutcome:
        """As it was fixed when its run ended."""
        return cls(RowStatus(kept["status"]), kept["error_code"], kept["error"], kept["remedy"])


_UNFINISHED = {
    RowStatus.NOT_STARTED: RowOutcome(
        RowStatus.NOT_STARTED,
        "not_started",
        "The run ended before this row was begun; nothing was bought for it.",
        "Run the same command again.",
    ),
    RowStatus.CANCELLED: RowOutcome(
        RowStatus.CANCELLED,
        "stopped",
        "The run was stopped, or reached a limit, while this row was being made; what was paid for is kept.",
        "Run the same command again, with a higher limit if one was reached: it resumes there.",
    ),
    RowStatus.WAITING: RowOutcome(
        RowStatus.WAITING,
        "gave_up_waiting",
        "The service's job did not end in the time allowed; its job ID is kept.",
        "Run the same command again: it asks for the same job.",
    ),
    RowStatus.IN_DOUBT: RowOutcome(
        RowStatus.IN_DOUBT,
        "in_doubt",
        "A request was sent and its answer was lost, so that it is unknown whether the service has it.",
        "Run the same command again: it sends the same request, which is not bought twice. "
        "Once it is too old for that, decide with `patternmill settle`.",
    ),
}


def row_outcome(pattern: Attempt | None, product: Attempt | None, outcome: Outcome | None) -> RowOutcome:
    """The outcome of a row that was not refused; `outcome` is the run's, None when it crashed."""
    if product is not None and product.state is not AttemptState.WITHDRAWN:
        return _item_outcome(product, Stage.PRODUCT, outcome)
    if pattern is None or pattern.state is AttemptState.WITHDRAWN:
        return _UNFINISHED[RowStatus.NOT_STARTED]
    if pattern.state is AttemptState.SUCCEEDED:
        return _UNFINISHED[RowStatus.CANCELLED]
    return _item_outcome(pattern, Stage.PATTERN, outcome)


def _item_outcome(attempt: Attempt, stage: Stage, outcome: Outcome | None) -> RowOutcome:
    match attempt.state:
        case AttemptState.SUCCEEDED:
            return RowOutcome(RowStatus.SUCCEEDED)
        case AttemptState.FAILED | AttemptState.REJECTED:
            return RowOutcome(
                RowStatus.FAILED,
                attempt.error_code or f"{stage}_failed",
                attempt.error or f"The service could not make the {stage}.",
                _remedy(attempt),
            )
        case AttemptState.HELD:
            return RowOutcome(
                RowStatus.HELD,
                attempt.error_code or "held",
                attempt.error or "The service's answers about this item contradict one another.",
                "Look at it with `patternmill explain`, then decide with `patternmill settle`.",
            )
        case AttemptState.ACCEPTED:
            stopped = outcome in (None, Outcome.CANCELLED)
            return _UNFINISHED[RowStatus.CANCELLED if stopped else RowStatus.WAITING]
        case AttemptState.INTENDED | AttemptState.WITHDRAWN:
            return _UNFINISHED[RowStatus.IN_DOUBT]


def _remedy(attempt: Attempt) -> str:
    if attempt.error_code in PASSING_REFUSALS:
        return (
            "Run the same command again: the same request is sent once more. If it stays, check the address."
        )
    if attempt.state is AttemptState.REJECTED:
        return "Correct the row as the service says and import failures.csv."
    return "Import failures.csv to try again, or change the row first."
