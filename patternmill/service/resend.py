"""Decides what an answer means: resend, wait, or how it ended. Pure functions."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any

import orjson

from patternmill.service.jobs import (
    RESULT_FIELDS,
    RUNNING,
    SUCCEEDED,
    Job,
    named_result,
    read_created,
    read_job,
)
from patternmill.service.outcomes import GAVE_UP, Answer, Ended, Refusal, Trouble
from patternmill.service.redaction import clean, scrubbed
from patternmill.service.refusals import GIVEN, has_id_already, names_row, says_no, shape_of
from patternmill.states import INVALID_REQUEST, NOT_REPEATABLE, UNCLEAR_REFUSAL, AttemptState, Stage

#: A function that returns a number from 0 to 1.
Jitter = Callable[[], float]

REDIRECTS = range(300, 400)
#: The only redirect that means that the request was executed.
SEE_OTHER = 303
#: The redirects that mean that it was not.
ELSEWHERE = frozenset({307, 308})
#: Statuses of a wrong key or account, with their codes: every other item would get the same answer.
STOPPING = {401: "unauthorized", 402: "payment_required", 403: "forbidden", 407: "proxy_unauthorized"}
#: Statuses of a wrong address, or of a request that names something that the service does not know.
MISADDRESSED = frozenset({404, 405, 406, 410, 415, 421, 426})
UNKNOWN_STATUS = "unknown_status"
REPEATED_REQUEST = "repeated_request"
REFUSED_IN_DOUBT = "refused_in_doubt"
RATE_LIMITED = 429
#: The code of a question that got no clear answer, so that what was learned earlier counts.
UNREACHABLE = "unreachable"
#: Troubles with which no request can reach the service: ever, or as long as none has reached it.
_NEVER_REACHED = frozenset({Trouble.TLS, Trouble.ADDRESS})
NOT_REACHED_YET = _NEVER_REACHED | {Trouble.NAME_NOT_FOUND, Trouble.HANDSHAKE}

REMEDIES = {
    "unauthorized": "Check PATTERNMILL_API_KEY, and that it belongs to this environment.",
    "forbidden": "Check what PATTERNMILL_API_KEY is allowed to do.",
    "payment_required": "Settle the account in the studio console.",
    "wrong_address": "Check what the row names, and PATTERNMILL_STUDIO_URL: it ends with the version, such as /v1.",
    "rate_limited": "It asks to wait for over an hour, as for a limit of the account. Run the same command again then.",
    "service_away": "It has not answered well for too long: run the same command again when it is up.",
    UNREACHABLE: "See that the service's address is right and that it is up.",
    "redirected": "Set PATTERNMILL_STUDIO_URL to the address that answers without a redirect.",
}


@dataclass(frozen=True, slots=True)
class ResendPolicy:
    """The policy for sending a create again: for how long, and after which pauses."""

    create_timeout: timedelta = timedelta(minutes=10)
    in_doubt_limit: timedelta = timedelta(hours=12)
    job_timeout: timedelta = timedelta(minutes=30)
    first_pause: timedelta = timedelta(milliseconds=500)
    longest_pause: timedelta = timedelta(seconds=30)
    #: If the service asks to wait longer than this, the run stops instead.
    longest_wait: timedelta = timedelta(hours=1)
    #: A job that is unknown this soon after its acceptance may not have arrived everywhere yet.
    young: timedelta = timedelta(minutes=1)
    #: The number of sends of one request that a redirect, a proxy's page or "not found" has to answer before it counts.
    unclear_tries: int = 4
    #: The requests answered so in a row that mean a wrong address: of an operation never seen to work, or of any other.
    unclear_requests: int = 3
    unclear_requests_later: int = 10
    jitter: Jitter = random.random

    def pause(self, tries: int) -> timedelta:
        """Return the pause after this many tries: it doubles with each, and is random in its upper half."""
        longest = min(self.first_pause * (1 << min(tries - 1, 20)), self.longest_pause)
        return longest * (0.5 + 0.5 * self.jitter())


@dataclass(frozen=True, slots=True)
class CreateRequest:
    """A request that makes something, with what is known of it before it is sent."""

    stage: Stage = Stage.PATTERN
    #: The body, which is sent byte for byte each time.
    body: bytes = b""
    #: The operation, where a stage has several.
    operation: str | None = None
    #: Fields of the body that are not the row's.
    given: Collection[str] = GIVEN
    #: Whether it is known to make nothing twice when it is sent again.
    repeatable: bool = True
    #: The operation that finds its job by the request ID, if one is known.
    look_up: str | None = None
    #: The job that an earlier answer named for it.
    known_job_id: str | None = None
    #: How long ago an earlier run first sent it; None: it never was.
    age: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Situation:
    """The state of a request as its sender knows it, beside the answer."""

    request: CreateRequest = field(default_factory=CreateRequest)
    #: Sends so far in this run, this one included.
    tries: int = 1
    #: Time since the first send in this run.
    trying_for: timedelta = timedelta(0)
    #: An earlier send, by this run or another, may have been executed.
    in_doubt: bool = False
    #: An earlier send was answered by a redirect, with which some services answer what they have executed.
    redirected: bool = False
    #: The service has answered any request of this run.
    reached: bool = True
    #: The service answered another request well while this create was tried.
    well: bool = True
    #: A create of this operation was accepted, in this run or before.
    works: bool = False
    #: Any operation has been answered well in this run: the base address is right.
    answered_well: bool = False
    #: Different requests of this operation, this one included, that were answered as if the address were wrong,
    #: since one was last accepted.
    unclear_requests: int = 1

    @property
    def may_have_made(self) -> bool:
        """Return whether an earlier send may have been executed."""
        return self.in_doubt or self.redirected


@dataclass(frozen=True, slots=True)
class ResendAfter:
    """Send the same request again, `delay` from now."""

    delay: timedelta
    #: The request just sent may have been executed.
    in_doubt: bool
    #: The service asked for this pause: no other create is sent before it is over.
    server_requested: bool = False
    #: The answer was a redirect.
    redirected: bool = False


@dataclass(frozen=True, slots=True)
class AskAgain:
    """The job has not ended as far as we know. `delay`: requested, or after a failure; None: until a poll is due."""

    delay: timedelta | None = None
    server_requested: bool = False
    #: How the wait ends if this was the last poll.
    gave_up: Refusal = GAVE_UP


CreateDecision = ResendAfter | Job | Refusal
PollDecision = AskAgain | Ended | Refusal


def decide_create(answer: Answer, now: Situation, policy: ResendPolicy) -> CreateDecision:
    """Return what the answer to a create leads to, by the first rule that fits."""
    if not now.request.repeatable and _may_be_executed(answer, now.request.stage):
        return _not_repeatable(answer, now)
    if answer.trouble in _NEVER_REACHED or (answer.trouble in NOT_REACHED_YET and not now.reached):
        return _stopped(answer.trouble.value, answer, now.may_have_made)
    if answer.status is None:
        return _again(answer, now, policy)
    if code := unclear_code(answer, now):
        return _unclear(code, answer, now, policy)
    if answer.status in STOPPING:
        return _stopped(STOPPING[answer.status], answer, now.may_have_made)
    if answer.status == RATE_LIMITED:
        return _rate_limited(answer, now, policy)
    if _is_repeated(answer, now):
        return _repeated(answer, now)
    if answer.refused or _is_refused_success(answer, now):
        is_of_row = names_row(answer, now.request.body, now.request.given)
        if is_of_row or answer.refused:
            return _refused(INVALID_REQUEST if is_of_row else UNCLEAR_REFUSAL, answer, now)
    return _read(answer, now, policy)


def _may_be_executed(answer: Answer, stage: Stage) -> bool:
    """Return whether a request without a known job may have made something all the same."""
    if answer.status is None:
        return answer.was_sent
    if answer.status < 400:
        return answer.status not in ELSEWHERE and not (answer.usable and read_created(answer.body, stage))
    return not answer.refused


def decide_poll(
    answer: Answer,
    policy: ResendPolicy,
    job_id: str,
    *,
    age: timedelta,
    tries: int = 1,
    well: bool = False,
) -> PollDecision:
    """Return what the answer to a poll of a job of this age means.

    `tries`: polls in a row without a usable answer, this one included. `well`: the service has answered a poll of
    another job well while this one was asked in vain.
    """
    status = answer.status
    if answer.trouble is Trouble.TLS:
        return _stopped("tls", answer, in_doubt=True)
    if status in STOPPING:
        return _stopped(STOPPING[status], answer, in_doubt=True)
    if status in REDIRECTS and tries >= policy.unclear_tries and not well:
        return _stopped("redirected", answer, in_doubt=True)
    # Another form of answer than the service's own may be a proxy's, while the service is replaced.
    is_its_own = answer.trouble is Trouble.NONE or (well and tries >= policy.unclear_tries)
    if status in {404, 410} and age >= policy.young and is_its_own:
        return Refusal(
            AttemptState.HELD, "job_unknown", f"The service does not know the job {job_id} any more."
        )
    if answer.usable:
        return _progress(answer, policy.pause(tries), job_id)
    return _poll_pause(answer, tries, policy)


def sentence(answer: Answer) -> str:
    reason = f": {answer.detail}" if answer.detail else ""
    if answer.status is None:
        return f"No answer from the service{reason}."
    return f"The service answered {answer.status}{reason}".removesuffix(".") + "."


_NUMBER = re.compile(r"\d+(\.\d+)?([eE]\+?\d{1,2})?", re.ASCII)


def read_retry_after(answer: Answer) -> timedelta | None:
    """Return how long the service asks to wait, in seconds or until a date; None when that cannot be read.

    A date is compared with the service's own clock where the answer has it, so that ours may be wrong.
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


def _again(answer: Answer, now: Situation, policy: ResendPolicy) -> CreateDecision:
    """Send the same request again; after long enough a person decides, or, without any good answer, the run stops."""
    in_doubt = answer.was_sent
    if now.trying_for < policy.create_timeout:
        requested = read_retry_after(answer) if answer.status else None
        longest = policy.create_timeout / 2
        delay = max(policy.pause(now.tries), min(requested or timedelta(0), longest))
        return ResendAfter(delay, in_doubt, server_requested=bool(requested))
    if not now.well:
        return _stopped("service_away", answer, now.may_have_made or in_doubt)
    state = None if now.may_have_made or in_doubt else AttemptState.HELD
    return Refusal(state, "no_clear_answer", f"{sentence(answer)} It was asked for long enough.")


def _rate_limited(answer: Answer, now: Situation, policy: ResendPolicy) -> CreateDecision:
    requested = read_retry_after(answer)
    if (requested or timedelta(0)) > policy.longest_wait or now.trying_for > policy.longest_wait:
        return _stopped("rate_limited", answer, now.may_have_made)
    return ResendAfter(
        max(requested or timedelta(0), policy.pause(1)),
        in_doubt=False,
        server_requested=bool(requested),
    )


def _refused(code: str, answer: Answer, now: Situation) -> Refusal:
    """Reject this item; hold it where an earlier send may have been executed."""
    if not now.in_doubt and (not now.redirected or code == "redirected"):
        alike = shape_of(answer, now.request.body) if code in {INVALID_REQUEST, UNCLEAR_REFUSAL} else ""
        return Refusal(AttemptState.REJECTED, code, sentence(answer), alike=alike)
    return Refusal(
        AttemptState.HELD,
        REFUSED_IN_DOUBT,
        f"{sentence(answer)} The same request was sent before, and that answer was lost.",
    )


def _unclear(code: str, answer: Answer, now: Situation, policy: ResendPolicy) -> CreateDecision:
    """Judge an answer that may be another server's: about one item if others succeed, else about the run."""
    most = policy.unclear_requests_later if now.works else policy.unclear_requests
    executed = answer.status == SEE_OTHER
    in_doubt = now.in_doubt or executed or (now.redirected and code != "redirected")
    if now.unclear_requests >= most:
        return _stopped(code, answer, in_doubt, item_refused=True)
    if now.tries < policy.unclear_tries:
        wait = policy.pause(now.tries)
        return ResendAfter(wait, in_doubt=executed, redirected=answer.status in REDIRECTS)
    if executed and now.works:
        message = f"{sentence(answer)} Some services answer so when they have executed the request."
        return Refusal(None, code, message)
    if now.works or (now.answered_well and code != "redirected"):
        return _refused(code, answer, now)
    return _stopped(code, answer, in_doubt, item_refused=True)


def unclear_code(answer: Answer, now: Situation) -> str:
    """Return the code of an answer that may be another server's; "" for any other answer."""
    if answer.status in REDIRECTS:
        return "redirected"
    if answer.status in MISADDRESSED:
        return "" if now.works and answer.trouble is Trouble.NONE else "wrong_address"
    is_clear = answer.status in STOPPING or answer.status == RATE_LIMITED or _is_repeated(answer, now)
    return "proxy_page" if answer.trouble is Trouble.HTML and answer.refused and not is_clear else ""


def _repeated(answer: Answer, now: Situation) -> CreateDecision:
    """Hold a request whose ID the service has already, unless it names the job that we know to be its own."""
    job = read_created(answer.body, now.request.stage)
    if job and job.job_id == now.request.known_job_id:
        return job
    return Refusal(
        AttemptState.HELD,
        REPEATED_REQUEST,
        f"{sentence(answer)} It has a request of this ID, and names no job that is ours.",
    )


def _progress(answer: Answer, pause: timedelta, job_id: str) -> PollDecision:
    job = read_job(answer.body)
    if job is None:
        message = f"{sentence(answer)} It names no job, but has {_excerpt(answer.body)}."
        return AskAgain(pause, gave_up=replace(GAVE_UP, message=message))
    if job.job_id != job_id or job.has_ended:
        return Ended(job)
    if job.status == SUCCEEDED:  # without the ID of what was made: it has not ended until it names that
        message = f"Job {job.job_id} succeeded, and the service never said what it made."
        return AskAgain(pause, gave_up=Refusal(AttemptState.HELD, "result_missing", message))
    if job.status == RUNNING:
        return AskAgain()
    message = f"The job has the status {job.status[:40]!r}."
    return AskAgain(gave_up=Refusal(AttemptState.HELD, UNKNOWN_STATUS, message))


def _excerpt(body: Any) -> str:
    """Quote the beginning of an unexpected body."""
    return clean(orjson.dumps(scrubbed(body), default=str).decode(), limit=200)


def _poll_pause(answer: Answer, tries: int, policy: ResendPolicy) -> PollDecision:
    requested = read_retry_after(answer) if answer.status is not None else None
    if answer.status == RATE_LIMITED and requested and requested > policy.longest_wait:
        return _stopped("rate_limited", answer, in_doubt=True)
    delay = max(min(requested or timedelta(0), policy.longest_wait), policy.pause(tries))
    gave_up = replace(GAVE_UP, message=f"The last response: {sentence(answer)}")
    return AskAgain(delay, bool(requested) and answer.status == RATE_LIMITED, gave_up)


def _stopped(code: str, answer: Answer, in_doubt: bool, *, item_refused: bool = False) -> Refusal:
    """Stop the run. `in_doubt`: the item stays open; `item_refused`: the answer is final for it too."""
    state = AttemptState.REJECTED if item_refused else AttemptState.WITHDRAWN
    message = f"{sentence(answer)} {REMEDIES.get(code, '')}".strip()
    return Refusal(None if in_doubt else state, code, message, stops=True)


def _not_repeatable(answer: Answer, now: Situation) -> Refusal:
    result_id = named_result(answer.body, now.request.stage)
    names = f" It names a {RESULT_FIELDS[now.request.stage]}: {result_id}." if result_id else ""
    return Refusal(None, NOT_REPEATABLE, f"{sentence(answer)}{names}")


def _read(answer: Answer, now: Situation, policy: ResendPolicy) -> CreateDecision:
    """Return the job that the answer names; without one the request is in doubt."""
    job = read_created(answer.body, now.request.stage) if answer.usable else None
    if job is None:
        return _again(answer, now, policy)
    if now.request.known_job_id not in (None, job.job_id):
        message = (
            f"The service named job {now.request.known_job_id} and then job {job.job_id} for one request."
        )
        return Refusal(AttemptState.HELD, "second_job", message, stops=True)
    return job


def _is_repeated(answer: Answer, now: Situation) -> bool:
    """Return whether the service says that it has this request ID, by a status or in words."""
    refuses = answer.refused or _is_refused_success(answer, now)
    return refuses and has_id_already(answer, now.request.body, now.request.given)


def _is_refused_success(answer: Answer, now: Situation) -> bool:
    return answer.usable and says_no(answer.body) and read_created(answer.body, now.request.stage) is None
