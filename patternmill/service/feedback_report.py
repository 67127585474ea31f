"""Feedback: a report about the interface to the service's operators, within its bounds and without secrets."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import StrEnum
from typing import Any

from patternmill.service.outcomes import Answer, ExchangeResult
from patternmill.service.redaction import scrubbed
from patternmill.service.resend import PASSING, sentence

FEEDBACK = "feedback/create"
UNAVAILABLE = 503
#: As `feedback/create` takes it; what is not known is left out.
FeedbackReport = dict[str, Any]
#: The texts that may be too long, with the units that the interface takes of them.
_LONGEST = {"text": 4000, "procedure": 200}
CUT = " … [cut]"


def cut(text: str, most: int) -> str:
    """At most so many units of UTF-16, which is how some services count; what is cut is marked."""
    units = text.encode("utf-16-le", "replace")
    if len(units) <= 2 * most:
        return text
    return units[: 2 * (most - len(CUT))].decode("utf-16-le", "ignore") + CUT


def feedback_report(fields: Mapping[str, Any], secrets: Collection[str]) -> FeedbackReport:
    """A report of these fields without the secrets and what looks like one, its texts cut where they are too long."""
    report = {name: scrubbed(value, secrets) for name, value in fields.items()}
    return report | {name: cut(report[name], most) for name, most in _LONGEST.items() if name in report}


class DeliveryState(StrEnum):
    """What became of a report."""

    SENT = "sent"
    #: Its answer was lost, or does not name the report. It is not sent again: it would be there twice.
    IN_DOUBT = "in_doubt"
    NOT_SENT = "not_sent"


#: What became of a report, and why.
Delivery = tuple[DeliveryState, str]


def delivery_of(answer: Answer, request_id: str) -> Delivery:
    """What the answer to a report with this ID means."""
    if answer.status == UNAVAILABLE:
        return DeliveryState.NOT_SENT, "Feedback is unavailable at present (503): try again later."
    refused = answer.status is not None and 400 <= answer.status < 500 and answer.status not in PASSING
    if refused or answer.exchange is ExchangeResult.NOT_SENT:
        return DeliveryState.NOT_SENT, sentence(answer)
    named = answer.body.get("requestId") if answer.usable and isinstance(answer.body, dict) else None
    if named == request_id:
        return DeliveryState.SENT, f"The service has the report {request_id}."
    return DeliveryState.IN_DOUBT, f"{sentence(answer)} The report {request_id} may have arrived."
