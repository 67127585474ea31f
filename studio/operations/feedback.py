"""Feedback: reports about the interface itself."""

from __future__ import annotations

from studio.answers import FeedbackAnswer
from studio.operations.call import Call
from studio.operations.redaction import redact
from studio.records import Feedback
from studio.requests import CreateFeedback


def create(call: Call, body: CreateFeedback) -> FeedbackAnswer:
    """Report an issue."""
    # Each delivery is kept: the requestId names a report, and makes nothing safe to repeat.
    call.store.add(Feedback(received_at=call.now, report=redact(body.as_sent())))
    return {"requestId": body.requestId}
