"""Feedback: reports about the interface itself."""

from __future__ import annotations

from studio.operations.context import Answer, Caller, Context
from studio.redaction import redact
from studio.requests import CreateFeedback
from studio.store.records import Feedback
from studio.wire import as_sent


class FeedbackOperations:
    """`feedback/create`. That it is unavailable can be rehearsed with a fault."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def create(self, body: CreateFeedback, caller: Caller) -> Answer:
        """Keep each delivery: the requestId names a report, and makes nothing safe to repeat."""
        report = redact(as_sent(body))
        received = Feedback(account=caller.account, received_at=self._context.clock(), report=report)
        self._context.store.feedback.add(received)
        return {"requestId": body.requestId}
