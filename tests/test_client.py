"""The one sender of requests: what it sends, how often, and what never gets out."""

import asyncio
import json
from dataclasses import replace

import httpx
import pytest

from patternmill.errors import Refusal
from patternmill.items import Stage
from patternmill.service.answers import Accepted, Ended, Held, Refused, Stop, Unclear
from patternmill.service.client import Client
from patternmill.service.pacing import Polling
from patternmill.settings import Settings
from patternmill.states import Attempt, State
from tests.virtual import play

KEY, NOON = "sk-canary-7f3a9c1d5e", 1_800_000_000.0
BODY = {"requestId": "r1", "prompt": "blue herons"}
INTENDED = Attempt(
    "r1", "i1", 1, "pattern", "patterns/create", "e", "c", "d", "herons", json.dumps(BODY), State.INTENDED
)
ACCEPTED = replace(INTENDED, state=State.ACCEPTED, job_id="job_1", accepted_at=NOON)
JOB = {"jobId": "job_1", "kind": "pattern", "status": "running", "result": None}
DONE = JOB | {"status": "succeeded", "result": {"patternId": "pat_1"}}


def nobody(field, value):
    return False


def settings(**more):
    return Settings(**{"studio_url": "http://studio.test/v1", "api_key": KEY, **more})


class Service:
    """Answers in turn, the last one for ever, and keeps what it was asked."""

    def __init__(self, *answers):
        self.answers, self.asked = list(answers), []

    def __call__(self, request):
        self.asked.append((request.url.path, json.loads(request.content), asyncio.get_running_loop().time()))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, httpx.Response) else httpx.Response(200, json=answer)


def timed(service, work, now=NOON, **more):
    """Return what some work with a client of this service comes to, and how long it took."""

    async def main():
        async with Client(settings(**more), httpx.MockTransport(service), lambda: now) as client:
            began = asyncio.get_running_loop().time()
            return await work(client), asyncio.get_running_loop().time() - began

    return play(main)


def send(service, attempt=INTENDED, *, in_doubt=False, is_other=nobody, change=lambda client: None, **more):
    """Return what a create comes to, and how long it took."""

    def create(client):
        change(client)
        return client.create(attempt, in_doubt=in_doubt, is_other=is_other)

    return timed(service, create, **more)


def follow(service, attempt=ACCEPTED, *, once=False, **more):
    """Return what following a job comes to, and how long it took."""
    work = Client.ask_about if once else Client.follow
    return timed(service, lambda client: work(client, attempt, nobody), **more)


def test_the_same_bytes_are_sent_until_the_answer_is_clear():
    service = Service(httpx.Response(500), httpx.ReadError("lost"), httpx.Response(200, text="{"), JOB)
    decision, _ = send(service)
    assert decision == Accepted("job_1")
    assert {path for path, _, _ in service.asked} == {"/v1/patterns/create"}
    assert [body for _, body, _ in service.asked] == [BODY] * 4


def test_a_refusal_after_a_lost_answer_is_held():
    service = Service(httpx.ReadError("lost"), httpx.Response(400, json={"error": "prompt is too long"}))
    decision, _ = send(service)
    assert isinstance(decision, Held) and decision.code == "refused_in_doubt"


def test_a_refusal_after_no_connection_is_a_refusal():
    service = Service(httpx.ConnectError("no"), httpx.Response(400, json={"error": "prompt is too long"}))
    assert isinstance(send(service)[0], Refused)


def test_the_same_unreadable_success_three_times_is_held_with_its_words():
    service = Service({"ok": "we will see"})
    decision, _ = send(service)
    assert isinstance(decision, Held) and "we will see" in decision.message and len(service.asked) == 3


def test_without_a_clear_answer_the_next_run_goes_on():
    decision, seconds = send(Service(httpx.Response(500)))
    assert isinstance(decision, Unclear) and 600 < seconds < 630


def test_a_page_in_front_of_the_service_stops_after_some_minutes():
    page = httpx.Response(403, html="<html><title>Just a moment...</title></html>")
    decision, seconds = send(Service(page))
    assert isinstance(decision, Stop) and decision.code == "page_in_front" and 180 < seconds < 210
    assert "Just a moment" in decision.message and "Check what" not in decision.message
    assert send(Service(page, page, JOB))[0] == Accepted("job_1")


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0), ({"retry-after": "Fri, 15 Jan 2027 08:00:30 GMT"}, 30.0),
        ({"retry-after": "Fri, 15 Jan 2027 09:00:30 GMT", "date": "Fri, 15 Jan 2027 09:00:00 GMT"}, 30.0),
        ({"retry-after": "Fri, 15 Jan 1999 08:00:30 GMT"}, 0.5),
        ({"retry-after": "Fri, 99 Foo 99999 77:00:30 GMT"}, 0.5), ({"retry-after": "0"}, 0.5),
        ({"retry-after": "-5"}, 0.5), ({"retry-after": "soon"}, 0.5), ({"retry-after": "nan"}, 0.5), ({}, 0.5),
    ],
)  # fmt: skip
def test_a_rate_limit_is_waited_for_as_the_service_asks(headers, seconds):
    decision, took = send(Service(httpx.Response(429, headers=headers), JOB))
    assert decision == Accepted("job_1") and took == pytest.approx(seconds, abs=0.11)


@pytest.mark.parametrize("pause", ["3601", "1e9", "99999999999"])
def test_a_pause_of_more_than_an_hour_stops(pause):
    decision, _ = send(Service(httpx.Response(429, headers={"retry-after": pause})))
    assert isinstance(decision, Stop) and decision.code == "rate_limited"


def refuse():
    raise Refusal("lease_lost", "Another run has taken the lease.")


def test_a_create_that_may_not_leave_is_not_sent():
    service = Service(JOB)
    with pytest.raises(Refusal, match="Another run"):
        send(service, change=lambda client: setattr(client, "confirm", refuse))
    assert not service.asked


def test_nothing_is_sent_again_once_the_run_is_halted():
    service = Service(httpx.Response(500))
    decision, seconds = send(service, change=lambda client: setattr(client, "halted", lambda: True))
    assert isinstance(decision, Unclear) and len(service.asked) == 1 and seconds == 0


def test_a_job_is_followed_to_its_end():
    service = Service(JOB, JOB | {"status": "queued"}, httpx.Response(404), httpx.ReadError("lost"), DONE)
    decision, _ = follow(service)
    assert decision == Ended("pat_1") and {path for path, _, _ in service.asked} == {"/v1/jobs/get"}


def test_a_job_that_never_ends_is_left_to_the_next_run():
    decision, seconds = follow(Service(JOB))
    assert isinstance(decision, Unclear) and 1800 <= seconds < 1900


def test_a_job_of_an_earlier_run_is_followed_for_a_while_however_old_it_is():
    """Also where a clock went forward a day."""
    decision, seconds = follow(Service(JOB), now=NOON + 86_400)
    assert isinstance(decision, Unclear) and 120 <= seconds < 5000
    assert follow(Service(DONE), now=NOON + 86_400) == (Ended("pat_1"), 0)
    assert follow(Service(JOB, DONE), now=NOON - 3_600)[0] == Ended("pat_1")


def test_a_job_that_is_not_known_is_held_when_it_is_old():
    decision, seconds = follow(Service(httpx.Response(404, json={"error": "no such job"})))
    assert isinstance(decision, Held) and decision.code == "job_unknown" and seconds > 60
    decision, seconds = follow(Service(httpx.Response(404)), once=True, now=NOON + 100)
    assert isinstance(decision, Held) and seconds == 0


def test_late_answers_about_jobs_that_had_ended_do_not_put_off_the_next_polls():
    """Seen with short jobs on a busy machine: each poll was later than the one before, up to ten times the job."""

    async def late(request):
        await asyncio.sleep(2.0)
        return httpx.Response(200, json=DONE)

    async def work(client):
        client.polling[Stage.PATTERN] = Polling([2.0] * 100)
        for _ in range(200):
            await client.follow(ACCEPTED, nobody)
        return client.polling[Stage.PATTERN].first

    assert timed(late, work)[0] < 2.0


def test_a_rate_limit_of_polls_slows_all_polls():
    async def work(client):
        return await client.follow(ACCEPTED, nobody), client.pace.polls.rate

    (decision, rate), _ = timed(Service(httpx.Response(429, headers={"retry-after": "9"}), DONE), work)
    assert decision == Ended("pat_1") and rate < 200


def test_a_service_that_repeats_a_field_exactly_and_then_otherwise_is_doubted():
    async def work(client):
        return [await client.create(INTENDED, in_doubt=False, is_other=nobody) for _ in range(2)]

    answers = Service(JOB | {"prompt": "blue herons"}, JOB | {"jobId": "job_2", "prompt": "red foxes"})
    (first, second), _ = timed(answers, work)
    assert first == Accepted("job_1") and isinstance(second, Held) and "red foxes" in second.message


def test_a_job_of_another_item_is_held():
    decision, _ = send(Service(JOB), is_other=lambda *one: one == ("jobId", "job_1"))
    assert isinstance(decision, Held) and decision.code == "contradiction"


def read(*answers):
    service = Service(*answers)
    return timed(service, lambda client: client.read("categories/list", {}))[0], len(service.asked)


def test_questions_are_asked_again():
    page = httpx.Response(403, html="<html>Just a moment...</html>")
    assert read(httpx.Response(500), page, httpx.ReadError("lost"), ["a"]) == (["a"], 4)
    assert read(httpx.Response(500)) == (None, 4)
    assert read(httpx.Response(404, json={"error": "no such operation"})) == (None, 4)


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (httpx.Response(401), "unauthorized"),
        (httpx.Response(403, html="<html>Just a moment...</html>"), "page_in_front"),
        (httpx.Response(404, html="<html>Not found</html>"), "wrong_address"),
        (
            httpx.Response(301, headers={"location": "https://user:secret@studio.test/v1?key=1"}),
            "wrong_address",
        ),
        (httpx.UnsupportedProtocol("x"), "unusable_address"),
    ],
)
def test_a_question_that_cannot_be_answered_says_why(answer, code):
    with pytest.raises(Refusal) as caught:
        read(answer)
    assert (
        caught.value.code == code and "secret" not in str(caught.value) and "key=1" not in str(caught.value)
    )


@pytest.mark.parametrize("escaped", [KEY, KEY.replace("-", "\\u002d"), f"{'x' * 290} {KEY}"])
def test_the_key_is_in_no_message(escaped):
    answer = httpx.Response(400, text=f'{{"error": "no such key: {escaped}"}}')
    decision, _ = send(Service(answer))
    assert "canary" not in decision.message and "sk-" not in decision.message


@pytest.mark.parametrize("key", ["", "a key", "key\n", "schlüssel", "\x00key"])
def test_a_key_with_odd_characters_is_refused(key):
    with pytest.raises(Refusal):
        Client(settings(api_key=key))


BAD_URLS = [
    "", "studio.test/v1", "ftp://studio.test", "https://me:secret@studio.test/v1", "https://studio.test/v1?a=1",
]  # fmt: skip


@pytest.mark.parametrize("url", BAD_URLS)
def test_an_address_that_cannot_work_is_refused_without_its_password(url):
    with pytest.raises(Refusal) as caught:
        Client(settings(studio_url=url))
    assert "secret" not in str(caught.value)
