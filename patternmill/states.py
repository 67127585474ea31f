"""The states of attempts, rows and runs: their names, their legal changes, and which are final."""

from __future__ import annotations

import re
from enum import StrEnum


class Stage(StrEnum):
    """The kind of an item, in the order of purchase. The values are part of the request IDs: never change them."""

    REFERENCE = "reference"  #: An uploaded picture that guides patterns.
    PATTERN = "pattern"
    REFINEMENT = "refinement"  #: A pattern made of another one.
    PRODUCT = "product"
    CHECKOUT = "checkout"  #: A checkout of products, which a person pays.


#: The stages made by operations for which the interface promises no safe retry.
UNPROMISED_STAGES = frozenset({Stage.REFERENCE, Stage.REFINEMENT})
#: The stages that a run makes for its rows.
ROW_STAGES = (Stage.REFERENCE, Stage.PATTERN, Stage.REFINEMENT, Stage.PRODUCT)


class AttemptState(StrEnum):
    """One attempt at one item, as the ledger knows it."""

    INTENDED = "intended"  #: On record; nobody knows whether the service has it until it answers.
    WITHDRAWN = "withdrawn"  #: On record, and certainly never sent.
    ACCEPTED = "accepted"  #: The service answered with a job ID.
    SUCCEEDED = "succeeded"  #: The job succeeded, and its result is on record. Final.
    FAILED = "failed"  #: The service said that the job failed. Another one may follow if it says so again.
    REJECTED = "rejected"  #: The service refused the request as invalid, so that no job exists.
    HELD = "held"  #: A person decides: answers contradict one another, or it must not be sent again.


ATTEMPT_CHANGES: dict[AttemptState, frozenset[AttemptState]] = {
    AttemptState.INTENDED: frozenset(
        {AttemptState.WITHDRAWN, AttemptState.ACCEPTED, AttemptState.REJECTED, AttemptState.HELD}
    ),
    AttemptState.WITHDRAWN: frozenset({AttemptState.INTENDED}),
    AttemptState.ACCEPTED: frozenset({AttemptState.SUCCEEDED, AttemptState.FAILED, AttemptState.HELD}),
    AttemptState.REJECTED: frozenset({AttemptState.INTENDED}),
    AttemptState.HELD: frozenset({AttemptState.INTENDED, AttemptState.ACCEPTED, AttemptState.FAILED}),
    AttemptState.SUCCEEDED: frozenset(),
    AttemptState.FAILED: frozenset({AttemptState.ACCEPTED}),
}

#: The states of an attempt that was sent, or may have been, and that has not ended.
OPEN_STATES = frozenset({AttemptState.INTENDED, AttemptState.ACCEPTED})
#: The states in which the service has something for the item, or may have.
MAY_EXIST = OPEN_STATES | {AttemptState.SUCCEEDED, AttemptState.HELD}
#: The states in which nothing exists at the service, and the same request may be sent later.
REOPENED = frozenset({AttemptState.WITHDRAWN, AttemptState.REJECTED})
#: The error code of a refusal by a redirect, which some services answer to what they have executed.
REDIRECTED = "redirected"
#: The error code of a refusal that names a field or a value of the row.
INVALID_REQUEST = "invalid_request"
#: The error code of a refusal that names nothing of the row.
UNCLEAR_REFUSAL = "unclear_refusal"
#: The error code of a refusal that names something of its row, where several rows were refused in the same way.
REFUSED_ALIKE = "refused_alike"
#: The error codes of refusals that may not be about the item (a redirect, a proxy's page, a wrong address, no reason):
#: the same command sends the same request again.
PASSING_REFUSALS = frozenset({REDIRECTED, "wrong_address", "proxy_page", UNCLEAR_REFUSAL, REFUSED_ALIKE})
#: The error codes of failed attempts whose jobs are asked about again. No new attempt was made: others failed too, or
#: the service did not confirm the failure.
HELD_BACK, NOT_CONFIRMED = "held_back", "failure_not_confirmed"
#: The error code of an attempt that may have been executed, where nobody promises that it may be sent again.
NOT_REPEATABLE = "not_repeatable"
#: The error code of an open request that a person decided to send again, until a run begins to.
TO_RESEND = "to_resend"
#: The error code of an attempt that a person gave up: its job, if there is one, is not looked for again.
WRITTEN_OFF = "written_off"


class RowStatus(StrEnum):
    """The status of a row in its results."""

    SUCCEEDED = "succeeded"  #: The product exists.
    FAILED = "failed"  #: Its job failed, or the service refused its request.
    REFUSED = "refused"  #: Refused by our own checks; nothing was asked of the service.
    NOT_STARTED = "not_started"  #: Nothing was begun for this row.
    CANCELLED = "cancelled"  #: Something was begun, and the run was stopped; the next run resumes it.
    IN_DOUBT = "in_doubt"  #: A request was sent and has no answer; the next run resends it.
    WAITING = "waiting"  #: The service has a job that did not end in time; the next run polls it again.
    TO_CHOOSE = "to_choose"  #: A person picks one of its pattern's takes first; it keeps its product.
    DISCARDED = "discarded"  #: A person rejected every take of its pattern; its product is not ordered.
    HELD = "held"  #: A person decides: answers contradict one another, or it must not be sent again.

    @property
    def words(self) -> str:
        """Return the status for a sentence: nobody cancelled a row whose run was stopped or killed."""
        return "not finished" if self is RowStatus.CANCELLED else self.value.replace("_", " ")


#: Statuses that another run can change without an edit of the row.
UNFINISHED_ROWS = frozenset(
    {RowStatus.NOT_STARTED, RowStatus.CANCELLED, RowStatus.IN_DOUBT, RowStatus.WAITING}
)

#: Statuses that are neither failures of a run nor left over by it: made, or left to a person's decision.
COMPLETE_ROWS = frozenset({RowStatus.SUCCEEDED, RowStatus.TO_CHOOSE, RowStatus.DISCARDED})

#: The rows of failures.csv: no other run changes them until a person edits the row or decides about it.
FAILURES = frozenset(RowStatus) - UNFINISHED_ROWS - COMPLETE_ROWS
#: Rows that are gathered by cause: the failures, and those where the service has still to answer.
WITH_CAUSE = FAILURES | {RowStatus.IN_DOUBT, RowStatus.WAITING}

#: Statuses that a retry can change; any other row is made already, or waits for an edit or a decision.
RETRIABLE = UNFINISHED_ROWS | {RowStatus.FAILED}


class Outcome(StrEnum):
    """The outcome of a run. The values are the names of the Prefect states too."""

    COMPLETED = "Completed"
    COMPLETED_WITH_FAILURES = "CompletedWithFailures"
    FAILED = "Failed"
    BUDGET_REACHED = "BudgetReached"
    CANCELLED = "Cancelled"
    PAUSED = "Paused"  #: The brake was set, and nothing was created from then on. Not Prefect's own Paused.
    SKIPPED_OVERLAP = "SkippedOverlap"

    @property
    def words(self) -> str:
        """Return the outcome for a sentence: `Completed with failures`."""
        return re.sub(r"(?<=[a-z])[A-Z]", lambda letter: f" {letter.group().lower()}", self.value)


class Verdict(StrEnum):
    """The decision of a person about a plan."""

    WAITING = "waiting"
    APPROVED = "approved"  #: Up to a ceiling.
    REJECTED = "rejected"
    OVERTAKEN = "overtaken"  #: A newer run of the catalog ended the question; nobody approved the plan.


class Decided(StrEnum):
    """A person's decision on a pattern that was made, after looking at it. The last one counts."""

    PICK = "pick"
    REJECT = "reject"
    AGAIN = "again"  #: Another take of it is wanted.
    UNDECIDED = "undecided"  #: An earlier decision is taken back.
    LATER = "later"  #: Looked at, and put off.


#: The exit codes of the command line.
EXIT_CODES: dict[Outcome, int] = {
    Outcome.COMPLETED: 0,
    Outcome.FAILED: 1,
    Outcome.COMPLETED_WITH_FAILURES: 3,
    Outcome.BUDGET_REACHED: 3,
    Outcome.PAUSED: 3,
    Outcome.SKIPPED_OVERLAP: 4,
    Outcome.CANCELLED: 130,
}
EXIT_REFUSED = 2
