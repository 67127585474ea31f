"""Jobs: what is free to ask, and a pattern job and a product job from create to end, within the spending limit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from patternmill.conformance import job_rules
from patternmill.conformance.category_checks import choice
from patternmill.conformance.check_results import (
    AnswerForm,
    Check,
    CheckResult,
    Needs,
    Perform,
    Skipped,
    SkipReason,
    by_faults,
    conformant,
    deviates,
    form_of,
    unspecified,
)
from patternmill.conformance.job_rules import JobTrail, job_id_of, status_of
from patternmill.conformance.session import UNKNOWN_ID, Session, is_refusal
from patternmill.service.jobs import FAILED, SUCCEEDED
from patternmill.service.outcomes import SUCCESS, Answer
from patternmill.text import duration, plural

SECTION = "2, 3 jobs"
PATTERNS, PRODUCTS = "patterns/create", "products/create"
PROMPT = "blue herons on cream"
CONCURRENT = 50
#: Polls of a job that is known to have ended.
_AFTER_END = 2
_MOST_REFUSALS = 5
_FIRST_PAUSE, _GROWTH, _LONGEST_PAUSE = 0.2, 1.4, 5.0

Body = dict[str, Any]


async def unknown_job(session: Session) -> CheckResult:
    answer = await session.asked("jobs/get", {"jobId": UNKNOWN_ID})
    form = form_of("unknown jobId", answer)
    if await session.lacks("jobs/get"):
        return deviates("the operation is not there", form)
    is_failure = answer.status is not None and answer.status >= 400
    return (conformant if is_failure else deviates)(f"answers {answer.status}", form)


async def pattern_body(session: Session) -> Body:
    return {"requestId": session.request_id("pattern"), "prompt": PROMPT}


async def product_body(session: Session) -> Body:
    pattern_id = (await followed(session, "pattern")).result_id
    if pattern_id is None:
        raise Skipped(SkipReason.NO_OCCASION, "there is no pattern to make a product of")
    category_id, selections = await choice(session)
    request_id = session.request_id("product")
    return {
        "requestId": request_id,
        "patternId": pattern_id,
        "categoryId": category_id,
        "selections": selections,
    }


OPERATIONS = {"pattern": PATTERNS, "product": PRODUCTS}
_BODIES = {"pattern": pattern_body, "product": product_body}


async def created(session: Session, made: str) -> tuple[Body, Answer]:
    """A valid create and its answer, sent once a run. Raises Skipped."""

    async def create() -> tuple[Body, Answer]:
        body = await _BODIES[made](session)
        return body, await session.try_create(OPERATIONS[made], body)

    return await session.once(f"create {made}", create)


async def followed(session: Session, made: str) -> JobTrail:
    """The job of that create, followed beyond its end. Raises Skipped."""
    return await session.once(f"trail {made}", lambda: _follow(session, made))


async def _follow(session: Session, made: str) -> JobTrail:
    _, answer = await created(session, made)
    job_id = job_id_of(answer.body)
    if answer.status not in SUCCESS or job_id is None:
        raise Skipped(SkipReason.NO_OCCASION, f"{OPERATIONS[made]} answered with no job")
    polls = _Polls(session, job_id)
    await polls.until_ended(session.job_timeout.total_seconds())
    return JobTrail(made, (answer.body, *polls.answers), frozenset(polls.refusals))


@dataclass
class _Polls:
    """The answers about one job."""

    session: Session
    job_id: str
    answers: list[Any] = field(default_factory=list)
    refusals: list[int] = field(default_factory=list)

    async def until_ended(self, seconds: float) -> None:
        """And some more; or until the job is refused again and again, or the time is over."""
        waited, pause, after_end = 0.0, _FIRST_PAUSE, 0
        while after_end <= _AFTER_END and waited < seconds and len(self.refusals) < _MOST_REFUSALS:
            await self.session.probe.pause(pause)
            waited, pause = waited + pause, min(pause * _GROWTH, _LONGEST_PAUSE)
            await self._poll()
            after_end += any(status_of(answer) in {SUCCEEDED, FAILED} for answer in self.answers)

    async def _poll(self) -> None:
        poll = await self.session.probe.ask("jobs/get", {"jobId": self.job_id})
        if poll.status in SUCCESS:
            self.answers.append(poll.body)
        else:
            self.refusals.append(poll.status or 0)


async def _accepted(made: str, session: Session) -> CheckResult:
    _, answer = await created(session, made)
    form = form_of(OPERATIONS[made], answer)
    if answer.status not in SUCCESS:
        return deviates(f"a valid request is answered {answer.status}", form)
    return by_faults(job_rules.shape_faults([answer.body]), "answers with a job", form)


async def _on_trail(
    made: str, rule: Callable[[JobTrail], list[str]], good: str, session: Session
) -> CheckResult:
    trail = await followed(session, made)
    if not trail.polls and not trail.refusals:
        raise Skipped(SkipReason.NO_OCCASION, "jobs/get did not answer about the job")
    return by_faults(rule(trail), good)


async def _transitions(made: str, session: Session) -> CheckResult:
    trail = await followed(session, made)
    faults = job_rules.transition_faults(trail)
    if not faults and not trail.has_ended:
        waited = duration(session.job_timeout)
        raise Skipped(SkipReason.NO_OCCASION, f"the job was not seen to end within {waited}")
    return by_faults(faults, "ended once, and stayed so")


async def _by_end(
    made: str, status: str, rule: Callable[[JobTrail], list[str]], good: str, session: Session
) -> CheckResult:
    trail = await followed(session, made)
    if not any(status_of(answer) == status for answer in trail.polls):
        raise Skipped(SkipReason.NO_OCCASION, f"no {made} job ended as {status}")
    return by_faults(rule(trail), good)


async def _repeat(made: str, session: Session) -> CheckResult:
    body, first = await created(session, made)
    if first.status not in SUCCESS:
        raise Skipped(SkipReason.NO_OCCASION, "the first request was not accepted")
    answer = await session.try_create(OPERATIONS[made], body)
    form = form_of("the same request again", answer)
    if is_refusal(answer):
        return unspecified(f"refused with {answer.status}: nothing was made twice", form)
    if job_id_of(answer.body) != job_id_of(first.body) or answer.status not in SUCCESS:
        return deviates(f"answers {answer.status}, and not with the same job", form)
    session.spending.give_back(1)
    return conformant(f"answers {answer.status} with the same job", form)


async def missing_fields(session: Session, operation: str, body: Body) -> CheckResult:
    """`body` is valid; each of its fields is required."""
    faults, forms = [], []
    for name in body:
        rest = {key: value for key, value in body.items() if key != name}
        if "requestId" in rest:
            rest["requestId"] = session.request_id(f"{operation}-without-{name}")
        answer = await session.try_create(operation, rest)
        forms.append(form_of(f"without {name}", answer))
        faults += _acceptance(f"without {name}", answer)
    return by_faults(faults, f"{plural(len(forms), 'incomplete request')} refused", *forms)


def _acceptance(request: str, answer: Answer) -> list[str]:
    if is_refusal(answer):
        return []
    failed = answer.status is not None and answer.status >= 500
    return [f"{request} it {'fails' if failed else 'is accepted'} with {answer.status}"]


async def _required(made: str, session: Session) -> CheckResult:
    body, first = await created(session, made)
    if first.status not in SUCCESS:
        raise Skipped(SkipReason.NO_OCCASION, "a complete request was not accepted either")
    return await missing_fields(session, OPERATIONS[made], body)


async def fifty_at_once(session: Session) -> CheckResult:
    body = {"requestId": session.request_id("fifty"), "prompt": PROMPT}
    session.spending.reserve(CONCURRENT)
    answers = await session.probe.ask_at_once(PATTERNS, body, CONCURRENT)
    jobs = {job_id_of(answer.body) for answer in answers if answer.status in SUCCESS} - {None}
    refused = sum(map(is_refusal, answers))
    doubtful = CONCURRENT - refused - sum(answer.status in SUCCESS for answer in answers)
    session.spending.give_back(max(0, CONCURRENT - len(jobs) - doubtful))
    forms = {form.status: form for form in (form_of("fifty at once", answer) for answer in answers)}
    shown = tuple(forms[status] for status in sorted(forms, key=str))
    if not jobs:
        raise Skipped(SkipReason.NO_ANSWER, "none of fifty requests was answered with a job")
    if len(jobs) > 1:
        return deviates(f"one requestId led to {plural(len(jobs), 'job')}", *shown)
    return conformant(f"one job; {plural(refused, 'request')} refused", *shown)


async def kind_of_product(session: Session) -> CheckResult:
    trail = await followed(session, "product")
    if job_rules.kind_faults(trail):
        return deviates("kind is `pattern`, as that of pattern jobs")
    return unspecified("kind is another than `pattern`", AnswerForm("product job", None, None))


def _checks(made: str) -> tuple[Check, ...]:
    """Of one stage; those of its kind apart."""
    section, operation = f"4 {OPERATIONS[made].replace('/', '-')}", OPERATIONS[made]
    rows: tuple[tuple[str, str, Perform], ...] = (
        (
            "accepted",
            f"{operation} answers with a job: jobId, kind, status, result.",
            partial(_accepted, made),
        ),
        (
            "starts-running",
            "A job begins as running, with the result null.",
            partial(_on_trail, made, job_rules.start_faults, "running, with the result null"),
        ),
        (
            "job-shape",
            "jobs/get answers with the same fields.",
            partial(_on_trail, made, job_rules.poll_shape_faults, "each answer has the fields of a job"),
        ),
        (
            "same-job",
            "jobs/get answers with the job that was asked for.",
            partial(_on_trail, made, job_rules.identity_faults, "each poll names the same job"),
        ),
        (
            "null-while-running",
            "result is null while the job runs.",
            partial(_on_trail, made, job_rules.running_faults, "null in each answer that says running"),
        ),
        (
            "transitions",
            "A job goes from running to succeeded or failed, and stays there.",
            partial(_transitions, made),
        ),
        (
            "result",
            f"A job that succeeded has result.{made}Id.",
            partial(_by_end, made, SUCCEEDED, job_rules.result_faults, f"result.{made}Id is there"),
        ),
        (
            "failure",
            "A job that failed has error.message.",
            partial(_by_end, made, FAILED, job_rules.failure_faults, "error.message is there"),
        ),
        ("repeat", "The same request again makes nothing twice.", partial(_repeat, made)),
        ("required-fields", "Each field of the request is required.", partial(_required, made)),
    )
    return tuple(
        Check(f"{made}-{name}", section, statement, perform, Needs.SPENDING)
        for name, statement, perform in rows
    )


CHECKS = (Check("jobs-unknown", SECTION, "An unknown job is answered with 400 or above.", unknown_job),)
PATTERN_CHECKS = (
    *_checks("pattern"),
    Check(
        "pattern-kind",
        "2 job",
        "The kind of a pattern job is `pattern`.",
        partial(_on_trail, "pattern", job_rules.kind_faults, "`pattern`"),
        Needs.SPENDING,
    ),
)
PRODUCT_CHECKS = (
    *_checks("product"),
    Check("product-kind", "2 job", "The kind of other jobs is left open.", kind_of_product, Needs.SPENDING),
)
CONCURRENCY_CHECKS = (
    Check(
        "pattern-fifty-at-once",
        "4 retries",
        "One requestId, sent fifty times at once, makes one pattern.",
        fifty_at_once,
        Needs.SPENDING,
    ),
)
