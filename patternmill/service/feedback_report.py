"""Reports about the interface to the service's operators, within their bounds and without secrets."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import StrEnum
from typing import Any

from patternmill.service.outcomes import Answer
from patternmill.service.redaction import scrubbed
from patternmill.service.resend import sentence

FEEDBACK = "feedback/create"
#: The fields of `feedback/create`; what is not known is left out.
FeedbackReport = dict[str, Any]
#: The texts that may be too long, and how long they may be.
_LONGEST = {"text": 4000, "procedure": 200}
CUT = " … [cut]"


def cut(text: str, most: int) -> str:
    """Cut a text to a number of UTF-16 units, as some services count, and mark the cut."""
    units = text.encode("utf-16-le", "replace")
    if len(units) <= 2 * most:
        return text
    return units[: 2 * (most - len(CUT))].decode("utf-16-le", "ignore") + CUT


def feedback_report(fields: Mapping[str, Any], secrets: Collection[str]) -> FeedbackReport:
    """Return a report of these fields, without secrets or anything that looks like one; long texts are cut."""
    report = {name: scrubbed(value, secrets) for name, value in fields.items()}
    return report | {name: cut(report[name], most) for name, most in _LONGEST.items() if name in report}


class DeliveryState(StrEnum):
    """The fate of a report."""

    SENT = "sent"
    #: Its answer was lost, or does not name the report. It is not sent again, as it might then be there twice.
    IN_DOUBT = "in_doubt"
    NOT_SENT = "not_sent"


#: What became of a report, and why.
Delivery = tuple[DeliveryState, str]


def delivery_of(answer: Answer, request_id: str) -> Delivery:
    """Return what became of the report with this ID, by the answer to it."""
    if answer.status == 503:
        return DeliveryState.NOT_SENT, "Feedback is unavailable at present (503): try again later."
    if answer.refused or not answer.was_sent:
        return DeliveryState.NOT_SENT, sentence(answer)
    named = answer.body.get("requestId") if answer.usable and isinstance(answer.body, dict) else None
    if named == request_id:
        return DeliveryState.SENT, f"The service has the report {request_id}."
    return DeliveryState.IN_DOUBT, f"{sentence(answer)} The report {request_id} may have arrived."
