"""What a check is, how it can end, and what is remembered of an answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from patternmill.conformance.answer_shapes import shape_of, shape_text
from patternmill.service.outcomes import Answer, Trouble

if TYPE_CHECKING:
    from patternmill.conformance.session import Session


class CheckOutcome(StrEnum):
    #: The service does what the interface states.
    CONFORMANT = "conformant"
    #: It does something else.
    DEVIATES = "deviates"
    #: The interface does not state it; this is how the service answers.
    UNSPECIFIED = "unspecified"
    NOT_RUN = "not_run"


class SkipReason(StrEnum):
    """Why a check was not run."""

    COSTS = "costs"
    FEEDBACK = "feedback"
    PAID_ORDER = "paid_order"
    NOT_THERE = "not_there"
    NO_ANSWER = "no_answer"
    RATE_LIMITED = "rate_limited"
    #: What it is about did not come up, or could not be made.
    NO_OCCASION = "no_occasion"


class Needs(StrEnum):
    """What a person has to allow for a check."""

    NOTHING = "nothing"
    SPENDING = "spending"
    FEEDBACK = "feedback"


@dataclass(frozen=True)
class AnswerForm:
    """How a request was answered. `shape` is None where the body is no JSON."""

    request: str
    status: int | None
    #: A Shape: keys and types, never values.
    shape: Any = None

    @property
    def text(self) -> str:
        return "no JSON" if self.shape is None else shape_text(self.shape)


@dataclass(frozen=True)
class CheckResult:
    outcome: CheckOutcome
    #: A sentence for people, without values of the service.
    detail: str
    answers: tuple[AnswerForm, ...] = ()
    reason: SkipReason | None = None


Perform = Callable[["Session"], Awaitable[CheckResult]]


@dataclass(frozen=True)
class Check:
    """One statement of the interface (in our words), and how it is tried."""

    id: str
    section: str
    statement: str
    perform: Perform
    needs: Needs = Needs.NOTHING


class Skipped(Exception):
    """A check cannot be run now."""

    def __init__(self, reason: SkipReason, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


def conformant(detail: str, *answers: AnswerForm) -> CheckResult:
    return CheckResult(CheckOutcome.CONFORMANT, detail, answers)


def deviates(detail: str, *answers: AnswerForm) -> CheckResult:
    return CheckResult(CheckOutcome.DEVIATES, detail, answers)


def unspecified(detail: str, *answers: AnswerForm) -> CheckResult:
    return CheckResult(CheckOutcome.UNSPECIFIED, detail, answers)


def not_run(skipped: Skipped) -> CheckResult:
    return CheckResult(CheckOutcome.NOT_RUN, skipped.detail, reason=skipped.reason)


def by_faults(faults: list[str], good: str, *answers: AnswerForm) -> CheckResult:
    """Conformant without faults."""
    return deviates("; ".join(faults), *answers) if faults else conformant(good, *answers)


def form_of(request: str, answer: Answer) -> AnswerForm:
    """`request`: what was asked, in a few words."""
    is_json = answer.trouble is Trouble.NONE
    return AnswerForm(request, answer.status, shape_of(answer.body) if is_json else None)
