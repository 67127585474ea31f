"""The fault table, row by row: what an answer to a create, or to a poll, leads to."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from patternmill.service.jobs import Job
from patternmill.service.outcomes import (
    Answer,
    Ended,
    ExchangeResult,
    No,
    Trouble,
)
from patternmill.service.resend import (
    AskAgain,
    ResendAfter,
    ResendPolicy,
    Situation,
    decide_create,
    decide_poll,
    read_retry_after,
    unclear_code,
)
from patternmill.states import NOT_REPEATABLE, AttemptState, Stage

#: Of the item, of the run, of both; and what is left to a person, or to the next run.
REFUSED, STOPPED, CONFLICT, UNRESOLVED = "refused", "stopped", "conflict", "unresolved"
POLICY = ResendPolicy(jitter=lambda: 0.0)
LONGEST = ResendPolicy(jitter=lambda: 1.0)
JOB = {"jobId": "job-1", "kind": "pattern", "status": "running", "result": None}
LATE = Situation(tries=30, trying_for=timedelta(minutes=11))
AWAY = Situation(tries=30, trying_for=timedelta(minutes=11), well=False)
FIRST = Situation(reached=False)
#: Where answers may be about the address: of three requests, of the only one, of an operation that works.
STRAY = Situation(unclear_requests=3)
ALONE = Situation(tries=4)
ONLY_ITS_OWN = Situation(tries=4, answered_well=True)
WORKS = Situation(works=True)
TIRED = Situation(tries=4, works=True)
STORM = Situation(tries=4, works=True, unclear_requests=10)
DOUBTED = Situation(tries=4, works=True, in_doubt=True)


def answered(status: int, body: Any = None, trouble: Trouble = Trouble.NONE, **more: Any) -> Answer:
    """A whole answer."""
    return Answer(ExchangeResult.ANSWERED, trouble, status=status, body=body, **more)


def not_sent(trouble: Trouble) -> Answer:
    """Nothing left this machine."""
    return Answer(ExchangeResult.NOT_SENT, trouble)


def lost(trouble: Trouble) -> Answer:
    """The answer did not come whole."""
    return Answer(ExchangeResult.LOST, trouble)


def decide(answer: Answer, now: Situation | None = None) -> Any:
    """The decision without chance."""
    return decide_create(answer, now or Situation(), POLICY)


D = ResendAfter(timedelta(milliseconds=250), in_doubt=True)
R = ResendAfter(timedelta(milliseconds=250), in_doubt=False)
REDIRECTED = ResendAfter(timedelta(milliseconds=250), in_doubt=False, redirected=True)
#: 303 is how some answer what they have executed.
SEEN_ELSEWHERE = ResendAfter(timedelta(milliseconds=250), in_doubt=True, redirected=True)


def waits(seconds: float) -> ResendAfter:
    """Told to wait."""
    return ResendAfter(timedelta(seconds=seconds), in_doubt=False, server_requested=True)


#: Fault, answer, situation, decision (exact), or the kind of verdict and its code.
TABLE: list[tuple[str, Answer, Situation | None, Any]] = [
    ("1 name not found at start", not_sent(Trouble.NAME_NOT_FOUND), FIRST, (STOPPED, "name_not_found")),
    ("1 name not found in mid-run", not_sent(Trouble.NAME_NOT_FOUND), None, R),
    ("2 connection refused", not_sent(Trouble.CONNECT), None, R),
    ("2 connection refused at start", not_sent(Trouble.CONNECT), FIRST, R),
    ("2 connect time-out", not_sent(Trouble.CONNECT_TIMEOUT), None, R),
    ("3 4 5 10 reset", lost(Trouble.RESET), None, D),
    ("6 7 time-out", lost(Trouble.TIMEOUT), None, D),
    ("8 cut short", lost(Trouble.CUT_SHORT), None, D),
    ("9 bad certificate", not_sent(Trouble.TLS), None, (STOPPED, "tls")),
    ("9 no handshake at start", not_sent(Trouble.HANDSHAKE), FIRST, (STOPPED, "handshake")),
    ("9 no handshake in mid-run", not_sent(Trouble.HANDSHAKE), None, R),
    ("11 a proxy's page", answered(502, None, Trouble.HTML), None, D),
    ("11 a proxy's page for ever", answered(200, None, Trouble.HTML), AWAY, (STOPPED, "service_away")),
    ("12 400", answered(400), None, (REFUSED, "unclear_refusal")),
    ("12 422", answered(422), None, (REFUSED, "unclear_refusal")),
    ("12 413", answered(413), None, (REFUSED, "unclear_refusal")),
    ("13 401", answered(401), None, (STOPPED, "unauthorized")),
    ("13 403", answered(403), None, (STOPPED, "forbidden")),
    ("14 402", answered(402), None, (STOPPED, "payment_required")),
    *(
        (f"15 {status} on the first create", answered(status), None, R)
        for status in (404, 405, 406, 410, 415, 421, 426)
    ),
    ("15 404 of three requests", answered(404), STRAY, (STOPPED, "wrong_address")),
    ("15 404 of the only one", answered(404), ALONE, (STOPPED, "wrong_address")),
    ("46 404 of one item", answered(404), WORKS, (REFUSED, "unclear_refusal")),
    ("46 404 in doubt", answered(404), DOUBTED, (UNRESOLVED, "refused_in_doubt")),
    ("46 404 of the only one, others answered", answered(404), ONLY_ITS_OWN, (REFUSED, "wrong_address")),
    ("46 404 of a proxy", answered(404, None, Trouble.HTML), WORKS, R),
    ("46 404 of a proxy for ever", answered(404, None, Trouble.HTML), TIRED, (REFUSED, "wrong_address")),
    ("46 404 of a proxy for all", answered(404, None, Trouble.HTML), STORM, (STOPPED, "wrong_address")),
    ("11 400 of a proxy", answered(400, None, Trouble.HTML), WORKS, R),
    ("11 400 of a proxy for ever", answered(400, None, Trouble.HTML), TIRED, (REFUSED, "proxy_page")),
    ("46 400 in doubt", answered(400), DOUBTED, (UNRESOLVED, "refused_in_doubt")),
    ("46 422 after a redirect", answered(422), Situation(redirected=True), (UNRESOLVED, "refused_in_doubt")),
    (
        "46 a repeated ID",
        answered(422, detail="requestId already used"),
        WORKS,
        (UNRESOLVED, "repeated_request"),
    ),
    ("46 a duplicate", answered(400, detail="Duplicate request_id."), None, (UNRESOLVED, "repeated_request")),
    ("17 429 with seconds", answered(429, retry_after="7"), None, waits(7)),
    (
        "17 429 with a date",
        answered(429, retry_after="Mon, 01 Jan 2024 00:00:09 GMT", date="Mon, 01 Jan 2024 00:00:00 GMT"),
        None,
        waits(9),
    ),
    ("17 429 with nothing", answered(429), None, R),
    ("17 429 with 0", answered(429, retry_after="0"), None, R),
    ("17 429 with an hour", answered(429, retry_after="3600"), None, waits(3600)),
    ("17 429 with over an hour", answered(429, retry_after="3601"), None, (STOPPED, "rate_limited")),
    (
        "17 429 for over an hour",
        answered(429),
        Situation(tries=99, trying_for=timedelta(hours=2)),
        (STOPPED, "rate_limited"),
    ),
    ("18 500 once", answered(500), None, D),
    ("18 500 for ever", answered(500), LATE, (UNRESOLVED, "no_clear_answer")),
    ("18 500 for ever, of everything", answered(500), AWAY, (STOPPED, "service_away")),
    ("19 502", answered(502), None, D),
    (
        "19 503 with seconds",
        answered(503, retry_after="3"),
        None,
        ResendAfter(timedelta(seconds=3), in_doubt=True, server_requested=True),
    ),
    ("408", answered(408), None, D),
    *((f"20 {status} once", answered(status), None, REDIRECTED) for status in (301, 302, 308)),
    *[
        case
        for status in (303, 307)
        for case in (
            (f"20 {status} once", answered(status), None, SEEN_ELSEWHERE if status == 303 else REDIRECTED),
            (f"20 {status} for all", answered(status), STRAY, (STOPPED, "redirected")),
            (f"20 {status} of the only one", answered(status), ALONE, (STOPPED, "redirected")),
            (
                f"46 {status} of one item",
                answered(status),
                TIRED,
                (UNRESOLVED if status == 303 else REFUSED, "redirected"),
            ),
            (
                f"46 {status} in doubt",
                answered(status),
                DOUBTED,
                (UNRESOLVED, "redirected" if status == 303 else "refused_in_doubt"),
            ),
        )
    ],
    ("21 204", answered(204, None, Trouble.NOT_JSON), None, D),
    ("21 206 with a job", answered(206, JOB), None, D),
    ("22 HTML", answered(200, None, Trouble.HTML), None, D),
    ("22 nothing, half a JSON", answered(200, None, Trouble.NOT_JSON), None, D),
    ("23 a list", answered(200, [JOB]), None, D),
    ("23 no jobId", answered(200, {"status": "running"}), None, D),
    ("23 jobId a number", answered(200, {**JOB, "jobId": 7}), None, D),
    ("23 jobId empty", answered(200, {**JOB, "jobId": " "}), None, D),
    ("23 jobId with a line break", answered(200, {**JOB, "jobId": "a\nb"}), None, D),
    ("23 no jobId for ever", answered(200, {}), LATE, (UNRESOLVED, "no_clear_answer")),
    ("26 over the cap", lost(Trouble.TOO_LARGE), None, D),
    (
        "31 a second job for one request",
        answered(200, {**JOB, "jobId": "job-2"}),
        Situation(known_job_id="job-1"),
        (CONFLICT, "second_job"),
    ),
    ("32 409", answered(409, JOB), None, (UNRESOLVED, "repeated_request")),
    (
        "32 409 with another job",
        answered(409, JOB),
        Situation(known_job_id="job-9"),
        (UNRESOLVED, "repeated_request"),
    ),
    ("32 409 with our job", answered(409, JOB), Situation(known_job_id="job-1"), Job),
    ("200 with a job", answered(200, JOB), None, Job),
    ("201 with a job", answered(201, JOB), None, Job),
    ("200 with a job and no status", answered(200, {"jobId": "job-1"}), None, Job),
]


@pytest.mark.parametrize(
    ("answer", "now", "expected"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE]
)
def test_outcome_of_each_answer_to_a_create(answer: Answer, now: Situation | None, expected: Any) -> None:
    """Each fault of the catalogue has one outcome."""
    _assert_is(decide(answer, now), expected)


def _kind(no: No) -> str:
    if no.stops:
        return CONFLICT if no.state is AttemptState.HELD else STOPPED
    return REFUSED if no.state is AttemptState.REJECTED else UNRESOLVED


def _assert_is(decision: Any, expected: Any) -> None:
    if isinstance(expected, tuple):
        kind, code = expected
        assert (_kind(decision), decision.code) == (kind, code)
        assert decision.message
    elif isinstance(expected, type):
        assert isinstance(decision, expected)
    else:
        assert decision == expected


@pytest.mark.parametrize("answer", [answered(401), answered(404), answered(307), answered(500)])
def test_stop_after_a_sent_try_leaves_the_item_in_doubt(answer: Answer) -> None:
    """Else it is unbegun."""
    unsure = Situation(in_doubt=True, trying_for=timedelta(hours=1), well=False, unclear_requests=3)
    assert decide(answer, unsure).state is None


@pytest.mark.parametrize("answer", [answered(401), answered(404), answered(429), not_sent(Trouble.TLS)])
def test_stop_after_a_redirect_leaves_the_item_in_doubt(answer: Answer) -> None:
    """Some services redirect what they have executed."""
    seen = Situation(redirected=True, trying_for=timedelta(hours=2), well=False, unclear_requests=3)
    assert decide(answer, seen).state is None


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (lost(Trouble.TIMEOUT), None),
        *((answered(status), None) for status in (204, 302, 303, 408, 500)),
        (answered(503, retry_after="1"), None),
        (answered(200, {"productId": "prod-1"}), None),
        (answered(200, trouble=Trouble.HTML), None),
        (answered(200, JOB), Job),
        (not_sent(Trouble.CONNECT), R),
        (answered(429), R),
        (answered(307), REDIRECTED),
        (answered(400), (REFUSED, "unclear_refusal")),
        (answered(409), (UNRESOLVED, "repeated_request")),
        (answered(401), (STOPPED, "unauthorized")),
    ],
)
def test_what_may_have_been_executed_is_not_sent_again(answer: Answer, expected: Any) -> None:
    """54: where nobody promises that it may; what was certainly not executed is answered as ever."""
    decision = decide(answer, Situation(stage=Stage.REFINEMENT, repeatable=False))
    if expected is not None:
        _assert_is(decision, expected)
    else:
        _assert_is(decision, (UNRESOLVED, NOT_REPEATABLE))
        assert decision.state is None


def test_hold_names_what_the_answer_names() -> None:
    shown = decide(answered(200, {"patternId": "pat-7"}), Situation(stage=Stage.REFINEMENT, repeatable=False))
    assert shown.message == "The service answered 200. It names a patternId: pat-7."


def test_request_that_was_never_sent_is_not_in_doubt() -> None:
    """2: for ten minutes; the next run begins it anew, with the same ID."""
    no = decide(not_sent(Trouble.CONNECT), AWAY)
    assert (no.state, no.code, no.stops) == (AttemptState.WITHDRAWN, "service_away", True)
    assert no.message.startswith("No answer from the service. It has not answered well for too long")


def test_pauses_double_with_jitter_up_to_the_longest() -> None:
    """Half to all of 0.5, 1, 2 ... 30 s."""
    assert [LONGEST.pause(tries).total_seconds() for tries in (1, 2, 3, 7, 500)] == [
        0.5,
        1,
        2,
        30,
        30,
    ]
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


def later(said: str, seconds: float = 0.25, *, requested: bool = False) -> AskAgain:
    """A poll to be repeated, which says why if nobody waits for it any longer."""
    gave_up = No(None, "gave_up_waiting", said)
    return AskAgain(timedelta(seconds=seconds), server_requested=requested, gave_up=gave_up)


def answers(status: int) -> AskAgain:
    return later(f"The last response: The service answered {status}.")


YOUNG, OLD = timedelta(seconds=10), timedelta(minutes=5)
DONE = {
    **JOB,
    "status": "succeeded",
    "result": {"patternId": "p-1", "imageUrl": "https://pics.example/1.png"},
}
NAMELESS = "Job job-1 succeeded, and the service never said what it made."
QUEUED = No(AttemptState.HELD, "unknown_status", "The job has the status 'queued'.")
NO_JOB = later('The service answered 200. It names no job, but has {"status":"failed"}.')
POLLS: list[tuple[str, Answer, timedelta, Any]] = [
    ("running", answered(200, JOB), OLD, AskAgain()),
    ("succeeded", answered(200, DONE), OLD, Ended),
    (
        "succeeded without an ID is asked again",
        answered(200, {**DONE, "result": {}}),
        OLD,
        AskAgain(timedelta(milliseconds=250), gave_up=No(AttemptState.HELD, "result_missing", NAMELESS)),
    ),
    (
        "27 28 failed",
        answered(200, {**JOB, "status": "failed", "error": {"message": "no\nink"}}),
        OLD,
        Ended,
    ),
    ("16 404 on a young job", answered(404), YOUNG, answers(404)),
    ("16 404 on an old job", answered(404), OLD, (UNRESOLVED, "job_unknown")),
    ("13 401", answered(401), OLD, (STOPPED, "unauthorized")),
    ("14 402", answered(402), OLD, (STOPPED, "payment_required")),
    ("9 bad certificate", not_sent(Trouble.TLS), OLD, (STOPPED, "tls")),
    ("20 redirect once", answered(302), OLD, answers(302)),
    ("16 404 of a proxy", answered(404, None, Trouble.HTML), OLD, answers(404)),
    ("44 another ID than ours", answered(200, {**DONE, "result": {"productId": "q-1"}}), OLD, Ended),
    (
        "17 429 with seconds",
        answered(429, retry_after="4"),
        OLD,
        later("The last response: The service answered 429.", 4, requested=True),
    ),
    ("17 429 with 1e9", answered(429, retry_after="1e9"), OLD, (STOPPED, "rate_limited")),
    ("18 500", answered(500), OLD, answers(500)),
    ("a poll that is refused fails no job", answered(400), OLD, answers(400)),
    ("6 time-out", lost(Trouble.TIMEOUT), OLD, later("The last response: No answer from the service.")),
    ("23 no jobId", answered(200, {"status": "failed"}), OLD, NO_JOB),
    ("24 another job", answered(200, {**JOB, "jobId": "job-2"}), OLD, Ended),
    ("25 unknown status", answered(200, {**JOB, "status": "queued"}), OLD, AskAgain(gave_up=QUEUED)),
]


@pytest.mark.parametrize(
    ("answer", "age", "expected"), [row[1:] for row in POLLS], ids=[row[0] for row in POLLS]
)
def test_outcome_of_each_answer_to_a_poll(answer: Answer, age: timedelta, expected: Any) -> None:
    """A poll's error never changes a job."""
    _assert_is(decide_poll(answer, POLICY, "job-1", age=age), expected)


def test_page_that_limits_the_rate_says_nothing_of_the_address() -> None:
    assert not unclear_code(answered(429, None, Trouble.HTML), Situation())
    assert unclear_code(answered(400, None, Trouble.HTML), Situation()) == "proxy_page"


@pytest.mark.parametrize(
    ("answer", "well", "expected"),
    [
        (answered(302), False, (STOPPED, "redirected")),
        (answered(302), True, AskAgain),
        (answered(404, None, Trouble.HTML), False, AskAgain),
        (answered(404, None, Trouble.HTML), True, (UNRESOLVED, "job_unknown")),
    ],
)
def test_unclear_answers_to_polls_are_compared_with_other_jobs(
    answer: Answer, well: bool, expected: Any
) -> None:
    """46: one job's error is its own, everybody's is the connection to the service."""
    decision = decide_poll(answer, LONGEST, "job-1", age=OLD, tries=4, well=well)
    _assert_is(decision, expected)
