"""The states of an attempt, a row and a run, and which changes are legal."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class State(StrEnum):
    """The state of one attempt at one item, as the ledger knows it."""

    INTENDED = "intended"  #: On record, so it may have been sent. Resent until the service answers.
    ACCEPTED = "accepted"  #: The service named a job for it.
    SUCCEEDED = "succeeded"  #: The job ended well, and its result is on record. Final.
    FAILED = "failed"  #: The service says that the job failed. Another attempt may follow.
    REJECTED = "rejected"  #: The service refused it, so nothing exists. The same request may be sent again.
    HELD = "held"  #: Something may exist, and only a person can say.
    WRITTEN_OFF = "written_off"  #: A person gave it up. It stays paid for; only `retry` goes beyond.


#: The states from which a state may be entered.
ENTERED_FROM: Mapping[State, frozenset[State]] = {
    State.INTENDED: frozenset({State.REJECTED, State.HELD}),
    State.ACCEPTED: frozenset({State.INTENDED, State.HELD, State.FAILED}),
    State.SUCCEEDED: frozenset({State.ACCEPTED}),
    State.FAILED: frozenset({State.ACCEPTED}),
    State.REJECTED: frozenset({State.INTENDED}),
    State.HELD: frozenset({State.INTENDED, State.ACCEPTED, State.FAILED}),
    State.WRITTEN_OFF: frozenset({State.INTENDED, State.ACCEPTED, State.HELD}),
}
OPEN = frozenset({State.INTENDED, State.ACCEPTED})


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt at an item. `amount` is its price in ten-thousandths; times are seconds since 1970.

    `driver` is the run that sends and polls it; `intended_at` is when its age began to count.
    """

    request_id: str
    item_id: str
    number: int
    stage: str
    operation: str
    environment: str
    catalog: str
    driver: str
    label: str
    body: str
    state: State
    job_id: str | None = None
    result_id: str | None = None
    code: str = ""
    message: str = ""
    amount: int = 0
    currency: str = ""
    intended_at: float = 0.0
    accepted_at: float | None = None
    ended_at: float | None = None


class Status(StrEnum):
    """The status of a row: derived from the attempts at its items, never stored."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    REFUSED = "refused"  #: By our own checks: nothing was asked of the service.
    HELD = "held"
    IN_DOUBT = "in_doubt"  #: A request has no answer yet; the next run sends the same one again.
    WAITING = "waiting"  #: A job has not ended yet; the next run follows it.
    NOT_STARTED = "not_started"


NEEDS_A_PERSON = frozenset({Status.FAILED, Status.REFUSED, Status.HELD})


class Outcome(StrEnum):
    """How a run ended; the values are the names of its Prefect states too."""

    COMPLETED = "Completed"
    COMPLETED_WITH_FAILURES = "CompletedWithFailures"
    FAILED = "Failed"
    BUDGET_REACHED = "BudgetReached"
    PAUSED = "Paused"
    CANCELLED = "Cancelled"
    REFUSED = "Refused"  #: Before anything was bought.
    SKIPPED_OVERLAP = "SkippedOverlap"


#: The exit codes of commands whose runs ended so; of all others it is 3.
EXIT_CODES: Mapping[str, int] = {
    "Completed": 0,
    "Failed": 1,
    "Refused": 2,
    "SkippedOverlap": 4,
    "Cancelled": 130,
}


@dataclass(frozen=True, slots=True)
class CatalogRow:
    """A row of a catalog as it is now: what the ledger stores of it, and what follows from its attempts.

    `key` is the folded sku, or `# ` and the row's number where the sku is unusable. `cells` is a JSON array in the
    order of `header`, the JSON array of the header of the sheet that it came from last. `content` is a JSON object
    with `prompt`, `category`, `category_id` and `selections`, and `refusal` one with `code`, `message`, `remedy` and
    `column`; empty where there is none. `code` and `message` say why the row has no product. `pattern` is the first
    take of its pattern, `take` the one that it wants, and `verdict` a person's about that. `wants` and `has` are
    items, the others are the service's IDs: `product_id` and `pattern_id` of the item that it wants, `has_product_id`
    and `has_pattern_id` of what it has; `has_content` is what that was made of, where it wants another: a content
    whose category is an ID.
    """

    key: str
    sku: str
    position: int
    number: int
    run: str
    header: str
    cells: str
    content: str
    likeness: str
    pattern: str
    take: int
    refusal: str
    wants: str
    built_on: str
    has: str
    since: float
    retired: float | None
    status: str
    code: str
    message: str
    verdict: str
    note: str
    product_id: str
    pattern_id: str
    has_product_id: str
    has_pattern_id: str
    has_content: str = ""
