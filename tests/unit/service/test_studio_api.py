"""The facade in virtual time, against a service whose answers are scripted."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import pytest

from patternmill.errors import LeaseLost
from patternmill.service.jobs import Job
from patternmill.service.outcomes import (
    GAVE_UP,
    NOT_BEGUN,
    Answer,
    CreateEnd,
    Ended,
    Refusal,
    Trouble,
    failed_exchange,
)
from patternmill.service.resend import CreateRequest
from patternmill.service.studio_api import MaySend, StudioApi
from patternmill.states import AttemptState, Stage
from tests.unit.service import virtual
from tests.unit.service.answers import JOB, Script, answered, lost, not_sent

BODY = b'{"requestId":"r-1","prompt":"herons"}'
PATTERN = CreateRequest(body=BODY)


def _create(
    *answers: Answer,
    age: timedelta | None = None,
    may_send: Sequence[MaySend] = (),
    before: Callable[[StudioApi], object] = lambda api: None,
) -> tuple[CreateEnd, Script]:
    """Return how a create ends that is answered like that."""

    async def main() -> tuple[CreateEnd, Script]:
        script = Script({"patterns/create": list(answers)})
        async with script.api() as api:
            before(api)
            return await api.create(CreateRequest(body=BODY, age=age), *may_send), script

    return virtual.run(main())


def _code(end: CreateEnd) -> str:
    return end.code if isinstance(end, Refusal) else ""


def test_create_in_doubt_is_resent_byte_for_byte() -> None:
    """5: executed, answer lost; the second answer names the job."""
    end, script = _create(lost(), answered(500), answered(200, {"nothing": 1}), answered(200, JOB))
    assert isinstance(end, Job)
    assert end.job_id == "job-1"
    assert script.bodies("patterns/create") == [BODY] * 4


async def test_one_refusal_pauses_all_creates_of_its_operation_and_nothing_else() -> None:
    """17: the limits are separate."""
    done = {**JOB, "status": "succeeded", "result": {"patternId": "p"}}
    script = Script(
        {
            "patterns/create": [answered(429, retry_after="30"), answered(200, JOB)],
            "products/create": [answered(200, {**JOB, "jobId": "job-2"})],
            "jobs/get": [answered(200, {**done, "jobId": "job-9"})],
        }
    )
    async with script.api() as api:
        first = asyncio.create_task(api.create(PATTERN))
        await asyncio.sleep(1)
        second = asyncio.create_task(api.create(PATTERN))
        assert isinstance(await api.create(CreateRequest(Stage.PRODUCT, b"{}")), Job)
        assert isinstance(await api.follow("job-9", Stage.PATTERN), Ended)
        assert (virtual.clock() < 2, api.queued) == (True, 2)
        await asyncio.gather(first, second)
        assert api.queued == 0
        assert [at >= 30 for at, name, _ in script.sent if name == "patterns/create"] == [False, True, True]


async def test_create_that_is_refused_while_others_are_accepted_waits_for_its_turn() -> None:
    """It waits for longer than the hour after which a limit that lets nothing pass stops the run."""
    script = Script({"patterns/create": [answered(429)], "products/create": [answered(200, JOB)]})
    async with script.api() as api:
        refused = asyncio.create_task(api.create(PATTERN))
        for _ in range(8):
            await asyncio.sleep(900)
            await api.create(CreateRequest(Stage.PRODUCT, b"{}"))
        assert not refused.done()
        assert _code(await refused) == "rate_limited"
        assert virtual.clock() == pytest.approx(8 * 900 + 3600, abs=30)


async def test_lasting_500_of_one_item_is_in_doubt_after_ten_minutes() -> None:
    """18: one item does not stop the run."""
    script = Script({"patterns/create": [answered(500)], "jobs/get": [answered(200, JOB)]})
    async with script.api() as api:
        poll = asyncio.create_task(api.follow("job-1", Stage.PATTERN))
        end = await api.create(PATTERN)
        assert isinstance(end, Refusal)
        assert end.state is None
        assert 600 <= virtual.clock() < 660
        assert len(script.bodies("patterns/create")) < 60
        poll.cancel()


async def test_unavailable_service_stops_the_run_in_time() -> None:
    """2, 18: a hundred creates are sent with pauses, and all end once the service is away for too long."""
    script = Script({"patterns/create": [not_sent()]})
    async with script.api() as api:
        ends = await asyncio.gather(*(api.create(CreateRequest(body=b"%d" % n)) for n in range(100)))
        assert {end.code for end in ends if isinstance(end, Refusal) and end.stops} == {"service_away"}
        assert {end.state for end in ends if isinstance(end, Refusal)} == {AttemptState.WITHDRAWN}
        assert virtual.clock() < 700
        assert len(script.sent) < 100 * 40


async def test_service_without_a_good_answer_is_shown_as_waited_for() -> None:
    """It is shown with its last answer: not at once, and no longer than the trouble lasts."""
    script = Script({"patterns/create": [not_sent()]})
    async with script.api() as api:
        create = asyncio.create_task(api.create(PATTERN))
        await asyncio.sleep(5)
        assert api.waiting == ""
        await asyncio.sleep(35)
        assert re.fullmatch(r"waiting for the service since \d+ s: No answer from the service.*", api.waiting)
        script.answers["patterns/create"] = [answered(200, JOB)]
        assert isinstance(await create, Job)
        assert api.waiting == ""


@pytest.mark.parametrize(
    "happens", ["at the start", "while it waits for its turn", "while the machine is suspended"]
)
async def test_request_that_is_too_old_is_not_resent(happens: str) -> None:
    """The service may have forgotten it by then, and would make it anew: a person decides."""
    suspended, age = 0.0, timedelta(hours=13 if happens == "at the start" else 0)
    script = Script({"patterns/create": [lost()]})
    async with script.api(lambda: virtual.clock() + suspended, in_doubt_limit=timedelta(hours=12)) as api:
        if happens == "while it waits for its turn":
            age = timedelta(hours=12, seconds=-30)
            api._paces["patterns/create"].refused(virtual.clock(), 60.0)
        create = asyncio.create_task(api.create(CreateRequest(body=BODY, age=age)))
        await asyncio.sleep(20)
        sent = len(script.sent)
        suspended = 13 * 3600.0
        end = await create
    assert isinstance(end, Refusal) and (end.state, end.code) == (None, "in_doubt_too_long")
    assert len(script.sent) == sent and (sent > 0) == (happens == "while the machine is suspended")


async def test_each_sending_needs_a_permission_of_the_moment() -> None:
    """A run whose lease was lost while it was stopped sends nothing more, whatever it waited for."""
    permissions = 0

    async def may_send() -> bool:
        nonlocal permissions
        permissions += 1
        if permissions == 6:  # two looks a sending
            raise LeaseLost("Another run took over.")
        return True

    script = Script({"patterns/create": [lost()]})
    async with script.api() as api:
        with pytest.raises(LeaseLost):
            await api.create(PATTERN, may_send)
    assert script.bodies("patterns/create") == [BODY] * 2


def _drained(
    answers: list[Answer], after: float, age: timedelta | None = None, may_send: Sequence[MaySend] = ()
) -> CreateEnd:
    async def main() -> CreateEnd:
        script = Script({"patterns/create": answers})
        async with script.api() as api:
            create = asyncio.create_task(api.create(CreateRequest(body=BODY, age=age), *may_send))
            await asyncio.sleep(after)
            api.drain()
            drained_at = virtual.clock()
            end = await create
            assert all(at <= drained_at for at, _, _ in script.sent)
            assert virtual.clock() - drained_at < (5 if may_send else 0.1)
            return end

    return virtual.run(main())


def test_drain_ends_waiting_creates_at_once() -> None:
    """34: they end in doubt or, if they were never sent, not begun; the one under way is waited for."""
    job = answered(200, JOB)
    assert _code(_drained([lost(), job], 0.1)) == "in_doubt"
    assert _drained([not_sent(), job], 0.1) is NOT_BEGUN
    assert _code(_drained([not_sent()], 0.1, age=timedelta(minutes=1))) == "in_doubt"
    assert _drained([answered(429, retry_after="900")], 5.0) is NOT_BEGUN
    assert isinstance(_drained([job], 0.01), Job)
    assert _drained([job], 1.0, may_send=[lambda: asyncio.sleep(5, True)]) is NOT_BEGUN
    for age, code in ((None, ""), (timedelta(0), "in_doubt")):
        for how in ({"before": lambda api: api.drain()}, {"may_send": [lambda: asyncio.sleep(0, False)]}):
            end, script = _create(job, age=age, **how)  # type: ignore[arg-type]
            assert (_code(end), script.sent) == (code, [])


async def test_abandoning_ends_everything_at_once() -> None:
    """After the drain's deadline: creates under way are in doubt, jobs are for the next run."""
    script = Script({"patterns/create": [answered(200, JOB)], "jobs/get": [answered(200, JOB)]}, latency=20)
    async with script.api() as api:
        create = asyncio.create_task(api.create(PATTERN))
        follow = asyncio.create_task(api.follow("job-1", Stage.PATTERN))
        await asyncio.sleep(1)
        api.abandon()
        assert _code(await create) == "in_doubt"
        assert await follow is GAVE_UP
        assert virtual.clock() < 1.1
    assert script.closed


@pytest.mark.parametrize(
    ("shown", "held"),
    [(answered(200, JOB), None), (answered(404), AttemptState.HELD), (lost(), AttemptState.HELD)],
)
async def test_job_of_a_known_request_is_looked_up(shown: Answer, held: AttemptState | None) -> None:
    """A person has said which operation finds it; without an answer a person decides as before."""
    script = Script({"patterns/create": [answered(409)], "jobs/find": [shown]})
    async with script.api() as api:
        end = await api.create(CreateRequest(body=BODY, look_up="jobs/find"))
    assert script.bodies("jobs/find")[0] == b'{"requestId":"r-1"}'
    if isinstance(end, Refusal):
        assert (end.state, end.code) == (
            held,
            "repeated_request",
        ) and "looked for with jobs/find" in end.message
    else:
        assert (end.job_id, held) == ("job-1", None)


@pytest.mark.parametrize("answer", [answered(404), answered(302)])
async def test_error_of_one_item_after_others_were_accepted_is_its_own(answer: Answer) -> None:
    """46: the run continues."""
    script = Script(
        {"patterns/create": [answered(200, JOB), *[answer] * 4, answered(200, {**JOB, "jobId": "job-2"})]}
    )
    async with script.api() as api:
        assert isinstance(await api.create(PATTERN), Job)
        guilty = await api.create(CreateRequest(body=b'{"requestId": "guilty"}'))
        assert isinstance(guilty, Refusal) and guilty.state is AttemptState.REJECTED
        del script.answers["patterns/create"][:-1]
        assert isinstance(await api.create(CreateRequest(body=b'{"requestId": "good"}')), Job)


@pytest.mark.parametrize(
    ("answer", "body"),
    [
        (
            answered(422, {"error": {"message": "no", "token": "secret"}}),
            {"error": {"message": "no", "token": "[removed]"}},
        ),
        (answered(401), None),
        (answered(422, {"long": "x" * 2000}), None),
        (answered(422, None, trouble=Trouble.NOT_JSON), None),
    ],
)
def test_end_without_a_job_has_its_exchange(answer: Answer, body: Any) -> None:
    """It has operation, status, time and a small body without secrets; no checkout's, whose address lets anyone pay."""
    end, _ = _create(answer)
    exchange = {"operation": "patterns/create", "status": answer.status, "durationMs": 50.0}
    assert isinstance(end, Refusal) and end.exchange == exchange | ({} if body is None else {"body": body})
    assert "body" not in failed_exchange("checkouts/create", answer, 0.5)


async def test_failed_job_has_the_poll_that_showed_it() -> None:
    failed = {**JOB, "status": "failed", "error": {"message": "the loom broke"}}
    script = Script({"jobs/get": [lost(), answered(200, JOB), answered(200, failed)]})
    async with script.api() as api:
        end = await api.follow("job-1", Stage.PATTERN)
    assert isinstance(end, Ended) and end.exchange is not None and end.exchange["body"] == failed
