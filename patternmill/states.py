"""The states of attempts, rows and runs: their names, their legal changes, and which are final."""

from __future__ import annotations

import re
from enum import StrEnum


class Stage(StrEnum):
    """What an item makes, in the order of purchase. The values are part of the request IDs: never change them."""

    #: An uploaded picture that guides patterns.
    REFERENCE = "reference"
    PATTERN = "pattern"
    #: A pattern made of another one.
    REFINEMENT = "refinement"
    PRODUCT = "product"
    #: A checkout of products, which a person pays.
    CHECKOUT = "checkout"


#: What a run makes for its rows.
ROW_STAGES = (Stage.REFERENCE, Stage.PATTERN, Stage.REFINEMENT, Stage.PRODUCT)


class AttemptState(StrEnum):
    """One attempt at one item, as the ledger knows it."""

    #: The request is on record; whether the service has it is unknown until it answers.
    INTENDED = "intended"
    #: On record, and certainly never sent.
    WITHDRAWN = "withdrawn"
    #: The service answered with a job ID.
    ACCEPTED = "accepted"
    #: The service reported that the job succeeded, and its result ID. Final.
    SUCCEEDED = "succeeded"
    #: The service reported that the job failed. Once it says so again a next attempt (a new request ID) may begin.
    FAILED = "failed"
    #: The service refused the request as invalid, so that no job exists.
    REJECTED = "rejected"
    #: A person decides: answers contradict one another, or it may have been executed and is not to be sent again.
    HELD = "held"


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

#: Nothing exists at the service, and the same request may be sent later.
REOPENED = frozenset({AttemptState.WITHDRAWN, AttemptState.REJECTED})
#: The error code of a refusal by a redirect, which some services answer to what they have executed.
REDIRECTED = "redirected"
#: The error code of a refusal that names a field or a value of the row.
INVALID_REQUEST = "invalid_request"
#: The error code of a refusal that names nothing of the row.
UNCLEAR_REFUSAL = "unclear_refusal"
#: The error code of one that names something of the row, where several rows were refused in the same way.
REFUSED_ALIKE = "refused_alike"
#: Error codes of refusals that may not be about the item (a redirect, a proxy's page, a wrong address, no reason): the
#: same request is sent again by the same command.
PASSING_REFUSALS = frozenset({REDIRECTED, "wrong_address", "proxy_page", UNCLEAR_REFUSAL, REFUSED_ALIKE})


class RowStatus(StrEnum):
    """The status of a row in its results."""

    #: The product exists.
    SUCCEEDED = "succeeded"
    #: Its job failed, or the service refused its request.
    FAILED = "failed"
    #: Refused by our own checks; nothing was asked of the service.
    REFUSED = "refused"
    #: Nothing was begun for this row.
    NOT_STARTED = "not_started"
    #: Something was begun, and the run was stopped; the next run resumes it.
    CANCELLED = "cancelled"
    #: A request was sent, and it is unknown whether it was executed; the next run resends it.
    IN_DOUBT = "in_doubt"
    #: The service has a job that did not end in time, and the next run polls it again; or a person decides first, and
    #: the next run builds on what is picked (`undecided`).
    WAITING = "waiting"
    #: Answers contradict one another, or what was sent may not be sent again: a person decides.
    HELD = "held"

    @property
    def words(self) -> str:
        """As it reads in a sentence: a row whose run was stopped or killed was cancelled by nobody."""
        return "not finished" if self is RowStatus.CANCELLED else self.value.replace("_", " ")


#: Statuses that another run can change without an edit of the row.
UNFINISHED_ROWS = frozenset(
    {RowStatus.NOT_STARTED, RowStatus.CANCELLED, RowStatus.IN_DOUBT, RowStatus.WAITING}
)

#: What a retry can change: the rest is made already, or waits for an edit or a decision.
RETRIABLE = UNFINISHED_ROWS | {RowStatus.FAILED}


class Outcome(StrEnum):
    """How a run ended. The values are the names of the Prefect states too."""

    COMPLETED = "Completed"
    COMPLETED_WITH_FAILURES = "CompletedWithFailures"
    FAILED = "Failed"
    BUDGET_REACHED = "BudgetReached"
    CANCELLED = "Cancelled"
    SKIPPED_OVERLAP = "SkippedOverlap"

    @property
    def words(self) -> str:
        """As it reads in a sentence: `Completed with failures`."""
        return re.sub(r"(?<=[a-z])[A-Z]", lambda letter: f" {letter.group().lower()}", self.value)


class Verdict(StrEnum):
    """A person's decision on a plan."""

    WAITING = "waiting"
    #: Up to a ceiling.
    APPROVED = "approved"
    REJECTED = "rejected"


class Decided(StrEnum):
    """A person's decision on a pattern that was made, after looking at it. The last one counts."""

    PICK = "pick"
    REJECT = "reject"
    #: Another take of it is wanted.
    AGAIN = "again"
    #: An earlier decision is taken back.
    UNDECIDED = "undecided"
    #: Looked at, and put off.
    LATER = "later"


#: The error code of a row whose product waits until a person has decided about takes of its pattern.
UNDECIDED = "undecided"
#: Nothing is built on it, and `remake` makes another take.
UNWANTED = frozenset({Decided.REJECT, Decided.AGAIN})

#: Of the command line.
EXIT_CODES: dict[Outcome, int] = {
    Outcome.COMPLETED: 0,
    Outcome.FAILED: 1,
    Outcome.COMPLETED_WITH_FAILURES: 3,
    Outcome.BUDGET_REACHED: 3,
    Outcome.SKIPPED_OVERLAP: 4,
    Outcome.CANCELLED: 130,
}
EXIT_REFUSED = 2

#: The error codes of attempts whose job failed, as the service said, and is asked about again: no new attempt was made
#: because the others failed too, or because the service did not say so again.
HELD_BACK, NOT_CONFIRMED = "held_back", "failure_not_confirmed"
#: The error code of an attempt that may have been executed, where nobody promises that it may be sent again.
NOT_REPEATABLE = "not_repeatable"
#: The error code of an open request that a person decided to send again, until a run begins to.
TO_RESEND = "to_resend"
#: What is made by operations of which the interface promises no safe retry.
UNPROMISED_STAGES = frozenset({Stage.REFERENCE, Stage.REFINEMENT})

#: The error code of an attempt that a person gave up: its job, if there is one, is not looked for again.
WRITTEN_OFF = "written_off"
