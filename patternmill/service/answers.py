"""What each answer of the service leads to: accept, ask again, refuse, hold or stop. Pure functions."""

import json
import re
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from patternmill.items import Stage
from patternmill.service.evidence import AT_ONCE, Asked, contradiction, job_in, made_in, result_in
from patternmill.service.words import Words, cleaned

#: Statuses about the account: every other request would get the same answer. What to do about each.
STOPPING = {
    401: ("unauthorized", "Check PATTERNMILL_API_KEY, and that it belongs to this environment."),
    402: ("payment_required", "Settle the account in the service's console."),
    403: ("forbidden", "Check what PATTERNMILL_API_KEY is allowed to do."),
    407: ("proxy_unauthorized", "Check the name and the password of the proxy."),
}
#: Statuses of a wrong address, or of a name that the service does not know.
MISADDRESSED = frozenset({404, 405, 406, 410, 415, 421, 426})
#: Statuses of a job that the service does not know, and those below 500 of a request that may have been executed.
_UNKNOWN_JOB, _UNCERTAIN = frozenset({400, 404, 410, 422}), frozenset({408, 423, 425, 499})
#: In seconds: the longest pause that a service may ask for, and our own; how long pages of something in front of the
#: service are waited for; the age until which an unknown job may not have arrived everywhere yet.
LONGEST_WAIT, _LONGEST_PAUSE, _PAGES, _YOUNG = 3600.0, 20.0, 180.0, 60.0
#: An unreadable answer counts when it has come so often; a redirect, and a job that is not known, likewise.
_OFTEN = 3
CHECK_ADDRESS = "Check PATTERNMILL_STUDIO_URL: it ends with the version, such as /v1."
DO_NOT_CHANGE = "Do not change the row before you know whether it exists: `patternmill settle` lists it."
_PAGE = re.compile(r"\s*(<|error code: 1\d\d\d)")
#: Reads NaN as null, and line breaks in texts.
_JSON = json.JSONDecoder(strict=False, parse_constant=lambda _: None)


@dataclass(frozen=True)
class Answer:
    """What came back for one request: an HTTP response, or the trouble in its place."""

    status: int | None = None
    text: str = ""
    #: The pause that it asks for, in seconds.
    retry_after: float | None = None
    #: `unreachable`: it never left; `lost`: it may have arrived; `unusable`: the address or its certificate is wrong.
    trouble: str = ""

    @cached_property
    def data(self) -> Any:
        try:
            return _JSON.decode(self.text)
        except (ValueError, RecursionError):
            return None

    @cached_property
    def is_page(self) -> bool:
        return _PAGE.match(self.text) is not None

    @property
    def reason(self) -> str:
        said = str(Words(self.data, self.text, {})) or cleaned(self.text)
        return f"{self.status or self.trouble}: {said}".rstrip(": .")


@dataclass(frozen=True, slots=True)
class Again:
    """Send the same request again, or ask again, after so many seconds."""

    after: float
    in_doubt: bool = False
    #: The service asked for the pause, so nothing else of this kind is sent before it is over.
    told: bool = False


@dataclass(frozen=True, slots=True)
class Accepted:
    """The service named a job, or at once what was made; `address`: where the buyer pays a checkout."""

    job_id: str
    result_id: str = ""
    address: str = ""


@dataclass(frozen=True, slots=True)
class Ended:
    """The job has ended: with a result, or with the code and the reason of its failure."""

    result_id: str | None
    message: str = ""
    code: str = ""


@dataclass(frozen=True, slots=True)
class _Judged:
    code: str
    message: str


class Refused(_Judged):
    """The service refuses the request, and made nothing."""


class Held(_Judged):
    """Something may exist; a person decides."""


class Stop(_Judged):
    """No request of this run can go through."""


@dataclass(frozen=True, slots=True)
class Unclear:
    """There is no clear answer so far; the next run goes on."""

    message: str


Decision = Again | Accepted | Ended | Refused | Held | Stop | Unclear


@dataclass(frozen=True)
class Situation:
    """What the sender of a request knows beside the answer. Times are in seconds."""

    asked: Asked
    #: How long it may be tried for, and has been; for a poll, the age of its job.
    patience: float
    elapsed: float = 0.0
    #: For how long nothing but pages of something else, and rate limits, came back for any request.
    quiet: float = 0.0
    #: Sends so far, this one included; for a poll, those in a row that said nothing of the job.
    tries: int = 1
    #: How often this very text has come in a row.
    alike: int = 1
    text: str = ""
    #: An earlier send may have been executed.
    in_doubt: bool = False
    #: The service has answered well before, so the address and the key are right.
    works: bool = True

    def met(self, answer: Answer, elapsed: float, quiet: float, works: bool) -> "Situation":
        alike = self.alike + 1 if answer.text == self.text else 1
        return replace(self, elapsed=elapsed, quiet=quiet, alike=alike, text=answer.text, works=works)

    def after(self, decision: Again) -> "Situation":
        return replace(self, tries=self.tries + 1, in_doubt=self.in_doubt or decision.in_doubt)

    @property
    def pause(self) -> float:
        return min(0.5 * (1 << min(self.tries - 1, 10)), _LONGEST_PAUSE)


def decide_create(answer: Answer, now: Situation) -> Decision:
    """Return what the answer to a create leads to, by the first rule that fits."""
    status, known = answer.status, now.asked.job_id
    if (stop := stopped(answer, now)) is not None:
        return stop
    if status is None or answer.is_page or status in _UNCERTAIN or status == 429:
        may_be_executed = status is None or status < 300 or status >= 500 or status in _UNCERTAIN
        return _wait(answer, now, in_doubt=may_be_executed and answer.trouble != "unreachable")
    if status < 300 and (made := made_in(answer.data, now.asked.stage)):
        return _created(made, now)
    # Half a job says nothing.
    words = Words(answer.data, answer.text if status >= 400 else "", now.asked.sent)
    if words.say_under_way:
        return _wait(answer, now, in_doubt=True)
    if status in (409, 412) or words.say_known:
        is_ours = known and job_in(answer.data) == known
        message = f"The service knows this request already ({answer.reason})."
        return Accepted(str(known)) if is_ours else _held("repeated_request", message)
    if status >= 500:
        return _wait(answer, now, in_doubt=True)
    return _refused(answer, words, now) if status >= 400 else _unreadable(answer, now)


def stopped(answer: Answer, now: Situation) -> Stop | None:
    """Return the stop that an answer means for all requests, if it does."""
    status, is_page = answer.status or 0, answer.is_page
    if 200 <= status < 300 and not is_page:
        return None
    said = f"The service answered {answer.reason}."
    if answer.trouble == "unusable":
        return Stop("unusable_address", f"The service cannot be reached: {answer.text}. {CHECK_ADDRESS}")
    if (answer.retry_after or 0.0) > LONGEST_WAIT or (status == 429 and now.quiet > LONGEST_WAIT):
        return Stop("rate_limited", f"{said} That is a wait of more than an hour.")
    if status in STOPPING and not (is_page and (status == 403 or (now.works and status != 407))):
        words = Words(answer.data, answer.text, now.asked.sent)
        is_of_item = words.name_row or ("prompt" in now.asked.sent and words.refuse_content)
        if status == 403 and now.works and is_of_item:
            return None
        return Stop(STOPPING[status][0], f"{said} {STOPPING[status][1]}")
    is_first = not now.works and now.asked.job_id is None
    if is_first and (status in MISADDRESSED or 300 <= status < 400):
        return Stop("wrong_address", f"{said} {CHECK_ADDRESS}")
    if is_page and status < 500 and now.quiet > min(_PAGES, now.patience):
        front = "Something in front of the service, such as a firewall or a proxy, answers in its place"
        return Stop("page_in_front", f"{front} ({answer.reason}). It says nothing about the key.")
    return None


def _held(code: str, message: str) -> Held:
    return Held(code, f"{message} {DO_NOT_CHANGE}")


def _wait(answer: Answer, now: Situation, *, in_doubt: bool) -> Decision:
    """Send the same request again, after the pause that is asked for; a rate limit is no reason to give up."""
    asked = answer.retry_after
    if answer.status == 429:
        return Again(asked or 0.5, told=bool(asked))
    if now.elapsed > now.patience:
        return Unclear(f"No clear answer for {now.elapsed:.0f} s; the last: {answer.reason}.")
    return Again(asked or now.pause, in_doubt, told=bool(asked) and answer.status == 503)


def _refused(answer: Answer, words: Words, now: Situation) -> Decision:
    said = f"The service refused it ({answer.reason})."
    if now.in_doubt:
        return _held("refused_in_doubt", f"{said} An earlier send of it may have been executed.")
    if words.refuse_content and "prompt" in now.asked.sent:
        return Refused("invalid_request", f"{said} The prompt has to be changed.")
    if words.name_row:
        return Refused("invalid_request", f"{said} Correct the row.")
    return Refused("unclear_refusal", f"{said} The same command sends it again.")


def _created(data: dict[str, Any], now: Situation) -> Decision:
    if problem := contradiction(data, now.asked):
        return _held("contradiction", problem)
    failed = _failed(data, now) if data.get("status") == "failed" else None
    if isinstance(failed, Held):
        return failed
    is_made = now.asked.stage in AT_ONCE and data.get("status") == "succeeded"
    address = str(data.get("checkoutUrl") or "") if now.asked.stage is Stage.CHECKOUT else ""
    is_address = address.isprintable() and address.startswith(("https://", "http://"))
    result = result_in(data, now.asked.stage) if is_made else ""
    return Accepted(job_in(data), result, address if is_address else "")


def _unreadable(answer: Answer, now: Situation) -> Decision:
    """Judge a success without a job, or a redirect: the same one several times is held, with its words."""
    if answer.status in range(300, 400) and now.tries >= _OFTEN:
        return _held("refused_in_doubt", f"The service answered {answer.reason}.")
    if answer.status in range(300) and (now.alike >= _OFTEN or now.elapsed > now.patience):
        return _held("unreadable", f"The service's answer names no job ({answer.reason}).")
    return Again(answer.retry_after or 4 * now.pause, in_doubt=True)


def decide_poll(answer: Answer, now: Situation) -> Decision:
    """Return what the answer about a job leads to."""
    if (stop := stopped(answer, now)) is not None:
        return stop
    status, job = answer.status or 0, now.asked.job_id
    if 200 <= status < 300 and job_in(answer.data):
        return _followed(answer, answer.data, now)
    if not answer.is_page and now.elapsed > _YOUNG and now.tries >= _OFTEN:
        if status in _UNKNOWN_JOB:
            return Held("job_unknown", f"The service does not know the job {job} ({answer.reason}).")
        if status == 200 and now.alike >= _OFTEN:
            return Held("unreadable", f"The answer about the job {job} cannot be read ({answer.reason}).")
    if now.elapsed > now.patience:
        return Unclear(f"The job {job} has not ended; the last answer: {answer.reason}.")
    return Again(answer.retry_after or now.pause, told=status == 429)


def decide_report(answer: Answer, name: str) -> Refused | Unclear | None:
    """Return why the report of this name did not arrive, or may not have. Sent again, it could arrive twice."""
    status, said = answer.status or 0, answer.reason
    if 200 <= status < 300 and isinstance(answer.data, dict) and answer.data.get("requestId") == name:
        return None
    if status in (429, 503):
        return Refused("no_reports", f"The service takes no reports for now ({said}). Send it again later.")
    is_refused = 300 <= status < 500 and status not in _UNCERTAIN
    if is_refused or answer.trouble in ("unusable", "unreachable"):
        _, remedy = STOPPING.get(status, ("", ""))
        return Refused("report_refused", f"The report was not taken ({said}). {remedy}".strip())
    return Unclear(f"The report may have arrived ({said}). Sent again, it may arrive twice.")


def _followed(answer: Answer, data: dict[str, Any], now: Situation) -> Decision:
    """Return what an answer that names a job says of it. `Again(0.0)`: it has not ended yet."""
    job, status, is_late = job_in(data), data.get("status"), now.elapsed > now.patience
    if problem := contradiction(data, now.asked):
        return _held("contradiction", problem)
    if status == "failed":
        return _failed(data, now)
    if status != "succeeded":
        words = f"The job {job} has not ended after {now.elapsed:.0f} s; its status: {str(status)[:40]!r}."
        return Unclear(words) if is_late else Again(0.0)
    if result := result_in(data, now.asked.stage):
        return Ended(result)
    if is_late or (data.get("result") and now.alike >= _OFTEN):
        return Held(
            "unreadable_result", f"The job {job} succeeded with an unreadable result ({answer.reason})."
        )
    return Again(2 * now.pause)


def _failed(data: dict[str, Any], now: Situation) -> Held | Ended:
    words = Words(data.get("error") or data.get("message") or data.get("reason") or "", "", now.asked.sent)
    said = str(words).rstrip(".") or "the service gave no reason"
    if words.say_known:
        return _held("repeated_request", f"The job {job_in(data)} failed as a repeated request ({said}).")
    if words.refuse_content:
        return Ended(None, f"{said}. The prompt has to be changed.", "content_refused")
    return Ended(None, said, "job_failed")
