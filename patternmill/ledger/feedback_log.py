"""Feedback in the record of events: the answers that failures rest on, and each report, recorded before it is sent."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum

from patternmill.identifiers import RequestId, RunId
from patternmill.ledger.ledger import Ledger

#: The kind of the event that keeps the exchange by which an attempt failed.
ANSWERED = "answered"


class FeedbackEvent(StrEnum):
    """The kinds of events about a report."""

    #: It is about to be sent; whether it was delivered is unknown until an event follows.
    INTENDED = "feedback_intended"
    SENT = "feedback_sent"
    #: It may have been delivered, and is not sent again.
    IN_DOUBT = "feedback_in_doubt"
    #: It was certainly not delivered: its cause may be reported again.
    NOT_SENT = "feedback_not_sent"


@dataclass(frozen=True)
class FailureCause:
    """What failures have in common: the operation, the error code, and the message without names and numbers."""

    operation: str
    code: str
    signature: str


@dataclass(frozen=True)
class FeedbackEntry:
    """A report as the record has it: its ID, what it is about, and who sends it."""

    report_id: str
    cause: FailureCause
    by: str

    def as_json(self, note: str = "") -> str:
        kept = {"requestId": self.report_id, "cause": asdict(self.cause), "by": self.by}
        return json.dumps(kept | ({"note": note} if note else {}))


def intend_feedback(
    ledger: Ledger, run_id: RunId, request_id: RequestId, entry: FeedbackEntry, *, once_in: str | None = None
) -> bool:
    """Record that a report about an attempt is to be sent, before it is.

    `once_in`: an environment; False, and nothing recorded, when the cause was reported there before.
    """
    with ledger.transaction():
        if once_in is not None:
            ledger.database.lock(f"feedback {once_in}")
            if entry.cause in reported_causes(ledger, once_in):
                return False
        ledger.record_event(run_id, FeedbackEvent.INTENDED, request_id, detail=entry.as_json())
    return True


def reported_causes(ledger: Ledger, environment: str) -> Mapping[FailureCause, float]:
    """When each cause was last reported, in Unix seconds; without reports that were certainly not delivered."""
    reports: dict[str, tuple[FailureCause, float]] = {}
    for kind, at, detail in ledger.database.rows(
        "SELECT e.kind, e.at, e.detail FROM events e JOIN attempts a ON a.request_id = e.request_id "
        "JOIN items i ON i.key = a.item_key WHERE i.environment = :environment "
        "AND e.kind IN ('feedback_intended', 'feedback_not_sent') ORDER BY e.seq",
        {"environment": environment},
    ):
        kept = json.loads(detail)
        if kind == FeedbackEvent.INTENDED:
            reports[kept["requestId"]] = FailureCause(**kept["cause"]), at
        else:
            reports.pop(kept["requestId"], None)
    return dict(reports.values())


def last_answer(ledger: Ledger, request_id: RequestId) -> tuple[float, str] | None:
    """The last exchange that is kept of an attempt, as JSON, and when it was."""
    rows = ledger.database.rows(
        "SELECT at, detail FROM events WHERE request_id = :request_id AND kind = :kind ORDER BY seq DESC LIMIT 1",
        {"request_id": request_id, "kind": ANSWERED},
    )
    return (rows[0][0], rows[0][1]) if rows else None
