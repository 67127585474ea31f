"""The one place that decides what an answer means: send again, wait, or how it ended. Pure functions."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

from patternmill.service.answers import Answer, Happening, Trouble
from patternmill.service.jobs import FAILED, RUNNING, SUCCEEDED, Job, read_job
from patternmill.service.verdicts import (
    Accepted,
    Conflict,
    Failed,
    GaveUp,
    Kept,
    Refused,
    Stopped,
    Succeeded,
)

#: Gives a number from 0 to 1.
Jitter = Callable[[], float]

REDIRECTS = range(300, 400)
#: The key, the account or the address is wrong: every other item would be answered the same.
STOPPING = {
    401: "unauthorized",
    402: "payment_required",
    403: "forbidden",
    404: "wrong_address",
    405: "wrong_address",
    406: "wrong_address",
    407: "proxy_unauthorized",
    410: "wrong_address",
    415: "wrong_address",
    421: "wrong_address",
    426: "wrong_address",
}
#: Statuses below 500 that say nothing about the item: the same request may do better later.
PASSING = frozenset({408, 423, 425, 499})
REPEATED = 409
RATE_LIMITED = 429

REMEDIES = {
    "unauthorized": "Check PATTERNMILL_API_KEY, and that it belongs to this environment.",
    "forbidden": "Check what PATTERNMILL_API_KEY is allowed to do.",
    "payment_required": "Settle the account in the studio console.",
    "wrong_address": "Check PATTERNMILL_STUDIO_URL: it ends with the version segment, such as /v1.",
    "redirected": "Set PATTERNMILL_STUDIO_URL to the address that answers without a redirect.",
}


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How long one create is worth sending again, and how patiently."""

    create_timeout: timedelta = timedelta(minutes=10)
    in_doubt_limit: timedelta = timedelta(hours=12)
    job_timeout: timedelta = timedelta(minutes=30)
    first_pause: timedelta = timedelta(milliseconds=500)
    longest_pause: timedelta = timedelta(seconds=30)
    #: Told to wait longer than this, the run stops instead.
    longest_wait: timedelta = timedelta(hours=1)
    #: A job unknown to the service this soon after its acceptance may only not have arrived everywhere.
    young: timedelta = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Situation:
    """What the sender knows besides the answer."""

    #: Sends so far in this run, this one included.
    tries: int = 1
    #: Since the first send in this run.
    trying_for: timedelta = timedelta(0)
    #: An earlier send, by this run or another, may have been executed.
    in_doubt: bool = False
    #: The job that an earlier answer named for this very request.
    known_job_id: str | None = None
    #: The service has answered anything in this run.
    reached: bool = True
    #: The service has answered somebody well while this create was tried.
    well: bool = True


@dataclass(frozen=True, slots=True)
class RetryAfter:
    """Send the same request again, `delay` from now."""

    delay: timedelta
    #: The request that was just sent may have been executed.
    in_doubt: bool
    #: The service asked for this pause: nobody else sends a create before it is over.
    told: bool = False


@dataclass(frozen=True, slots=True)
class AskAgain:
    """The job has not ended as far as is known. `delay`: told, or after a failure; None: when it is due."""

    delay: timedelta | None = None
    told: bool = False
    #: The status word, when it is none that the interface names.
    unknown_status: str | None = None


CreateDecision = RetryAfter | Accepted | Refused | Stopped | Conflict | Kept
PollDecision = AskAgain | Succeeded | Failed | GaveUp | Kept | Conflict | Stopped


def decide_create(answer: Answer, now: Situation, policy: RetryPolicy, jitter: Jitter) -> CreateDecision:
    """What the answer to a create leads to."""
    status = answer.status
    if answer.happening is not Happening.ANSWERED or status is None:
        return _unanswered(answer, now, policy, jitter)
    if status in REDIRECTS:
        return _stopped("redirected", answer, now.in_doubt, item_refused=True)
    if status in STOPPING:
        return _stopped(STOPPING[status], answer, now.in_doubt)
    if status == RATE_LIMITED:
        return _told_to_wait(answer, now, policy, jitter)
    if status == REPEATED:
        return _repeated(answer, now)
    if 400 <= status < 500 and status not in PASSING:
        return Refused("invalid_request", said(answer))
    return _success_or_doubt(answer, now, policy, jitter)


def decide_poll(
    answer: Answer, job_id: str, age: timedelta, tries: int, policy: RetryPolicy, jitter: Jitter
) -> PollDecision:
    """What the answer to a poll leads to. `age`: of the job; `tries`: polls in a row that told nothing."""
    status = answer.status
    if answer.happening is Happening.NOT_SENT and answer.trouble is Trouble.TLS:
        return _stopped("tls", answer, in_doubt=False)
    if status in REDIRECTS:
        return _stopped("redirected", answer, in_doubt=False)
    if status in {401, 402, 403, 407}:
        return _stopped(STOPPING[status], answer, in_doubt=False)
    if status in {404, 410} and age >= policy.young:
        return Kept("job_unknown", f"The service does not know the job {job_id} any more.")
    if answer.good:
        return _progress(answer, job_id, age, tries, policy, jitter)
    return _poll_pause(answer, tries, policy, jitter)


def said(answer: Answer) -> str:
    """The answer in words, for people."""
    reason = f": {answer.detail}" if answer.detail else ""
    if answer.status is None:
        return f"No answer from the service{reason}."
    return f"The service answered {answer.status}{reason}".removesuffix(".") + "."


def pause(tries: int, policy: RetryPolicy, jitter: Jitter) -> timedelta:
    """Doubles from try to try, and is spread over its upper half."""
    longest = min(policy.first_pause * (1 << min(tries - 1, 20)), policy.longest_pause)
    return longest * (0.5 + 0.5 * jitter())


_NUMBER = re.compile(r"\d+(\.\d+)?([eE]\+?\d{1,2})?", re.ASCII)


def read_retry_after(answer: Answer) -> timedelta | None:
    """How long the service asks to wait: from seconds or a date; None when it does not say so readably.

    A date is compared with the service's own clock where the answer carries it, so that ours may be wrong.
    """
    text = (answer.retry_after or "").strip()
    if _NUMBER.fullmatch(text):
        return timedelta(seconds=min(float(text), 1e9))
    until, now = _date(text), _date(answer.date) or datetime.now(UTC)
    return max(until - now, timedelta(0)) if until else None


def _date(text: str | None) -> datetime | None:
    try:
        date = parsedate_to_datetime(text or "")
    except (ValueError, IndexError, OverflowError):
        return None
    return date if date.tzinfo else date.replace(tzinfo=UTC)


def _unanswered(answer: Answer, now: Situation, policy: RetryPolicy, jitter: Jitter) -> CreateDecision:
    if answer.trouble in {Trouble.TLS, Trouble.ADDRESS}:
        return _stopped(answer.trouble.value, answer, now.in_doubt)
    if answer.trouble in {Trouble.NAME_NOT_FOUND, Trouble.HANDSHAKE} and not now.reached:
        return _stopped(answer.trouble.value, answer, now.in_doubt)
    return _again(answer, now, policy, jitter)


def _again(answer: Answer, now: Situation, policy: RetryPolicy, jitter: Jitter) -> CreateDecision:
    """Send the same request again, unless that has been tried for long enough."""
    in_doubt = answer.happening is not Happening.NOT_SENT
    if now.trying_for >= policy.create_timeout:
        return _tired(answer, now.in_doubt or in_doubt, now.well)
    told = read_retry_after(answer) if answer.status else None
    delay = max(pause(now.tries, policy, jitter), min(told or timedelta(0), policy.create_timeout / 2))
    return RetryAfter(delay, in_doubt)


def _tired(answer: Answer, in_doubt: bool, well: bool) -> CreateDecision:
    """Tried long enough: one item is kept for a person; a service that answers nobody stops the run."""
    if not well:
        return _stopped("service_away", answer, in_doubt)
    return Kept("no_clear_answer", f"{said(answer)} It was asked for long enough.", in_doubt)


def _told_to_wait(answer: Answer, now: Situation, policy: RetryPolicy, jitter: Jitter) -> CreateDecision:
    told = read_retry_after(answer)
    if (told or timedelta(0)) > policy.longest_wait or now.trying_for > policy.longest_wait:
        return _stopped("rate_limited", answer, now.in_doubt)
    return RetryAfter(
        max(told or timedelta(0), pause(now.tries, policy, jitter)), in_doubt=False, told=bool(told)
    )


def _repeated(answer: Answer, now: Situation) -> CreateDecision:
    """The service has this ID already. Only a job that we know to be ours is taken over."""
    job = read_job(answer.body)
    if job and job.job_id == now.known_job_id:
        return Accepted(job)
    return Kept(
        "repeated_request", f"{said(answer)} It has a request of this ID, and names no job that is ours."
    )


def _success_or_doubt(answer: Answer, now: Situation, policy: RetryPolicy, jitter: Jitter) -> CreateDecision:
    job = read_job(answer.body) if answer.good else None
    if job is None:
        return _again(answer, now, policy, jitter)
    if now.known_job_id is not None and job.job_id != now.known_job_id:
        return Conflict(
            "second_job",
            f"The service named job {now.known_job_id} and then job {job.job_id} for one request.",
        )
    return Accepted(job)


def _progress(
    answer: Answer, job_id: str, age: timedelta, tries: int, policy: RetryPolicy, jitter: Jitter
) -> PollDecision:
    job = read_job(answer.body)
    if job is None:
        return AskAgain(pause(tries, policy, jitter))
    if job.job_id != job_id:
        return Conflict("wrong_job", f"Asked for job {job_id}, the service answered with job {job.job_id}.")
    return verdict_on(job, age) or _unfinished(job, tries, policy, jitter)


def verdict_on(job: Job, age: timedelta) -> Succeeded | Failed | None:
    """How the job ended, if it did."""
    if job.status == SUCCEEDED and job.result_id is not None:
        return Succeeded(job.result_id, job.picture_url, age)
    if job.status == FAILED:
        return Failed(job.error or "the service gave no reason")
    return None


def _unfinished(job: Job, tries: int, policy: RetryPolicy, jitter: Jitter) -> AskAgain:
    if job.status == RUNNING:
        return AskAgain()
    if job.status == SUCCEEDED:  # without the ID of what was made: not ended as long as it does not name it
        return AskAgain(pause(tries, policy, jitter))
    return AskAgain(unknown_status=job.status)


def _poll_pause(answer: Answer, tries: int, policy: RetryPolicy, jitter: Jitter) -> PollDecision:
    told = read_retry_after(answer) if answer.status is not None else None
    if answer.status == RATE_LIMITED and told and told > policy.longest_wait:
        return _stopped("rate_limited", answer, in_doubt=False)
    delay = max(min(told or timedelta(0), policy.longest_wait), pause(tries, policy, jitter))
    return AskAgain(delay, told=bool(told) and answer.status == RATE_LIMITED)


def _stopped(code: str, answer: Answer, in_doubt: bool, *, item_refused: bool = False) -> Stopped:
    return Stopped(code, f"{said(answer)} {REMEDIES.get(code, '')}".strip(), in_doubt, item_refused)
