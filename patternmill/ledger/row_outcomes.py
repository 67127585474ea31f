"""The outcomes of rows, by the attempts at their items and the end of their run."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import orjson
from pydantic import TypeAdapter

from patternmill.identifiers import ItemKey, RequestId
from patternmill.ledger.records import Attempt, RowDecision, RunRow
from patternmill.states import (
    OPEN_STATES,
    PASSING_REFUSALS,
    REFUSED_ALIKE,
    REOPENED,
    RETRIABLE,
    UNCLEAR_REFUSAL,
    UNFINISHED_ROWS,
    AttemptState,
    Outcome,
    RowStatus,
    Stage,
)
from patternmill.text import ALSO, joined

#: The last attempts, by item.
Attempts = Mapping[ItemKey, Attempt]


@dataclass(frozen=True, slots=True)
class ItemOutcome:
    """The progress of one item of a row, by the last attempt at it."""

    stage: Stage
    key: ItemKey
    #: None, like all fields below, if nothing was requested.
    state: AttemptState | None = None
    #: The number of attempts so far.
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
    """The end of a row, or its present state: status, reason, remedy, and the progress of its items."""

    status: RowStatus
    error_code: str | None = None
    error: str | None = None
    remedy: str | None = None
    #: In the order in which they are made; none where the row was refused.
    items: tuple[ItemOutcome, ...] = ()
    #: Set for rows that a person decides about: what the catalog's product is built on, then that product.
    kept: tuple[ItemOutcome, ...] = ()
    #: For a row that a person decides about: the takes that its run makes to choose from.
    takes: tuple[ItemOutcome, ...] = ()

    def as_json(self) -> str:
        """Return the outcome as JSON, with the status first, so that rows can be counted without parsing the rest."""
        return orjson.dumps(self).decode()

    @classmethod
    def parse(cls, text: str) -> RowOutcome:
        """Return the outcome in a text of the ledger."""
        return _OUTCOME.validate_json(text)


_OUTCOME = TypeAdapter(RowOutcome)
#: The statuses of rows that a person's decision may change, because no run has made their product.
WITHOUT_END = UNFINISHED_ROWS | {RowStatus.HELD, RowStatus.FAILED}
#: With fewer takes there is nothing to choose from.
_LEAST_TAKES = 2
_SAVE_ANEW = "If the service no longer has the reference, save the picture anew: with other bytes it is uploaded again."
#: The code, the reason and the remedy of each status.
_TEXTS = {
    RowStatus.NOT_STARTED: (
        "not_started",
        "The run ended before this row was begun; nothing was bought for it.",
        "Run the same command again.",
    ),
    RowStatus.CANCELLED: (
        "stopped",
        "The run was stopped, or reached a limit, while this row was being made; what was paid for is kept.",
        "Run the same command again, with a higher limit if one was reached: it resumes there.",
    ),
    RowStatus.WAITING: (
        "gave_up_waiting",
        "The run did not wait longer for the service's job, or failed before it ended; the job's ID is kept.",
        "Run the same command again: it asks for the same job.",
    ),
    RowStatus.IN_DOUBT: (
        "in_doubt",
        "A request was sent and not clearly answered, so that it is unknown whether the service carried it out.",
        "Run the same command again: it sends the same request, which is not bought twice. "
        "Once it is too old for that, decide with `patternmill settle`.",
    ),
    RowStatus.TO_CHOOSE: (
        None,
        "Its pattern has several takes, and none of them is picked.",
        "Pick one with `patternmill look`, and run the same command again.",
    ),
    RowStatus.DISCARDED: (
        None,
        "Every take of its pattern was rejected; nothing more is made for it.",
        "Take a rejection back with `patternmill look`, or make another take with `patternmill remake`.",
    ),
}


def outcome_of_row(
    row: RunRow, attempts: Attempts, outcome: Outcome | None, kept: tuple[ItemOutcome, ...] = ()
) -> RowOutcome:
    """Return the outcome of a row as of now.

    `outcome` is the run's, None when it crashed; `kept` what the catalog has for a row that a person decides about.
    """
    problems = orjson.loads(row.row).get("problems")
    if problems is not None:
        return RowOutcome(RowStatus.REFUSED, problems[0]["code"], *_fault_texts(problems))
    needed = furthest_attempt(attempts, [key for _, key in row.needed])
    product = attempts.get(row.product_key) if row.product_key is not None else None
    result = row_outcome(needed, product, outcome)
    decision = row.decision
    takes = decision.takes if decision is not None else ()
    if decision is not None and (
        decision.has_product or _may_begin(product) or _is_dropped(decision, product)
    ):
        last = [attempts.get(key) for key in takes]
        result = _outcome_of_takes(last, decision, row_outcome(needed, None, outcome), outcome)
    remedy = result.remedy
    if product is None and needed is not None and _may_miss_its_reference(row, needed):
        remedy = f"{remedy} {_SAVE_ANEW}"
    return replace(
        result,
        remedy=remedy,
        items=tuple([ItemOutcome.of(stage, key, attempts.get(key)) for stage, key in row.chain]),
        kept=kept if result.status in (RowStatus.TO_CHOOSE, RowStatus.DISCARDED) else (),
        takes=tuple([ItemOutcome.of(Stage.PATTERN, key, attempts.get(key)) for key in takes]),
    )


def _fault_texts(problems: Sequence[Mapping[str, str]]) -> tuple[str, str]:
    """Return the message and the remedy of a refused row; further faults follow the remedy of the first."""
    first, *others = problems
    also = (f"{ALSO}{joined(fault['message'], fault['remedy'])}" for fault in others)
    return first["message"], joined(first["remedy"], *also)


def _is_dropped(decision: RowDecision, product: Attempt | None) -> bool:
    """Return whether a product was made although every take of its pattern has been rejected since."""
    is_made = product is not None and product.state is AttemptState.SUCCEEDED
    return is_made and decision.status is RowStatus.DISCARDED


def _may_begin(attempt: Attempt | None) -> bool:
    """Return whether an item does not exist and is not being made."""
    return attempt is None or attempt.state is AttemptState.FAILED or attempt.state in REOPENED


def _outcome_of_takes(
    takes: Sequence[Attempt | None], decision: RowDecision, before: RowOutcome, outcome: Outcome | None
) -> RowOutcome:
    """Return the outcome of a row for which no product is made, by the last attempts at the takes to choose from.

    `before` is the outcome without them, which counts until one of them is begun.
    """
    if decision.status is RowStatus.DISCARDED:
        return _with_text(RowStatus.DISCARDED)
    begun = [take for take in takes if take is not None and take.state is not AttemptState.WITHDRAWN]
    missing = [take for take in begun if take.state is not AttemptState.SUCCEEDED]
    # Look at unended takes first: once two are made, a person can choose, even if others have failed.
    missing.sort(key=lambda take: take.state in (AttemptState.FAILED, AttemptState.REJECTED))
    if missing and (not _may_begin(missing[0]) or len(begun) - len(missing) < _LEAST_TAKES):
        return _item_outcome(missing[0], Stage.PATTERN, outcome)
    if len(begun) < len(takes):
        return _with_text(RowStatus.CANCELLED) if begun else before
    return _with_text(RowStatus.TO_CHOOSE)


def _may_miss_its_reference(row: RunRow, needed: Attempt) -> bool:
    """Return whether the service refused a pattern that a reference guides."""
    keys = [key for _, key in row.needed]
    before = keys.index(needed.item_key) - 1
    is_guided = before >= 0 and row.needed[before][0] is Stage.REFERENCE
    return is_guided and needed.state is AttemptState.REJECTED


def furthest_attempt(attempts: Attempts, needed: Iterable[ItemKey]) -> Attempt | None:
    """Return the last attempt at the last item begun among those that a row's product is built on.

    `needed` has the keys of these items, in the order in which they are made.
    """
    furthest = None
    for attempt in map(attempts.get, needed):
        is_begun = attempt is not None and attempt.state is not AttemptState.WITHDRAWN
        furthest = attempt if is_begun or furthest is None else furthest
    return furthest


def row_outcome(pattern: Attempt | None, product: Attempt | None, outcome: Outcome | None) -> RowOutcome:
    """Return the outcome of a row that was not refused; `outcome` is the run's, None when it crashed.

    `pattern` is the last attempt at what the product is built on, as far as that has come.
    """
    if product is not None and product.state is not AttemptState.WITHDRAWN:
        return _item_outcome(product, Stage.PRODUCT, outcome)
    if pattern is None or pattern.state is AttemptState.WITHDRAWN:
        return _with_text(RowStatus.NOT_STARTED)
    if pattern.state is AttemptState.SUCCEEDED:
        return _with_text(RowStatus.CANCELLED)
    return _item_outcome(pattern, Stage.PATTERN, outcome)


def _item_outcome(attempt: Attempt, stage: Stage, outcome: Outcome | None) -> RowOutcome:
    code, error = attempt.error_code, attempt.error
    match attempt.state:
        case AttemptState.SUCCEEDED:
            return RowOutcome(RowStatus.SUCCEEDED)
        case AttemptState.FAILED | AttemptState.REJECTED:
            error = error or f"The service could not make the {stage}."
            return RowOutcome(RowStatus.FAILED, code or f"{stage}_failed", error, remedy_of(attempt))
        case AttemptState.HELD:
            error = error or "The service's answers about this item contradict one another."
            return RowOutcome(RowStatus.HELD, code or "held", error, remedy_of(attempt))
        case AttemptState.ACCEPTED if code is not None:
            remedy = "Run the same command again: it asks for the same job first."
            return RowOutcome(RowStatus.WAITING, code, error, remedy)
        case AttemptState.ACCEPTED:
            is_stopped = outcome in (None, Outcome.CANCELLED)
            return _with_text(RowStatus.CANCELLED if is_stopped else RowStatus.WAITING, error)
        case AttemptState.INTENDED | AttemptState.WITHDRAWN:
            return _with_text(RowStatus.IN_DOUBT, error)


def _with_text(status: RowStatus, more: str | None = None) -> RowOutcome:
    """Return an outcome with the text of its status, and `more` that the service said last."""
    code, error, remedy = _TEXTS[status]
    return RowOutcome(status, code, joined(error, more), remedy)


def remedy_of(attempt: Attempt) -> str:
    """Return what a person can do about an item that ended without a result."""
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


def is_retriable(outcome: RowOutcome, without_product: Collection[ItemKey]) -> bool:
    """Return whether another run would do something for the row as it is.

    `without_product`: the patterns on which no run begins a product, because of what people decided about them.
    """
    if outcome.status not in RETRIABLE or not outcome.items:
        return False
    has_open = outcome.items[-1].state in OPEN_STATES or any(
        take.state in {None, AttemptState.WITHDRAWN, *OPEN_STATES} for take in outcome.takes
    )
    return has_open or not any(item.key in without_product for item in outcome.items)
