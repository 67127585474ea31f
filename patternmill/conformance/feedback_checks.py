"""Feedback: every bound of a report at its edge; what is valid reaches people, and is sent only when allowed."""

from __future__ import annotations

from functools import partial
from typing import Any

from patternmill.conformance.check_results import (
    Check,
    CheckResult,
    Needs,
    Skipped,
    SkipReason,
    conformant,
    deviates,
    form_of,
)
from patternmill.conformance.session import Session, is_refusal
from patternmill.service.feedback_report import FEEDBACK, UNAVAILABLE
from patternmill.service.outcomes import Answer

SECTION = "4, 8 feedback"
_TEXT = "Conformance check of the interface: no action is needed. "
#: Name of the check, what is wrong, the fields that differ from a valid report (None: left out).
WRONG: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("request-id-missing", "A report needs a requestId.", {"requestId": None}),
    ("request-id-empty", "requestId has 1 character or more.", {"requestId": ""}),
    ("request-id-129", "requestId has at most 128 characters.", {"requestId": "r" * 129}),
    ("request-id-type", "requestId is text.", {"requestId": 7}),
    ("text-missing", "A report needs a text.", {"text": None}),
    ("text-empty", "text has 1 character or more.", {"text": ""}),
    ("text-4001", "text has at most 4000 characters.", {"text": "t" * 4001}),
    ("text-type", "text is text.", {"text": ["t"]}),
    ("procedure-empty", "procedure has 1 character or more.", {"procedure": ""}),
    ("procedure-201", "procedure has at most 200 characters.", {"procedure": "p" * 201}),
    ("agent-empty", "agent has 1 character or more.", {"agent": ""}),
    ("agent-101", "agent has at most 100 characters.", {"agent": "a" * 101}),
    ("request-type", "request is an object.", {"request": "r"}),
    (
        "user-agent-501",
        "request.userAgent has at most 500 characters.",
        {"request": {"userAgent": "u" * 501}},
    ),
    ("response-type", "response is an object.", {"response": "r"}),
    ("status-below-0", "response.status is 0 or more.", {"response": {"status": -1}}),
    ("status-600", "response.status is 599 or less.", {"response": {"status": 600}}),
    ("status-fraction", "response.status is an integer.", {"response": {"status": 200.5}}),
    ("duration-below-0", "response.durationMs is 0 or more.", {"response": {"durationMs": -1}}),
    ("reported-at", "reportedAt is a date and time.", {"reportedAt": "yesterday"}),
)


def report(request_id: str, text: str, **fields: Any) -> dict[str, Any]:
    return {"requestId": request_id, "text": text, **fields}


def wrong_report(request_id: str, changed: dict[str, Any]) -> dict[str, Any]:
    """A report with one fault."""
    body = {**report(request_id, f"{_TEXT}This report is invalid, and to be refused."), **changed}
    return {name: value for name, value in body.items() if value is not None}


async def _first_answer(session: Session) -> Answer:
    """To a report with nothing in it. Raises Skipped when no report can be judged."""
    answer = await session.asked(FEEDBACK, {})
    if answer.status == UNAVAILABLE:
        raise Skipped(SkipReason.NO_OCCASION, "feedback is unavailable (503)")
    await session.require(FEEDBACK)
    return answer


async def available(session: Session) -> CheckResult:
    answer = await session.asked(FEEDBACK, {})
    form = form_of("a report with nothing in it", answer)
    if answer.status == UNAVAILABLE:
        return conformant("unavailable, and says so with 503", form)
    if await session.lacks(FEEDBACK):
        return deviates("the operation is not there", form)
    return _refused(answer)


async def _wrong(name: str, changed: dict[str, Any], session: Session) -> CheckResult:
    await _first_answer(session)
    return _refused(await session.probe.ask(FEEDBACK, wrong_report(session.request_id(name), changed)))


def _refused(answer: Answer) -> CheckResult:
    form = form_of(FEEDBACK, answer)
    if is_refusal(answer):
        return conformant(f"refused with {answer.status}", form)
    if answer.status == UNAVAILABLE:
        raise Skipped(SkipReason.NO_OCCASION, "feedback is unavailable (503)")
    failed = answer.status is not None and answer.status >= 500
    return deviates(f"{'fails' if failed else 'is accepted'} with {answer.status}", form)


async def smallest(session: Session) -> CheckResult:
    return await _accepted(session, report("1", "t", response={"status": 0, "durationMs": 0}))


async def largest(session: Session) -> CheckResult:
    body = report(
        session.request_id("largest").ljust(128, "r"),
        _TEXT.ljust(4000, "t"),
        procedure="p" * 200,
        request={"body": {"jobId": "j"}, "userAgent": "u" * 500},
        response={"status": 599, "body": None, "durationMs": 1.5},
        agent="a" * 100,
        reportedAt="2030-01-02T03:04:05Z",
    )
    return await _accepted(session, body)


async def _accepted(session: Session, body: dict[str, Any]) -> CheckResult:
    await _first_answer(session)
    answer = await session.probe.ask(FEEDBACK, body)
    form = form_of(FEEDBACK, answer)
    if answer.status == UNAVAILABLE:
        return conformant("unavailable, and says so with 503", form)
    if answer.status != 200:
        return deviates(f"a valid report is answered {answer.status}", form)
    echoed = isinstance(answer.body, dict) and answer.body.get("requestId") == body["requestId"]
    return conformant("accepted", form) if echoed else deviates("its requestId does not come back", form)


CHECKS = (
    Check("feedback", SECTION, "feedback/create is there; while unavailable it answers 503.", available),
    *(
        Check(f"feedback-{name}", SECTION, statement, partial(_wrong, name, changed))
        for name, statement, changed in WRONG
    ),
    Check(
        "feedback-smallest",
        SECTION,
        "A report with each field at its lower bound is accepted with 200, and its requestId comes back.",
        smallest,
        Needs.FEEDBACK,
    ),
    Check(
        "feedback-largest",
        SECTION,
        "A report with each field at its upper bound is accepted with 200, and its requestId comes back.",
        largest,
        Needs.FEEDBACK,
    ),
)
