"""Polling in virtual time: what is learned, how seldom is asked, and that every wait ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from patternmill.service.outcomes import (
    GAVE_UP,
    Answer,
    Ended,
    ExchangeResult,
    JobEnd,
    No,
    Trouble,
)
from patternmill.service.pacing import Pace
from patternmill.service.polling import Poller, gap_at
from patternmill.service.resend import ResendPolicy
from patternmill.states import AttemptState, Stage
from tests.unit.service import virtual
from tests.unit.service.simulation import Draw, lognormal, simulate


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rows", "window", "durations"),
    [
        (400, 200, [lognormal(75, 0.0, 1)]),
        (600, 200, [lognormal(75, 0.1, 1)]),
        (1000, 1000, [lognormal(75, 0.3, 1)]),
        (300, 300, [lognormal(75, 0.05, 1), lognormal(20, 0.05, 101)]),
    ],
)
def test_run_takes_hardly_longer_than_its_jobs(rows: int, window: int, durations: list[Draw]) -> None:
    """Nothing is known of the jobs at the start."""
    figures = simulate(rows, window, *durations)
    assert figures.ratio <= 1.05, figures
    assert figures.polls_per_job < 26, figures


def test_quick_and_instant_jobs_are_found_fast() -> None:
    quick, instant = simulate(50, 200, lognormal(0.7, 0.4, 1)), simulate(50, 200, lambda: 0.0)
    assert quick.p99_lag < 1.5, quick
    assert instant.median_lag < 0.3, instant
    assert instant.polls_per_job == 1


async def test_first_poll_is_at_the_tenth_percentile_of_the_last_hundred_less_a_tenth() -> None:
    """Of the same stage. Jobs that became quicker are noticed, though each is seen to end at its first poll."""
    poller, ended = _poller(_never), 30.0
    assert poller.first_poll(Stage.PATTERN) == 0.2
    for seconds in [*[10.0] * 50, *[70.0] * 20, *[80.0] * 80]:
        poller.remember(Stage.PATTERN, seconds)
    assert poller.first_poll(Stage.PATTERN) == pytest.approx(63.0)
    assert poller.first_poll(Stage.PRODUCT) == 0.2
    for _ in range(150):
        poller.remember(Stage.PATTERN, max(ended, poller.first_poll(Stage.PATTERN)))
    assert poller.first_poll(Stage.PATTERN) == pytest.approx(27.0)


def test_gaps_are_two_seconds_or_a_share_of_the_age() -> None:
    assert [gap_at(age) for age in (0.05, 0.2, 1.0, 5.0, 40.0, 100.0)] == [0.2, 0.2, 1.0, 2.0, 2.0, 5.0]


async def _never(job_id: str) -> Answer:
    raise AssertionError("not asked")


JOB: dict[str, Any] = {"jobId": "job-1", "kind": "pattern", "status": "running", "result": None}
DONE = {**JOB, "status": "succeeded", "result": {"patternId": "p-1"}}


def _ok(body: Any) -> Answer:
    return Answer(ExchangeResult.ANSWERED, status=200, body=body)


def _poller(ask: Callable[[str], Any], **resend: Any) -> Poller:
    return Poller(
        ask,
        Pace(100, clock=virtual.clock),
        resend=ResendPolicy(jitter=lambda: 0.5, **resend),
        clock=virtual.clock,
    )


def _follow(*answers: Answer, age: float = 0.0, **resend: Any) -> tuple[JobEnd, float, int]:
    """How a job ends whose polls are answered like that, the last for ever; when, after how many polls."""

    async def main() -> tuple[JobEnd, float, int]:
        asked = 0

        async def ask(job_id: str) -> Answer:
            nonlocal asked
            asked += 1
            await asyncio.sleep(0.01)
            return answers[min(asked, len(answers)) - 1]

        poller = _poller(ask, **resend)
        end = await poller.follow("job-1", Stage.PATTERN, age=timedelta(seconds=age))
        ended_at = virtual.clock()
        poller.abandon()
        return end, ended_at, asked

    return virtual.run(main())


LOST = Answer(ExchangeResult.LOST, Trouble.TIMEOUT)


@pytest.mark.parametrize(
    "trouble",
    [
        LOST,
        Answer(ExchangeResult.ANSWERED, status=429, retry_after="2"),
        Answer(ExchangeResult.ANSWERED, status=404),
        Answer(ExchangeResult.ANSWERED, Trouble.HTML, status=200),
        _ok({**JOB, "status": "succeeded", "result": None}),
        _ok({**JOB, "status": "queued"}),
    ],
)
def test_failed_poll_changes_nothing(trouble: Answer) -> None:
    """The job is polled again, and ends as it ended."""
    end, _, asked = _follow(trouble, trouble, _ok(DONE))
    assert isinstance(end, Ended)
    assert asked == 3


def test_endless_job_is_left_at_the_deadline() -> None:
    """29: the next run polls again."""
    end, at, _ = _follow(_ok(JOB), job_timeout=timedelta(minutes=5))
    assert end is GAVE_UP
    assert 300 <= at < 301


def test_job_of_an_earlier_run_is_polled_at_once_and_for_a_while() -> None:
    """However long ago it was accepted."""
    end, at, asked = _follow(_ok(DONE), age=90_000)
    assert isinstance(end, Ended)
    assert (at < 0.1, asked) == (True, 1)
    end, at, _ = _follow(_ok(JOB), age=90_000)
    assert end is GAVE_UP
    assert 120 <= at < 121


def test_unknown_status_is_reported_once_and_kept_at_the_deadline(caplog: pytest.LogCaptureFixture) -> None:
    """25."""
    end, _, _ = _follow(_ok({**JOB, "status": "paused"}), job_timeout=timedelta(minutes=5))
    assert isinstance(end, No) and end.state is AttemptState.HELD
    assert end.code == "unknown_status"
    assert len([record for record in caplog.records if "paused" in record.getMessage()]) == 1


def test_success_that_never_names_its_result_is_kept_at_the_deadline() -> None:
    """25. It has ended, so that asking in every later run would find nothing more."""
    nameless = _ok({**JOB, "status": "succeeded", "result": None})
    end, _, _ = _follow(nameless, job_timeout=timedelta(minutes=5))
    assert isinstance(end, No) and end.state is AttemptState.HELD
    assert end.code == "result_missing"


def test_other_ends() -> None:
    """16, 28."""
    end = _follow(_ok({**JOB, "status": "failed", "error": {"message": "no"}}))[0]
    assert isinstance(end, Ended) and (end.job.status, end.job.error) == ("failed", "no")
    end = _follow(Answer(ExchangeResult.ANSWERED, status=404), age=600)[0]
    assert isinstance(end, No) and (end.state, end.stops) == (AttemptState.HELD, False)


async def test_abandoned_waits_end_at_once() -> None:
    """The end of a drain."""

    async def ask(job_id: str) -> Answer:
        return _ok({**JOB, "jobId": job_id})

    poller = _poller(ask)
    waits = [asyncio.create_task(poller.follow(f"j{n}", Stage.PATTERN)) for n in range(50)]
    await asyncio.sleep(5)
    poller.abandon()
    ends = await asyncio.gather(*waits, poller.follow("later", Stage.PRODUCT))
    assert all(end is GAVE_UP for end in ends)
    assert virtual.clock() < 5.1
    poller.abandon()


async def test_cancelled_wait_is_not_polled_any_more() -> None:
    """And the others continue."""
    asked: list[str] = []

    async def ask(job_id: str) -> Answer:
        asked.append(job_id)
        return _ok({**JOB, "jobId": job_id})

    poller = _poller(ask)
    gone = asyncio.create_task(poller.follow("gone", Stage.PATTERN))
    stays = asyncio.create_task(poller.follow("stays", Stage.PATTERN))
    await asyncio.sleep(5)
    gone.cancel()
    await asyncio.sleep(0.1)
    asked.clear()
    await asyncio.sleep(30)
    assert set(asked) == {"stays"}
    stays.cancel()
    poller.abandon()


async def test_own_error_reaches_every_waiter() -> None:
    """No wait hangs on a poll that failed."""

    async def ask(job_id: str) -> Answer:
        raise RuntimeError("a bug")

    with pytest.raises(RuntimeError, match="a bug"):
        await _poller(ask).follow("job-1", Stage.PATTERN)


@pytest.mark.slow
async def test_polls_keep_to_their_rate() -> None:
    """A thousand jobs that are due together do not make a thousand connections at once."""
    times: list[float] = []

    async def ask(job_id: str) -> Answer:
        times.append(virtual.clock())
        return _ok({**DONE, "jobId": job_id})

    poller = _poller(ask)
    await asyncio.gather(*(poller.follow(f"j{n}", Stage.PATTERN, age=timedelta(days=1)) for n in range(1000)))
    assert max(sum(at <= other < at + 1 for other in times) for at in times) <= 106
