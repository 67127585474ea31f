"""The fault table, row by row: what an answer to a create, or to a poll, leads to."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from patternmill.service.jobs import Job
from patternmill.service.outcomes import Answer, Ended, Refusal, Trouble
from patternmill.service.resend import (
    AskAgain,
    CreateRequest,
    ResendAfter,
    ResendPolicy,
    Situation,
    decide_create,
    decide_poll,
    read_retry_after,
)
from patternmill.states import AttemptState, Stage
from tests.unit.service.answers import DONE, JOB, answered, lost, not_sent

POLICY = ResendPolicy(jitter=lambda: 0.0)
LONGEST = ResendPolicy(jitter=lambda: 1.0)
ANY = Situation()
LATE = Situation(tries=30, trying_for=timedelta(minutes=11))
AWAY = replace(LATE, well=False)
FIRST = Situation(reached=False)
#: Situations in which an answer may be about the address: to three requests, to the only one, of a working operation.
STRAY = Situation(unclear_requests=3)
ALONE = Situation(tries=4)
ONLY_ITS_OWN = Situation(tries=4, answered_well=True)
WORKS = Situation(works=True)
TIRED = Situation(tries=4, works=True)
STORM = replace(TIRED, unclear_requests=10)
DOUBTED = replace(TIRED, in_doubt=True)
OURS, THEIRS = (Situation(CreateRequest(known_job_id=name)) for name in ("job-1", "job-9"))

SOON = timedelta(milliseconds=250)
D, R = ResendAfter(SOON, in_doubt=True), ResendAfter(SOON, in_doubt=False)
REDIRECTED = replace(R, redirected=True)
#: 303 is how some services answer what they have executed.
SEEN_ELSEWHERE = replace(D, redirected=True)


def waits(seconds: float, *, in_doubt: bool = False) -> ResendAfter:
    return ResendAfter(timedelta(seconds=seconds), in_doubt, server_requested=True)


def page(status: int) -> Answer:
    return answered(status, None, Trouble.HTML)


def shown(decision: Any) -> Any:
    """Return a refusal as a text: of the item, of the run, of both, or left to a person or the next run."""
    if isinstance(decision, Refusal):
        assert decision.message
        kinds = {AttemptState.REJECTED: ("refused", "both"), AttemptState.HELD: ("left", "conflict")}
        return f"{kinds.get(decision.state, ('left', 'stopped'))[decision.stops]}: {decision.code}"
    return "job" if isinstance(decision, Job) else "ended" if isinstance(decision, Ended) else decision


def named(table: list[tuple[str, Any, Any, Any]]) -> list[Any]:
    return [pytest.param(*row[1:], id=row[0]) for row in table]


#: Rows of a fault, an answer, a situation and the decision.
CREATES: list[tuple[str, Answer, Situation, Any]] = [
    ("1 name not found at start", not_sent(Trouble.NAME_NOT_FOUND), FIRST, "stopped: name_not_found"),
    ("1 name not found in mid-run", not_sent(Trouble.NAME_NOT_FOUND), ANY, R),
    ("2 connection refused", not_sent(), ANY, R),
    ("2 connection refused at start", not_sent(), FIRST, R),
    ("2 connect time-out", not_sent(Trouble.CONNECT_TIMEOUT), ANY, R),
    ("3 4 5 10 reset", lost(), ANY, D),
    ("6 7 time-out", lost(Trouble.TIMEOUT), ANY, D),
    ("8 cut short", lost(Trouble.CUT_SHORT), ANY, D),
    ("9 bad certificate", not_sent(Trouble.TLS), ANY, "stopped: tls"),
    ("9 no handshake at start", not_sent(Trouble.HANDSHAKE), FIRST, "stopped: handshake"),
    ("9 no handshake in mid-run", not_sent(Trouble.HANDSHAKE), ANY, R),
    ("11 a proxy's page", page(502), ANY, D),
    ("11 a proxy's page for ever", page(200), AWAY, "stopped: service_away"),
    ("11 400 of a proxy", page(400), WORKS, R),
    ("11 400 of a proxy for ever", page(400), TIRED, "refused: proxy_page"),
    ("12 400", answered(400), ANY, "refused: unclear_refusal"),
    ("12 413", answered(413), ANY, "refused: unclear_refusal"),
    ("13 401", answered(401), ANY, "stopped: unauthorized"),
    ("13 403", answered(403), ANY, "stopped: forbidden"),
    ("14 402", answered(402), ANY, "stopped: payment_required"),
    *((f"15 {status} on the first", answered(status), ANY, R) for status in (404, 405, 406, 410, 415, 421, 426)),
    ("15 404 of three requests", answered(404), STRAY, "both: wrong_address"),
    ("15 404 of the only one", answered(404), ALONE, "both: wrong_address"),
    ("46 404 of one item", answered(404), WORKS, "refused: unclear_refusal"),
    ("46 404 in doubt", answered(404), DOUBTED, "left: refused_in_doubt"),
    ("46 404 of the only one, others answered", answered(404), ONLY_ITS_OWN, "refused: wrong_address"),
    ("46 404 of a proxy", page(404), WORKS, R),
    ("46 404 of a proxy for ever", page(404), TIRED, "refused: wrong_address"),
    ("46 404 of a proxy for all", page(404), STORM, "both: wrong_address"),
    ("46 400 in doubt", answered(400), DOUBTED, "left: refused_in_doubt"),
    ("46 422 after a redirect", answered(422), Situation(redirected=True), "left: refused_in_doubt"),
    ("46 a repeated ID", answered(422, detail="requestId already used"), WORKS, "left: repeated_request"),
    ("46 a duplicate", answered(400, detail="Duplicate request_id."), ANY, "left: repeated_request"),
    ("17 429 with seconds", answered(429, retry_after="7"), ANY, waits(7)),
    ("17 429 with nothing", answered(429), ANY, R),
    ("17 429 of a proxy", page(429), TIRED, R),
    ("17 429 with 0", answered(429, retry_after="0"), ANY, R),
    ("17 429 with an hour", answered(429, retry_after="3600"), ANY, waits(3600)),
    ("17 429 with over an hour", answered(429, retry_after="3601"), ANY, "stopped: rate_limited"),
    ("17 429 for over an hour", answered(429), Situation(trying_for=timedelta(hours=2)), "stopped: rate_limited"),
    ("18 500 once", answered(500), ANY, D),
    ("18 500 for ten minutes", answered(500), replace(LATE, trying_for=timedelta(minutes=10)), "left: no_clear_answer"),
    ("18 500 for ever", answered(500), LATE, "left: no_clear_answer"),
    ("18 500 for ever, of everything", answered(500), AWAY, "stopped: service_away"),
    ("19 502", answered(502), ANY, D),
    ("19 503 with seconds", answered(503, retry_after="3"), ANY, waits(3, in_doubt=True)),
    ("408", answered(408), ANY, D),
    *((f"20 {status} once", answered(status), ANY, REDIRECTED) for status in (301, 302, 307, 308)),
    ("20 303 once", answered(303), ANY, SEEN_ELSEWHERE),
    ("20 303 for all", answered(303), STRAY, "stopped: redirected"),
    ("20 307 for all", answered(307), STRAY, "both: redirected"),
    ("20 303 of the only one", answered(303), ALONE, "stopped: redirected"),
    ("20 307 of the only one", answered(307), ALONE, "both: redirected"),
    ("46 303 of one item", answered(303), TIRED, "left: redirected"),
    ("46 307 of one item", answered(307), TIRED, "refused: redirected"),
    ("46 303 in doubt", answered(303), DOUBTED, "left: redirected"),
    ("46 307 in doubt", answered(307), DOUBTED, "left: refused_in_doubt"),
    ("21 204", answered(204, None, Trouble.NOT_JSON), ANY, D),
    ("21 206 with a job", answered(206, JOB), ANY, D),
    ("22 HTML", page(200), ANY, D),
    ("22 nothing, half a JSON", answered(200, None, Trouble.NOT_JSON), ANY, D),
    ("23 a list", answered(200, [JOB]), ANY, D),
    ("23 no jobId", answered(200, {"status": "running"}), ANY, D),
    ("23 jobId a number", answered(200, {**JOB, "jobId": 7}), ANY, D),
    ("23 jobId empty", answered(200, {**JOB, "jobId": " "}), ANY, D),
    ("23 jobId with a line break", answered(200, {**JOB, "jobId": "a\nb"}), ANY, D),
    ("23 no jobId for ever", answered(200, {}), LATE, "left: no_clear_answer"),
    ("26 over the cap", lost(Trouble.TOO_LARGE), ANY, D),
    ("31 a second job for one request", answered(200, {**JOB, "jobId": "job-2"}), OURS, "conflict: second_job"),
    ("32 409", answered(409, JOB), ANY, "left: repeated_request"),
    ("32 409 with another job", answered(409, JOB), THEIRS, "left: repeated_request"),
    ("32 409 with our job", answered(409, JOB), OURS, "job"),
    ("200 with a job", answered(200, JOB), ANY, "job"),
    ("201 with a job", answered(201, JOB), ANY, "job"),
    ("200 with a job and no status", answered(200, {"jobId": "job-1"}), ANY, "job"),
]  # fmt: skip


@pytest.mark.parametrize(("answer", "now", "expected"), named(CREATES))
def test_outcome_of_each_answer_to_a_create(answer: Answer, now: Situation, expected: Any) -> None:
    """Each fault of the catalogue has one outcome."""
    assert shown(decide_create(answer, now, POLICY)) == expected


@pytest.mark.parametrize("doubt", ["in_doubt", "redirected"])
@pytest.mark.parametrize("answer", [*map(answered, (401, 404, 429, 500)), not_sent(Trouble.TLS)])
def test_stop_leaves_open_what_may_have_been_executed(answer: Answer, doubt: str) -> None:
    """Some services redirect what they have executed."""
    now = Situation(trying_for=timedelta(hours=2), well=False, unclear_requests=3)
    stopped = decide_create(answer, replace(now, **{doubt: True}), POLICY)
    assert isinstance(stopped, Refusal) and stopped.stops and stopped.state is None


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        *((lost(trouble), "left: not_repeatable") for trouble in (Trouble.TIMEOUT, Trouble.RESET)),
        *((answered(status), "left: not_repeatable") for status in (204, 302, 303, 408, 500)),
        (answered(503, retry_after="1"), "left: not_repeatable"),
        (answered(200, {"productId": "prod-1"}), "left: not_repeatable"),
        (page(200), "left: not_repeatable"),
        (answered(200, JOB), "job"),
        (not_sent(), R),
        (answered(429), R),
        (answered(307), REDIRECTED),
        (answered(400), "refused: unclear_refusal"),
        (answered(409), "left: repeated_request"),
        (answered(401), "stopped: unauthorized"),
    ],
)
def test_what_may_have_been_executed_is_not_sent_again(answer: Answer, expected: Any) -> None:
    """54: if nobody promises that it may be; for what was certainly not executed the decision is as ever."""
    decision = decide_create(answer, Situation(CreateRequest(Stage.REFINEMENT, repeatable=False)), POLICY)
    assert shown(decision) == expected
    if expected == "left: not_repeatable":
        assert isinstance(decision, Refusal) and decision.state is None


@pytest.mark.parametrize(
    ("body", "named_result"), [({"patternId": "pat-1"}, [" a patternId: pat-1."]), ({}, [])], ids=str
)
def test_held_request_says_which_result_the_answer_names(
    body: dict[str, str], named_result: list[str]
) -> None:
    """A person can look it up by that in the console."""
    request = CreateRequest(Stage.REFINEMENT, repeatable=False)
    decision = decide_create(answered(500, body), Situation(request), POLICY)
    assert isinstance(decision, Refusal)
    assert decision.message.split(" It names")[1:] == named_result


def test_pauses_double_with_jitter_up_to_the_longest() -> None:
    """Each is half to all of 0.5, 1, 2 ... 30 s."""
    assert [LONGEST.pause(tries).total_seconds() for tries in (1, 2, 3, 7, 500)] == [0.5, 1, 2, 30, 30]
    assert POLICY.pause(3) == timedelta(seconds=1)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1.5", 1.5),
        ("-1", None),
        ("soon", None),
        ("nan", None),
        ("1" * 40, 1e9),
        ("Mon, 01 Jan 2024 00:01:00 GMT", 60),
        ("Mon, 01 Jan 2024 00:01:00", 60),
        ("Mon, 01 Jan 2023 00:00:00 GMT", 0),
        ("Mon, 99 Jan 2024 00:00:00 GMT", None),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 251_698_233_599.0),
    ],
)
def test_retry_after_is_read_as_seconds_and_as_a_date(text: str, seconds: float | None) -> None:
    """Dates are compared with the service's own clock; what cannot be read is no wait."""
    pause = read_retry_after(answered(429, retry_after=text, date="Mon, 01 Jan 2024 00:00:00 GMT"))
    assert (None if pause is None else pause.total_seconds()) == seconds


def later(why: str, delay: timedelta = SOON, *, requested: bool = False) -> AskAgain:
    """Return a poll to be repeated, which says why if nobody waits for it any longer."""
    return AskAgain(delay, requested, Refusal(None, "gave_up_waiting", why))


def again(status: int, **more: Any) -> AskAgain:
    return later(f"The last response: The service answered {status}.", **more)


YOUNG, OLD = timedelta(seconds=10), timedelta(minutes=5)
NAMELESS = Refusal(
    AttemptState.HELD, "result_missing", "Job job-1 succeeded, and the service never said what it made."
)
QUEUED = Refusal(AttemptState.HELD, "unknown_status", "The job has the status 'queued'.")
NO_JOB = later('The service answered 200. It names no job, but has {"status":"failed"}.')
FOUR_SECONDS = again(429, delay=timedelta(seconds=4), requested=True)
POLLS: list[tuple[str, Answer, timedelta, Any]] = [
    ("running", answered(200, JOB), OLD, AskAgain()),
    ("succeeded", answered(200, DONE), OLD, "ended"),
    ("succeeded without an ID", answered(200, {**DONE, "result": {}}), OLD, AskAgain(SOON, gave_up=NAMELESS)),
    ("27 28 failed", answered(200, {**JOB, "status": "failed", "error": {"message": "no\nink"}}), OLD, "ended"),
    ("16 404 on a young job", answered(404), YOUNG, again(404)),
    ("16 404 on an old job", answered(404), OLD, "left: job_unknown"),
    ("16 410 on an old job", answered(410), OLD, "left: job_unknown"),
    ("16 404 of a proxy", page(404), OLD, again(404)),
    ("13 401", answered(401), OLD, "stopped: unauthorized"),
    ("14 402", answered(402), OLD, "stopped: payment_required"),
    ("9 bad certificate", not_sent(Trouble.TLS), OLD, "stopped: tls"),
    ("20 redirect once", answered(302), OLD, again(302)),
    ("44 another ID than ours", answered(200, {**DONE, "result": {"productId": "q-1"}}), OLD, "ended"),
    ("17 429 with seconds", answered(429, retry_after="4"), OLD, FOUR_SECONDS),
    ("17 429 with 1e9", answered(429, retry_after="1e9"), OLD, "stopped: rate_limited"),
    ("18 500", answered(500), OLD, again(500)),
    ("19 503 with seconds", answered(503, retry_after="4"), OLD, again(503, delay=timedelta(seconds=4))),
    ("a poll that is refused fails no job", answered(400), OLD, again(400)),
    ("6 time-out", lost(Trouble.TIMEOUT), OLD, later("The last response: No answer from the service.")),
    ("23 no jobId", answered(200, {"status": "failed"}), OLD, NO_JOB),
    ("24 another job", answered(200, {**JOB, "jobId": "job-2"}), OLD, "ended"),
    ("25 unknown status", answered(200, {**JOB, "status": "queued"}), OLD, AskAgain(gave_up=QUEUED)),
]  # fmt: skip


def polled(answer: Answer, policy: ResendPolicy, **known: Any) -> Any:
    """Return what the answer to a poll leads to; where it stops the run, the job stays open."""
    decision = decide_poll(answer, policy, "job-1", **known)
    if isinstance(decision, Refusal) and decision.stops:
        assert decision.state is None
    return shown(decision)


@pytest.mark.parametrize(
    ("answer", "age", "expected"), [row[1:] for row in POLLS], ids=[row[0] for row in POLLS]
)
def test_outcome_of_each_answer_to_a_poll(answer: Answer, age: timedelta, expected: Any) -> None:
    """A poll's error never changes a job."""
    assert polled(answer, POLICY, age=age) == expected


@pytest.mark.parametrize(
    ("answer", "well", "expected"),
    [
        (answered(302), False, "stopped: redirected"),
        (answered(302), True, again(302, delay=timedelta(seconds=4))),
        (page(404), False, again(404, delay=timedelta(seconds=4))),
        (page(404), True, "left: job_unknown"),
    ],
)
def test_unclear_answers_to_polls_are_compared_with_other_jobs(
    answer: Answer, well: bool, expected: Any
) -> None:
    """46: one job's error is its own, everybody's is the connection to the service."""
    assert polled(answer, LONGEST, age=OLD, tries=4, well=well) == expected
