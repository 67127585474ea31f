"""What became of a row: its outcome, by the attempts at its items and the end of its run."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

import orjson
from pydantic import TypeAdapter

from patternmill.identifiers import ItemKey, RequestId
from patternmill.ledger.records import Attempt, RunRow
from patternmill.states import (
    PASSING_REFUSALS,
    REFUSED_ALIKE,
    REOPENED,
    RETRIABLE,
    UNCLEAR_REFUSAL,
    UNDECIDED,
    UNFINISHED_ROWS,
    AttemptState,
    Outcome,
    RowStatus,
    Stage,
)
from patternmill.text import joined

Attempts = Mapping[ItemKey, tuple[Attempt, ...]]


def last_attempt(attempts: Attempts, key: ItemKey | None) -> Attempt | None:
    return attempts[key][-1] if key is not None and key in attempts else None


def outcome_of_row(row: RunRow, attempts: Attempts, outcome: Outcome | None) -> RowOutcome:
    """The outcome of a row by what is known now; `outcome` is the run's, None when it crashed."""
    kept = orjson.loads(row.row)
    problems = kept.get("problems")
    if problems is not None:
        return RowOutcome(
            RowStatus.REFUSED,
            problems[0]["code"],
            "; ".join(problem["message"] for problem in problems),
            "; ".join(dict.fromkeys(problem["remedy"] for problem in problems if problem["remedy"])),
        )
    needed, product = furthest_attempt(attempts, row.needed), last_attempt(attempts, row.product_key)
    found = row_outcome(needed, product, outcome)
    is_made = needed is not None and needed.state is AttemptState.SUCCEEDED
    may_begin = product is None or product.state is AttemptState.FAILED or product.state in REOPENED
    if UNDECIDED in kept and may_begin and is_made:
        found = _UNDECIDED
    remedy = found.remedy
    if product is None and needed is not None and _may_miss_its_reference(row, needed):
        remedy = f"{remedy} {_SAVE_ANEW}"
    items = tuple([ItemOutcome.of(stage, key, last_attempt(attempts, key)) for stage, key in row.chain])
    return RowOutcome(found.status, found.error_code, found.error, remedy, items)


_SAVE_ANEW = "If the service no longer has the reference, save the picture anew: with other bytes it is uploaded again."


def _may_miss_its_reference(row: RunRow, needed: Attempt) -> bool:
    """Whether the service refused a pattern that a reference guides."""
    guided = dict(zip(row.needed[1:], row.stages, strict=False)).get(needed.item_key) is Stage.REFERENCE
    return guided and needed.state is AttemptState.REJECTED


def furthest_attempt(attempts: Attempts, needed: Iterable[ItemKey]) -> Attempt | None:
    """How far a row has come before its product: the last attempt at the last item that was begun.

    `needed`: what its product is built on, in the order in which it is made.
    """
    found = None
    for attempt in (last_attempt(attempts, key) for key in needed):
        begun = attempt is not None and attempt.state is not AttemptState.WITHDRAWN
        found = attempt if begun or found is None else found
    return found


@dataclass(frozen=True, slots=True)
class ItemOutcome:
    """How far one item of a row is, by the last attempt at it."""

    stage: Stage
    key: ItemKey
    #: None, and all that follows: nothing was requested.
    state: AttemptState | None = None
    #: How many there were.
    attempts: int = 0
    request_id: RequestId | None = None
    job_id: str | None = None
    #: The ID of what was made.
    result_id: str | None = None
    picture_url: str | None = None
    #: When it came into this state, in Unix seconds.
    since: float | None = None

    @classmethod
    def of(cls, stage: Stage, key: ItemKey, last: Attempt | None) -> ItemOutcome:
        if last is None:
            return cls(stage, key)
        made = (last.result_id, last.picture_url)
        return cls(stage, key, last.state, last.attempt, last.request_id, last.job_id, *made, last.since)


@dataclass(frozen=True, slots=True)
class RowOutcome:
    """What became of a row: its status with the reason and the remedy, and how far its items are."""

    status: RowStatus
    error_code: str | None = None
    error: str | None = None
    remedy: str | None = None
    #: In the order in which they are made; none where the row was refused.
    items: tuple[ItemOutcome, ...] = ()

    def as_json(self) -> str:
        """Its status first, which is counted without the rest."""
        return orjson.dumps(self).decode()

    @classmethod
    def of_row(cls, row: RunRow) -> RowOutcome:
        """As it was written when the row's run ended."""
        assert row.outcome is not None, "its run has ended"
        return _OUTCOME.validate_json(row.outcome)


def is_retriable(outcome: RowOutcome, unwanted: Collection[ItemKey]) -> bool:
    """Return whether another run would do something for the row as it is.

    `unwanted`: the patterns that a person decided against, on which nothing more is begun.
    """
    if outcome.status not in RETRIABLE or not outcome.items or outcome.error_code == UNDECIDED:
        return False
    is_open = outcome.items[-1].state in (AttemptState.INTENDED, AttemptState.ACCEPTED)
    return is_open or not any(item.key in unwanted for item in outcome.items)


_OUTCOME = TypeAdapter(RowOutcome)
#: Of rows that a person's decision may change: those whose product no run has made.
WITHOUT_END = UNFINISHED_ROWS | {RowStatus.HELD, RowStatus.FAILED}
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
        "The run did not wait longer for the service's job, or failed before it ended; the job's ID is kept.",
        "Run the same command again: it asks for the same job.",
    ),
    RowStatus.IN_DOUBT: RowOutcome(
        RowStatus.IN_DOUBT,
        "in_doubt",
        "A request was sent and not clearly answered, so that it is unknown whether the service carried it out.",
        "Run the same command again: it sends the same request, which is not bought twice. "
        "Once it is too old for that, decide with `patternmill settle`.",
    ),
}


_UNDECIDED = RowOutcome(
    RowStatus.WAITING,
    UNDECIDED,
    "A person decides first: its pattern has several takes and none is picked, or it was decided against.",
    "Look at them with `patternmill look`; import again after a pick, or make another take with `patternmill remake`.",
)


def row_outcome(pattern: Attempt | None, product: Attempt | None, outcome: Outcome | None) -> RowOutcome:
    """The outcome of a row that was not refused; `outcome` is the run's, None when it crashed.

    `pattern` is the last attempt at what the product is built on, as far as that has come.
    """
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
                remedy_of(attempt),
            )
        case AttemptState.HELD:
            return RowOutcome(
                RowStatus.HELD,
                attempt.error_code or "held",
                attempt.error or "The service's answers about this item contradict one another.",
                remedy_of(attempt),
            )
        case AttemptState.ACCEPTED if attempt.error_code is not None:
            remedy = "Run the same command again: it asks for the same job first."
            return RowOutcome(RowStatus.WAITING, attempt.error_code, attempt.error, remedy)
        case AttemptState.ACCEPTED:
            stopped = outcome in (None, Outcome.CANCELLED)
            return _unfinished(RowStatus.CANCELLED if stopped else RowStatus.WAITING, attempt)
        case AttemptState.INTENDED | AttemptState.WITHDRAWN:
            return _unfinished(RowStatus.IN_DOUBT, attempt)


def _unfinished(status: RowStatus, attempt: Attempt) -> RowOutcome:
    """With the last that the service said of it, where that ended nothing."""
    found = _UNFINISHED[status]
    return replace(found, error=joined(found.error, attempt.error))


def remedy_of(attempt: Attempt) -> str:
    """Return what a person can do about an item that ended without what it was to make."""
    if attempt.state is AttemptState.HELD:
        return "Look at it with `patternmill explain`, then decide with `patternmill settle`."
    if attempt.error_code == UNCLEAR_REFUSAL:
        return (
            "Do not change the row before you know whether it exists: look into the service's console. "
            "Run the same command again: the same request is sent once more."
        )
    if attempt.error_code == REFUSED_ALIKE:
        return "If that is about these rows, correct them; if it is about the account, run the same command again."
    if attempt.error_code in PASSING_REFUSALS:
        return (
            "Run the same command again: the same request is sent once more. If it stays, check the address."
        )
    if attempt.state is AttemptState.REJECTED:
        return "Correct the row as the service says and import failures.csv."
    return "Import failures.csv to try again, or change the row first."
