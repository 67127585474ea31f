"""The facade in virtual time, against a service whose answers are scripted."""

from __future__ import annotations

import asyncio
import json
import re
from datetime import timedelta
from typing import Any

import pytest

from patternmill.errors import LeaseLost, ServiceStopped
from patternmill.service.client import Look
from patternmill.service.jobs import Job
from patternmill.service.outcomes import (
    GAVE_UP,
    NOT_BEGUN,
    Answer,
    CreateEnd,
    Ended,
    ExchangeResult,
    No,
    Trouble,
    failed_exchange,
)
from patternmill.service.pacing import Clock
from patternmill.service.resend import ResendPolicy
from patternmill.service.studio_api import StudioApi
from patternmill.states import AttemptState, Stage
from tests.unit.service import virtual

BODY = b'{"requestId":"r-1","prompt":"herons"}'
JOB: dict[str, Any] = {"jobId": "job-1", "kind": "pattern", "status": "running", "result": None}
LOST = Answer(ExchangeResult.LOST, Trouble.RESET)
REFUSED = Answer(ExchangeResult.NOT_SENT, Trouble.CONNECT)


def says(status: int, body: Any = None, **more: Any) -> Answer:
    """A whole answer."""
    return Answer(ExchangeResult.ANSWERED, status=status, body=body, **more)


class Script:
    """Answers each operation with its script, the last line for ever, and writes down what it was sent."""

    def __init__(self, answers: dict[str, list[Answer]], latency: float = 0.05) -> None:
        self.answers, self.latency = answers, latency
        self.sent: list[tuple[float, str, bytes]] = []
        self.closed = False

    async def post(self, operation: str, body: bytes, look: Look | None = None) -> Answer:
        if look is not None:
            await look()
        self.sent.append((virtual.clock(), operation, body))
        await asyncio.sleep(self.latency)
        left = self.answers[operation]
        return left.pop(0) if len(left) > 1 else left[0]

    async def close(self) -> None:
        self.closed = True

    def bodies(self, operation: str) -> list[bytes]:
        return [body for _, name, body in self.sent if name == operation]


def _api(script: Script, uptime: Clock = virtual.clock, **policy: Any) -> StudioApi:
    policies = ResendPolicy(jitter=lambda: 0.5, **policy)
    return StudioApi(script, policy=policies, clock=virtual.clock, uptime=uptime)


def _create(*answers: Answer, **options: Any) -> tuple[CreateEnd, Script]:
    """How a create ends that is answered like that."""

    async def main() -> tuple[CreateEnd, Script]:
        script = Script({"patterns/create": list(answers)})
        async with _api(script) as api:
            return await api.create(Stage.PATTERN, BODY, **options), script

    return virtual.run(main())


def _code(end: CreateEnd) -> str:
    return end.code if isinstance(end, No) else ""


def test_create_in_doubt_is_resent_byte_for_byte() -> None:
    """5: executed, answer lost; the second answer names the job."""
    end, script = _create(LOST, says(500), says(200, {"nothing": 1}), says(200, JOB))
    assert isinstance(end, Job)
    assert end.job_id == "job-1"
    assert script.bodies("patterns/create") == [BODY] * 4


async def test_one_refusal_pauses_all_creates_of_its_operation_and_nothing_else() -> None:
    """17: separate limits."""
    done = {**JOB, "status": "succeeded", "result": {"patternId": "p"}}
    script = Script(
        {
            "patterns/create": [
                says(429, retry_after="30"),
                says(200, JOB),
                says(200, {**JOB, "jobId": "job-3"}),
            ],
            "products/create": [says(200, {**JOB, "jobId": "job-2"})],
            "jobs/get": [says(200, {**done, "jobId": "job-9"})],
        }
    )
    async with _api(script) as api:
        first = asyncio.create_task(api.create(Stage.PATTERN, BODY))
        await asyncio.sleep(1)
        second = asyncio.create_task(api.create(Stage.PATTERN, b'{"requestId":"r-2"}'))
        assert isinstance(await api.create(Stage.PRODUCT, b"{}"), Job)
        assert isinstance(await api.follow("job-9", Stage.PATTERN), Ended)
        assert (virtual.clock() < 2, api.queued) == (True, 2)
        await asyncio.gather(first, second)
        assert api.queued == 0
        assert [at >= 30 for at, name, _ in script.sent if name == "patterns/create"] == [
            False,
            True,
            True,
        ]


async def test_create_that_is_refused_while_others_are_accepted_waits_for_its_turn() -> None:
    """For longer than the hour after which a limit that lets nothing pass stops the run."""
    script = Script({"patterns/create": [says(429)], "products/create": [says(200, JOB)]})
    async with _api(script) as api:
        refused = asyncio.create_task(api.create(Stage.PATTERN, BODY))
        for _ in range(8):
            await asyncio.sleep(900)
            await api.create(Stage.PRODUCT, b"{}")
        assert not refused.done()
        assert _code(await refused) == "rate_limited"
        assert virtual.clock() == pytest.approx(8 * 900 + 3600, abs=30)


async def test_lasting_500_of_one_item_is_in_doubt_after_ten_minutes() -> None:
    """18: one item does not stop the run."""
    script = Script({"patterns/create": [says(500)], "jobs/get": [says(200, JOB)]})
    async with _api(script) as api:
        poll = asyncio.create_task(api.follow("job-1", Stage.PATTERN))
        end = await api.create(Stage.PATTERN, BODY)
        assert isinstance(end, No)
        assert end.state is None
        assert 600 <= virtual.clock() < 660
        assert len(script.bodies("patterns/create")) < 60
        poll.cancel()


async def test_unavailable_service_stops_the_run_in_time() -> None:
    """2, 18: a hundred creates are sent with pauses, and all end once the service is away for too long."""
    script = Script({"patterns/create": [REFUSED]})
    async with _api(script) as api:
        ends = await asyncio.gather(*(api.create(Stage.PATTERN, b"%d" % n) for n in range(100)))
        assert {end.code for end in ends if isinstance(end, No) and end.stops} == {"service_away"}
        assert {end.state for end in ends if isinstance(end, No)} == {AttemptState.WITHDRAWN}
        assert virtual.clock() < 700
        assert len(script.sent) < 100 * 40


async def test_service_without_a_good_answer_is_shown_as_waited_for() -> None:
    """Not at once, with its last answer, and no longer than it lasts."""
    script = Script({"patterns/create": [REFUSED]})
    async with _api(script) as api:
        create = asyncio.create_task(api.create(Stage.PATTERN, BODY))
        await asyncio.sleep(5)
        assert api.waiting == ""
        await asyncio.sleep(35)
        assert re.fullmatch(r"waiting for the service since \d+ s: No answer from the service.*", api.waiting)
        script.answers["patterns/create"] = [says(200, JOB)]
        assert isinstance(await create, Job)
        assert api.waiting == ""


def test_nothing_is_resent_above_the_age_limit() -> None:
    """The service may have forgotten the ID; a person decides."""
    end, script = _create(says(200, JOB), age=timedelta(hours=13))
    assert isinstance(end, No)
    assert end.state is None
    assert script.sent == []


async def test_request_that_grew_too_old_while_it_waited_for_its_turn_is_not_resent() -> None:
    """The service may have forgotten it by then, and would make it anew."""
    script = Script({"patterns/create": [says(200, JOB)]})
    async with _api(script, in_doubt_limit=timedelta(hours=12)) as api:
        api._paces["patterns/create"].refused(virtual.clock(), 60.0)
        end = await api.create(Stage.PATTERN, BODY, age=timedelta(hours=12, seconds=-30))
    assert isinstance(end, No)
    assert end.code == "in_doubt_too_long"
    assert script.bodies("patterns/create") == []


async def test_machine_that_was_suspended_resends_nothing_too_old() -> None:
    """The clock of the pauses stands still meanwhile, the memory of the service does not."""
    suspended = 0.0
    script = Script({"patterns/create": [LOST]})
    async with _api(script, lambda: virtual.clock() + suspended, in_doubt_limit=timedelta(hours=12)) as api:
        create = asyncio.create_task(api.create(Stage.PATTERN, BODY))
        await asyncio.sleep(60)
        suspended = 13 * 3600.0
        sent = len(script.sent)
        end = await create
    assert isinstance(end, No)
    assert end.code == "in_doubt_too_long"
    assert len(script.sent) == sent > 1


async def test_each_sending_needs_a_permission_of_the_moment() -> None:
    """A run whose lease was lost while it was stopped sends nothing more, whatever it waited for."""
    permissions = 0

    async def permitted() -> None:
        nonlocal permissions
        permissions += 1
        if permissions == 6:  # two looks a sending
            raise LeaseLost("Another run took over.")

    script = Script({"patterns/create": [LOST]})
    async with _api(script) as api:
        with pytest.raises(LeaseLost):
            await api.create(Stage.PATTERN, BODY, permitted=permitted)
    assert script.bodies("patterns/create") == [BODY] * 2


async def test_a_stop_during_the_wait_for_permission_is_heeded() -> None:
    script = Script({"patterns/create": [says(200, JOB)]})
    async with _api(script) as api:
        create = asyncio.create_task(api.create(Stage.PATTERN, BODY, permitted=lambda: asyncio.sleep(5)))
        await asyncio.sleep(1)
        api.drain()
        assert await create is NOT_BEGUN
    assert script.sent == []


def _drained(answers: list[Answer], after: float, **options: Any) -> CreateEnd:
    async def main() -> CreateEnd:
        script = Script({"patterns/create": answers})
        async with _api(script) as api:
            create = asyncio.create_task(api.create(Stage.PATTERN, BODY, **options))
            await asyncio.sleep(after)
            api.drain()
            drained_at = virtual.clock()
            end = await create
            assert all(at <= drained_at for at, _, _ in script.sent)
            assert virtual.clock() - drained_at < 0.1
            return end

    return virtual.run(main())


def test_drain_ends_waiting_creates_at_once() -> None:
    """34: in doubt, or never begun; and the one under way is waited for."""
    assert _code(_drained([LOST, says(200, JOB)], 0.1)) == "in_doubt"
    assert _drained([REFUSED, says(200, JOB)], 0.1) is NOT_BEGUN
    assert _code(_drained([REFUSED], 0.1, age=timedelta(minutes=1))) == "in_doubt"
    assert _drained([says(429, retry_after="900")], 5.0) is NOT_BEGUN
    assert isinstance(_drained([says(200, JOB)], 0.01), Job)


async def test_nothing_is_sent_after_a_drain_or_stop() -> None:
    """Not even the first time."""
    script = Script({"patterns/create": [says(200, JOB)]})
    async with _api(script) as api:
        assert await api.create(Stage.PATTERN, BODY, stopping=lambda: True) is NOT_BEGUN
        api.drain()
        assert await api.create(Stage.PATTERN, BODY) is NOT_BEGUN
        assert _code(await api.create(Stage.PATTERN, BODY, age=timedelta(0))) == "in_doubt"
        assert script.sent == []


async def test_abandoning_ends_everything_at_once() -> None:
    """After the drain's deadline: creates under way are in doubt, jobs are for the next run."""
    script = Script({"patterns/create": [says(200, JOB)], "jobs/get": [says(200, JOB)]}, latency=20)
    async with _api(script) as api:
        create = asyncio.create_task(api.create(Stage.PATTERN, BODY))
        follow = asyncio.create_task(api.follow("job-1", Stage.PATTERN))
        await asyncio.sleep(1)
        api.abandon()
        assert _code(await create) == "in_doubt"
        assert await follow is GAVE_UP
        assert virtual.clock() < 1.1
    assert script.closed


def _offer(answers: dict[str, list[Answer]]) -> tuple[Any, Script]:
    async def main() -> tuple[Any, Script]:
        script = Script(answers)
        async with _api(script) as api:
            return await api.offer(), script

    return virtual.run(main())


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (says(404), "The service answered 404."),
        (says(501), "The service answered 501."),
        (says(200, "none"), "The shape of its answer is not known."),
    ],
)
def test_offer_that_cannot_be_read_says_why(answer: Answer, why: str) -> None:
    """After what was not checked."""
    offer, _ = _offer({"categories/list": [answer]})
    assert offer.note.endswith(f"the list of them cannot be read. {why}")


LIST = {"categories": [{"categoryId": "c-1", "name": "Mug"}, {"categoryId": "c-2", "name": "Tote"}]}
MUG = {"categoryId": "c-1", "name": "Mug", "options": [{"name": "size", "values": ["s", "l"]}]}


def test_offer_is_read_through_faults() -> None:
    """A lost answer, a 500 and a 429 do not hide the options."""
    offer, script = _offer(
        {
            "categories/list": [LOST, says(500), says(200, LIST)],
            "categories/get": [says(429, retry_after="2"), says(200, MUG)],
        }
    )
    assert all(category.checkable for category in offer.categories)
    assert [category.id for category in offer.categories] == ["c-1", "c-2"]
    asked = {json.loads(body).get("categoryId") for body in script.bodies("categories/get")}
    assert asked == {"c-1", "c-2"}


@pytest.mark.parametrize("answer", [says(401), Answer(ExchangeResult.NOT_SENT, Trouble.TLS), says(500), LOST])
def test_list_that_is_not_answered_stops_before_planning(answer: Answer) -> None:
    """9, 13, 20: the key is refused, no request arrives, or there is no clear answer."""
    with pytest.raises(ServiceStopped):
        _offer({"categories/list": [answer]})


@pytest.mark.parametrize("answer", [says(404), says(302)])
async def test_error_of_one_item_after_others_were_accepted_is_its_own(answer: Answer) -> None:
    """46: the run continues."""
    script = Script(
        {"patterns/create": [says(200, JOB), *[answer] * 4, says(200, {**JOB, "jobId": "job-2"})]}
    )
    async with _api(script) as api:
        assert isinstance(await api.create(Stage.PATTERN, BODY), Job)
        guilty = await api.create(Stage.PATTERN, b'{"requestId": "guilty"}')
        assert isinstance(guilty, No) and guilty.state is AttemptState.REJECTED
        del script.answers["patterns/create"][:-1]
        assert isinstance(await api.create(Stage.PATTERN, b'{"requestId": "good"}'), Job)


def _look_up(*answers: Answer) -> tuple[Any, int, float]:
    """The job or what is raised, how often it was asked for, and when that was clear."""

    async def main() -> tuple[Any, int, float]:
        script = Script({"jobs/get": list(answers)})
        async with _api(script) as api:
            try:
                found: Any = await api.job("job-1")
            except ServiceStopped as stopped:
                found = stopped
            return found, len(script.sent), virtual.clock()

    return virtual.run(main())


def test_job_is_looked_up_with_a_few_quick_tries() -> None:
    """A lost or failed answer is tried once more; the job is returned as the service shows it."""
    job, asked, at = _look_up(LOST, says(503), says(200, JOB | {"prompt": "herons"}))
    assert (job.job_id, job.raw["prompt"], asked) == ("job-1", "herons", 3)
    assert at < 10


@pytest.mark.parametrize("status", [404, 422])
def test_unknown_job_is_looked_up_once(status: int) -> None:
    assert _look_up(says(status))[:2] == (None, 1)


@pytest.mark.parametrize(
    ("answer", "tries"), [(REFUSED, 4), (says(500), 4), (says(200, []), 1), (says(401), 1)]
)
def test_failed_lookup_of_a_job(answer: Answer, tries: int) -> None:
    """It stays unknown whether there is one; and it ends soon."""
    stopped, asked, at = _look_up(answer)
    assert isinstance(stopped, ServiceStopped)
    assert asked == tries and at < 10


@pytest.mark.parametrize(
    ("answer", "status", "body"),
    [
        (
            says(422, {"error": {"message": "no", "token": "secret"}}),
            422,
            {"error": {"message": "no", "token": "[removed]"}},
        ),
        (says(401), 401, None),
        (says(422, {"long": "x" * 2000}), 422, None),
        (says(422, None, trouble=Trouble.NOT_JSON), 422, None),
    ],
)
def test_end_without_a_job_has_its_exchange(answer: Answer, status: int, body: Any) -> None:
    """Operation, status, time, and a small body without secrets."""
    end, _ = _create(answer)
    assert isinstance(end, No) and end.exchange is not None
    found = end.exchange
    assert (found["operation"], found["status"], found["durationMs"]) == ("patterns/create", status, 50.0)
    assert found.get("body") == body


def test_answer_to_a_checkout_is_not_kept() -> None:
    """It may have the address at which anyone can pay it."""
    answer = says(
        409, {"checkoutUrl": "https://pay.example/c/secret", "at": ["https://pay.example/c/secret"]}
    )
    found = failed_exchange("checkouts/create", answer, 0.5)
    assert found == {"operation": "checkouts/create", "status": 409, "durationMs": 500.0}


async def test_failed_job_has_the_poll_that_showed_it() -> None:
    failed = {**JOB, "status": "failed", "error": {"message": "the loom broke"}}
    script = Script({"jobs/get": [says(200, JOB), says(200, failed)]})
    async with _api(script) as api:
        end = await api.follow("job-1", Stage.PATTERN)
    assert isinstance(end, Ended) and end.exchange is not None
    found = end.exchange
    assert (found["operation"], found["status"], found["body"]) == ("jobs/get", 200, failed)
