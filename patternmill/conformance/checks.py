"""The checks in their order: what costs money or breaks an import when a service does it otherwise."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from enum import StrEnum
from functools import partial
from typing import Any

from patternmill.addresses import is_web_address
from patternmill.catalog.offer_shapes import read_category, read_category_list
from patternmill.conformance.job_rules import (
    JobTrail,
    created_faults,
    job_faults,
    job_id_of,
    text_at,
)
from patternmill.conformance.session import (
    NO_KEY,
    UNKNOWN_ID,
    WRONG_KEY,
    Headers,
    Session,
    Skipped,
    fault_of,
    is_refusal,
)
from patternmill.errors import ServiceStopped
from patternmill.service.outcomes import SUCCESS, Answer, ExchangeResult
from patternmill.service.resend import REMEDIES, STOPPING, sentence
from patternmill.text import duration, plural

PROMPT = "blue herons on cream"
AT_ONCE = 10
#: Requests that buy nothing, to operations that every service has.
FREE: tuple[tuple[str, dict[str, str]], ...] = (("categories/list", {}), ("jobs/get", {"jobId": UNKNOWN_ID}))
OPERATIONS = {"pattern": "patterns/create", "product": "products/create"}
_MOST_CATEGORIES = 5
_FIRST_PAUSE, _GROWTH, _LONGEST_PAUSE = 0.2, 1.4, 5.0

Body = dict[str, Any]
Made = tuple[Body, Answer, JobTrail]


class CheckOutcome(StrEnum):
    """How a check ended, as its line says."""

    OK = "ok"
    FAILED = "FAILED"
    #: The interface leaves it open: how this service does it.
    NOTED = "noted"
    SKIPPED = "skipped"


#: How a check ended, and a sentence for people without values of the service.
Verdict = tuple[CheckOutcome, str]
Check = Callable[[Session], Awaitable[Verdict]]


async def check_lines(session: Session) -> AsyncIterator[tuple[str, CheckOutcome, str]]:
    """Each check of CHECKS as it ends. Raises ServiceStopped when the service cannot be reached or refuses the key."""
    await _require_reachable(session)
    for name, check in CHECKS.items():
        try:
            yield (name, *await check(session))
        except Skipped as skipped:
            yield name, CheckOutcome.SKIPPED, str(skipped)


async def _require_reachable(session: Session) -> None:
    for operation, body in FREE:
        with suppress(Skipped):
            await session.ask(operation, body)
        answer = session.exchanges[-1][1]
        if answer.exchange is ExchangeResult.ANSWERED and answer.status not in STOPPING:
            return
    code = STOPPING.get(answer.status or 0, "unreachable")
    remedy = REMEDIES.get(code, "See that the address is right and the service is up.")
    raise ServiceStopped(sentence(answer), code=code, remedy=f"{remedy} Nothing could be checked.")


def _judged(faults: list[str], good: str) -> Verdict:
    return (CheckOutcome.FAILED, "; ".join(faults)) if faults else (CheckOutcome.OK, good)


async def _key_refused(headers: Headers, session: Session) -> Verdict:
    """What is refused is refused for its key: the same request with the right one is answered otherwise."""
    faults = []
    for operation, body in FREE:
        own, other = await session.ask(operation, body), await session.ask(operation, body, headers)
        if not is_refusal(other) or (own.status, own.detail) == (other.status, other.detail):
            faults.append(f"{operation} answers {other.status}")
    return _judged(faults, "refused")


async def _categories(session: Session) -> Verdict:
    answer = await session.ask("categories/list", {})
    if not answer.usable:
        return CheckOutcome.FAILED, f"categories/list answers {answer.status}"
    try:
        await _choice(session)
    except Skipped as skipped:
        return CheckOutcome.NOTED, f"{skipped}: options are not checked before they are bought"
    return CheckOutcome.OK, "categories and their options can be read"


async def _choice(session: Session) -> tuple[str, dict[str, str]]:
    """A category with a value for each of its options. Raises Skipped."""
    answer = await session.ask("categories/list", {})
    found = read_category_list(answer.body) if answer.usable else None
    for listed in tuple(found.categories if found else ())[:_MOST_CATEGORIES]:
        answer = await session.ask("categories/get", {"categoryId": listed.id})
        category = read_category(answer.body, listed) if answer.usable else listed
        options = category.options
        if category.checkable and options is not None and all(option.values for option in options):
            return category.id, {option.name: (option.values or ("",))[0] for option in options}
    raise Skipped("no category has options that can be read")


async def _unknown_job(session: Session) -> Verdict:
    answer = await session.ask("jobs/get", {"jobId": UNKNOWN_ID})
    return _judged([] if (answer.status or 0) >= 400 else [f"answers {answer.status}"], "refused")


async def _result_id(session: Session, made: str) -> str:
    trail = (await _made(session, made))[2]
    if trail.result_id is None:
        raise Skipped(f"no {made} was made")
    return trail.result_id


async def _made(session: Session, made: str) -> Made:
    """A valid create, its answer, and its job beyond its end; sent and followed once a pass. Raises Skipped."""

    async def create() -> Made:
        body: Body = {"requestId": session.request_id(made), "prompt": PROMPT}
        if made == "product":
            body = {"requestId": body["requestId"], "patternId": await _result_id(session, "pattern")}
            body["categoryId"], body["selections"] = await _choice(session)
        answer = await session.create(OPERATIONS[made], body)
        return body, answer, await _followed(session, JobTrail(made, [answer.body]))

    found: Made = await session.once(made, create)
    return found


async def _followed(session: Session, trail: JobTrail) -> JobTrail:
    """Until the job has ended and was asked for twice more, or the time is over; without polls if there is none."""
    job_id, waited, pause, more = job_id_of(trail.answers[0]), 0.0, _FIRST_PAUSE, 3
    while job_id and more and waited < session.job_timeout.total_seconds() and len(trail.refusals) < 5:
        await session.sleep(pause)
        waited, pause = waited + pause, min(pause * _GROWTH, _LONGEST_PAUSE)
        try:
            poll = await session.ask("jobs/get", {"jobId": job_id})
        except Skipped:
            break
        if poll.status in SUCCESS:
            trail.answers.append(poll.body)
        else:
            trail.refusals.append(poll.status or 0)
        more -= trail.end is not None
    return trail


async def _accepted(made: str, session: Session) -> Verdict:
    _, answer, _ = await _made(session, made)
    if answer.status not in SUCCESS:
        return CheckOutcome.FAILED, f"a valid request is answered {answer.status}"
    return _judged(created_faults(answer.body, made), "answers with a job that runs")


async def _job(made: str, session: Session) -> Verdict:
    _, _, trail = await _made(session, made)
    faults = job_faults(trail)
    if not faults and trail.end is None:
        raise Skipped(f"no job was seen to end within {duration(session.job_timeout)}")
    return _judged(faults, f"{trail.end}, once, and as the interface says")


async def _repeat(made: str, session: Session) -> Verdict:
    body, first, _ = await _made(session, made)
    if first.status not in SUCCESS:
        raise Skipped("the first request was not accepted")
    answer = await session.create(OPERATIONS[made], body)
    if is_refusal(answer):
        return CheckOutcome.NOTED, f"refused with {answer.status}: nothing is made twice"
    if answer.status not in SUCCESS or job_id_of(answer.body) != job_id_of(first.body):
        return CheckOutcome.FAILED, f"answers {answer.status}, and not with the same job"
    session.bought -= 1
    return CheckOutcome.OK, "answers with the same job"


async def _at_once(session: Session) -> Verdict:
    body = {"requestId": session.request_id("at-once"), "prompt": PROMPT}
    answers = await session.create_at_once(OPERATIONS["pattern"], body, AT_ONCE)
    accepted = [job_id_of(answer.body) for answer in answers if answer.status in SUCCESS]
    refused, jobs = sum(map(is_refusal, answers)), len(set(accepted))
    session.bought -= refused + len(accepted) - jobs
    if not jobs:
        raise Skipped(f"none of {AT_ONCE} requests was answered with a job")
    faults = [f"one requestId led to {plural(jobs, 'job')}"] if jobs > 1 else []
    return _judged(faults, f"one job; {plural(refused, 'request')} refused")


async def _refinement_repeat(session: Session) -> Verdict:
    """The interface does not promise it; what the service does says what the operations file may say."""
    operation = session.unstated.refine.get("recolor", "refine/recolor")
    named = {session.unstated.pattern: await _result_id(session, "pattern")}
    parameters = session.unstated.named({"palette": ["#1f3a5f", "#f2e8cf"]})
    body = {"requestId": session.request_id("recolor"), **named, **parameters}
    first = await session.create(operation, body)
    if first.status not in SUCCESS:
        raise Skipped(f"{operation} answers {first.status}")
    again = await session.create(operation, body)
    if again.status in SUCCESS and job_id_of(first.body) and job_id_of(again.body) == job_id_of(first.body):
        session.bought -= 1
        return (
            CheckOutcome.NOTED,
            "repeatable (of uploads nothing is known): a repeat is answered with the same job",
        )
    outcome = CheckOutcome.FAILED if session.unstated.repeatable else CheckOutcome.NOTED
    return outcome, f"not repeatable: a repeat is answered {again.status}, not with the same job"


async def _checkout(session: Session) -> Verdict:
    """Which nobody pays."""
    lines = [{"productId": await _result_id(session, "product"), "quantity": 1}]
    body = {"requestId": session.request_id("checkout"), "lines": lines}
    first, again = [await session.ask("checkouts/create", body) for _ in range(2)]
    if first.status not in SUCCESS:
        return CheckOutcome.FAILED, f"a valid request is answered {first.status}"
    faults = [] if text_at(first.body, "checkoutId") else ["checkoutId is no text"]
    if not is_web_address(text_at(first.body, "checkoutUrl") or ""):
        faults.append("checkoutUrl is no address")
    same = text_at(again.body, "checkoutId") == text_at(first.body, "checkoutId")
    if not is_refusal(again) and not (same and again.status in SUCCESS):
        faults.append("the same request again opens another")
    return _judged(faults, "answers with ID and address, and opens no second one")


async def _answers(session: Session) -> Verdict:
    """Over all that was asked: whole, JSON, and at the address that was asked."""
    faults = [
        f"{operation} {fault_of(answer)}" for operation, answer in session.exchanges if fault_of(answer)
    ]
    return _judged(list(dict.fromkeys(faults)), f"{plural(len(session.exchanges), 'whole answer')}")


#: By name, in the order in which they are made.
CHECKS: dict[str, Check] = {
    "no-key": partial(_key_refused, NO_KEY),
    "wrong-key": partial(_key_refused, WRONG_KEY),
    "categories": _categories,
    "unknown-job": _unknown_job,
    **{
        f"{made}-{name}": partial(check, made)
        for made in OPERATIONS
        for name, check in (("create", _accepted), ("job", _job), ("repeat", _repeat))
    },
    "refinement-repeat": _refinement_repeat,
    "checkout": _checkout,
    "pattern-at-once": _at_once,
    "answers": _answers,
}
