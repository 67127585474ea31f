"""Feedback: reports about the interface itself."""

from __future__ import annotations

from studio.errors import Refusal
from studio.operations.context import Answer, Caller, Context
from studio.redaction import redact
from studio.requests import CreateFeedback
from studio.store import Feedback
from studio.wire import as_sent

#: The name of the setting that switches it off.
SWITCH = "feedback"


class FeedbackOperations:
    """`feedback/create`, and its switch."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def create(self, body: CreateFeedback, caller: Caller) -> Answer:
        """Each delivery is kept: the requestId names a report, and makes nothing safe to repeat."""
        if self._context.store.settings.get(SWITCH) == "off":
            raise Refusal(503, "feedback_unavailable", "Feedback is switched off at present.")
        report = redact(as_sent(body))
        assert isinstance(report, dict)
        self._context.store.feedback.add(Feedback(caller.account, self._context.clock(), report))
        return {"requestId": body.requestId}

    def switch(self, *, on: bool) -> None:
        """For all who ask, also after a restart."""
        self._context.store.settings.set(SWITCH, "on" if on else "off")
