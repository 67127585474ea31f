"""Authentication and the form of requests and answers."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from patternmill.conformance.category_checks import first_category_id
from patternmill.conformance.check_results import (
    Check,
    CheckResult,
    Needs,
    Skipped,
    SkipReason,
    by_faults,
    conformant,
    deviates,
    form_of,
    unspecified,
)
from patternmill.conformance.feedback_checks import report
from patternmill.conformance.probe import Key, content_name, is_unreadable_success
from patternmill.conformance.session import NO_OPERATION, UNKNOWN_ID, Session, is_refusal
from patternmill.service.feedback_report import FEEDBACK
from patternmill.service.outcomes import SUCCESS, Answer, ExchangeResult
from patternmill.service.resend import REDIRECTS
from patternmill.text import plural

SECTION = "5 authentication"
FORM = "1, 4 requests and answers"
ERRORS = "7 errors"
_KEYS = {Key.NONE: "without a key", Key.WRONG: "with a wrong key"}


async def _free_requests(session: Session) -> dict[str, object]:
    """Requests that cost nothing, to the operations that the interface names."""
    return {
        "categories/list": {},
        "categories/get": {"categoryId": await first_category_id(session) or UNKNOWN_ID},
        "jobs/get": {"jobId": UNKNOWN_ID},
        "orders/get": {"checkoutId": UNKNOWN_ID},
    }


async def _refused_key(key: Key, session: Session) -> CheckResult:
    faults: list[str] = []
    answers = []
    for operation, body in (await _free_requests(session)).items():
        if await session.lacks(operation):
            continue
        own, other = await session.asked(operation, body), await session.probe.ask(operation, body, key=key)
        answers.append(form_of(operation, other))
        faults += _key_faults(operation, own, other)
    if not answers:
        raise Skipped(SkipReason.NOT_THERE, "none of the operations is there")
    return by_faults(faults, f"{plural(len(answers), 'operation')} refused {_KEYS[key]}", *answers)


def _key_faults(operation: str, own: Answer, other: Answer) -> Iterable[str]:
    """What shows that the key does not count: `own` and `other` are answers with the right and the other key."""
    if not is_refusal(other):
        yield f"{operation} answers {other.status}"
    elif (own.status, own.detail) == (other.status, other.detail):
        yield f"{operation} answers {other.status}, as it does with the right key"


async def no_key_create(session: Session) -> CheckResult:
    """A valid create: what is refused is refused for its key."""
    body = {"requestId": session.request_id("no-key"), "prompt": "blue herons on cream"}
    answer = await session.try_create("patterns/create", body, key=Key.NONE)
    return _refused_for_key("patterns/create", answer)


async def no_key_feedback(session: Session) -> CheckResult:
    body = report(session.request_id("no-key"), "Conformance check without a key: to be refused.")
    return _refused_for_key(FEEDBACK, await session.probe.ask(FEEDBACK, body, key=Key.NONE))


def _refused_for_key(operation: str, answer: Answer) -> CheckResult:
    result = conformant if is_refusal(answer) else deviates
    return result(f"{operation} answers {answer.status} without a key", form_of(operation, answer))


async def errors(session: Session) -> CheckResult:
    ask = session.probe.ask
    answers = {
        "without a key": await ask("categories/list", {}, key=Key.NONE),
        "with a wrong key": await ask("categories/list", {}, key=Key.WRONG),
        "for an operation that cannot exist": await session.asked(NO_OPERATION, {}),
        "for a body that is no JSON": await ask("jobs/get", b"{"),
        "for a body that is no object": await ask("jobs/get", []),
        "for text/plain": await ask("jobs/get", {"jobId": UNKNOWN_ID}, content_type="text/plain"),
        "for GET": await ask("jobs/get", b"", method="GET"),
    }
    forms = [form_of(request, answer) for request, answer in answers.items()]
    return unspecified(f"{plural(len(forms), 'request')}", *forms)


async def version(session: Session) -> CheckResult:
    result = conformant if session.base_url.endswith("/v1") else deviates
    return result("the address ends with its version" if result is conformant else "the address does not")


async def whole_answers(session: Session) -> CheckResult:
    """Over all that was asked."""
    lost = [one for one in session.probe.exchanges if one.answer.exchange is not ExchangeResult.ANSWERED]
    faults = dict.fromkeys(f"{one.operation}: {one.answer.detail}" for one in lost)
    return by_faults(list(faults), f"{plural(len(session.probe.exchanges), 'whole answer')}")


async def json_answers(session: Session) -> CheckResult:
    wrong = [one for one in session.probe.exchanges if is_unreadable_success(one.answer)]
    faults = [f"{one.operation} answers {one.answer.status} with {content_name(one.answer)}" for one in wrong]
    good = sum(one.answer.status in SUCCESS for one in session.probe.exchanges)
    if not good:
        raise Skipped(SkipReason.NO_OCCASION, "nothing was answered with success")
    return by_faults(list(dict.fromkeys(faults)), f"{plural(good, 'answer')} of success, all JSON")


async def no_redirects(session: Session) -> CheckResult:
    redirected = [one for one in session.probe.exchanges if one.answer.status in REDIRECTS]
    faults = dict.fromkeys(f"{one.operation} answers {one.answer.status}" for one in redirected)
    return by_faults(list(faults), "answered where they were asked")


CHECKS = (
    Check("version", "9 versioning", "The base address ends with its version, /v1.", version),
    Check(
        "no-key",
        SECTION,
        "Every operation needs a key: free ones are refused (4xx) without.",
        partial(_refused_key, Key.NONE),
    ),
    Check(
        "wrong-key",
        SECTION,
        "A key that the service did not issue is refused (4xx).",
        partial(_refused_key, Key.WRONG),
    ),
    Check("no-key-create", SECTION, "A create is refused without a key.", no_key_create, Needs.SPENDING),
    Check("no-key-feedback", SECTION, "A report is refused without a key.", no_key_feedback, Needs.FEEDBACK),
    Check("errors", ERRORS, "Statuses and bodies of refusals are left open.", errors),
)
#: Asked last, of all exchanges.
WIRE_CHECKS = (
    Check("whole-answers", FORM, "Each request has a whole answer, in time.", whole_answers),
    Check("json-answers", FORM, "The body of each answer of success is JSON.", json_answers),
    Check("no-redirects", FORM, "An operation answers at its address.", no_redirects),
)
