"""Feedback in the record of events: the exchanges that failures rest on, and each report before it is sent."""

from __future__ import annotations

from enum import StrEnum

from patternmill.identifiers import RequestId, RunId
from patternmill.ledger.ledger import Ledger

#: The kind of the event that keeps the exchange by which an attempt failed.
ANSWERED = "answered"


class FeedbackEvent(StrEnum):
    """The kinds of events about a report."""

    #: It is about to be sent; whether it was delivered is unknown until another event follows.
    INTENDED = "feedback_intended"
    SENT = "feedback_sent"
    #: It may have been delivered, and is not sent again.
    IN_DOUBT = "feedback_in_doubt"
    #: It was certainly not delivered: the failure may be reported again.
    NOT_SENT = "feedback_not_sent"


def intend_feedback(ledger: Ledger, run_id: RunId, request_id: RequestId, report_id: str) -> bool:
    """Record that a report about an attempt is about to be sent; return False when one was, or may have been."""
    with ledger.transaction():
        ledger.database.lock(f"feedback {request_id}")
        rows = ledger.database.rows(
            "SELECT kind FROM events WHERE request_id = :request_id AND kind LIKE 'feedback%' "
            "ORDER BY seq DESC LIMIT 1",
            request_id=request_id,
        )
        if rows and rows[0][0] != FeedbackEvent.NOT_SENT:
            return False
        ledger.record_event(run_id, FeedbackEvent.INTENDED, request_id, detail=report_id)
    return True


def last_answer(ledger: Ledger, request_id: RequestId) -> tuple[float, str] | None:
    """Return the last exchange on record of an attempt, as JSON, and when it was."""
    rows = ledger.database.rows(
        "SELECT at, detail FROM events WHERE request_id = :request_id AND kind = :kind ORDER BY seq DESC LIMIT 1",
        request_id=request_id,
        kind=ANSWERED,
    )
    return (rows[0][0], rows[0][1]) if rows else None
