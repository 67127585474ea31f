"""Feedback: a report about the interface to the service's operators, within its bounds and without secrets."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field

from patternmill.service.outcomes import Answer, ExchangeResult
from patternmill.service.redaction import scrubbed
from patternmill.service.resend import PASSING, sentence

FEEDBACK = "feedback/create"
UNAVAILABLE = 503
CUT = " … [cut]"


def cut(text: str, most: int) -> str:
    """At most so many units of UTF-16, which is how some services count; what is cut is marked."""
    units = text.encode("utf-16-le", "replace")
    if len(units) <= 2 * most:
        return text
    return units[: 2 * (most - len(CUT))].decode("utf-16-le", "ignore") + CUT


def _shortened(most: int) -> BeforeValidator:
    return BeforeValidator(lambda text: cut(text, most) if isinstance(text, str) else text)


class _ReportPart(BaseModel):
    """Named as on the wire; what is not known is not set, and is not sent."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class ReportedRequest(_ReportPart):
    """The request that a report is about."""

    body: Any = None
    userAgent: Annotated[str, _shortened(500), Field(max_length=500)] = ""


class ReportedResponse(_ReportPart):
    """The response that a report is about; status 0: none arrived."""

    status: int = Field(0, ge=0, le=599)
    body: Any = None
    durationMs: float = Field(0.0, ge=0, allow_inf_nan=False)


class FeedbackReport(_ReportPart):
    """A report as `feedback/create` takes it."""

    requestId: str = Field(min_length=1, max_length=128)
    text: Annotated[str, _shortened(4000), Field(min_length=1, max_length=4000)]
    procedure: Annotated[str, _shortened(200), Field(min_length=1, max_length=200)] = ""
    request: ReportedRequest = ReportedRequest()
    response: ReportedResponse = ReportedResponse()
    agent: Annotated[str, _shortened(100), Field(min_length=1, max_length=100)] = ""
    reportedAt: AwareDatetime | None = None

    def on_wire(self) -> dict[str, Any]:
        """Exactly what is sent, as JSON values."""
        return self.model_dump(mode="json", exclude_unset=True)


def feedback_report(fields: Mapping[str, Any], secrets: Collection[str]) -> FeedbackReport:
    """A report of these fields without the secrets and whatever looks like one, its texts cut where they are too long.

    Raises ValueError for what cannot be cut: an empty text, a status out of bounds.
    """
    return FeedbackReport.model_validate({name: scrubbed(value, secrets) for name, value in fields.items()})


class DeliveryState(StrEnum):
    """What became of a report."""

    SENT = "sent"
    #: Its answer was lost, or does not name the report. It is not sent again: it would be there twice.
    IN_DOUBT = "in_doubt"
    NOT_SENT = "not_sent"


@dataclass(frozen=True, slots=True)
class Delivery:
    """What became of a report, and why."""

    state: DeliveryState
    message: str


def delivery_of(answer: Answer, request_id: str) -> Delivery:
    """What the answer to a report with this ID means."""
    if answer.status == UNAVAILABLE:
        return Delivery(DeliveryState.NOT_SENT, "Feedback is unavailable at present (503): try again later.")
    refused = answer.status is not None and 400 <= answer.status < 500 and answer.status not in PASSING
    if refused or answer.exchange is ExchangeResult.NOT_SENT:
        return Delivery(DeliveryState.NOT_SENT, sentence(answer))
    named = answer.body.get("requestId") if answer.usable and isinstance(answer.body, dict) else None
    if named == request_id:
        return Delivery(DeliveryState.SENT, f"The service has the report {request_id}.")
    return Delivery(DeliveryState.IN_DOUBT, f"{sentence(answer)} The report {request_id} may have arrived.")
