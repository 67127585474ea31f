"""Polling in virtual time: what is learned, how seldom is asked, and that every wait ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from statistics import median
from typing import Any

import pytest

from patternmill.service.jobs import read_job
from patternmill.service.outcomes import (
    GAVE_UP,
    Answer,
    ExchangeResult,
    JobEnd,
    No,
    Succeeded,
    Trouble,
)
from patternmill.service.pacing import Pace
from patternmill.service.polling import Durations, Poller
from patternmill.service.resend import ResendPolicy
from patternmill.states import AttemptState, Stage
from tests.unit.service import virtual
from tests.unit.service.simulation import Figures, lognormal, simulate


def _show(name: str, figures: Figures) -> Figures:
    print(f"{name:28} {figures}")
    return figures


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rows", "window", "sigma", "polls", "lag"),
    [(400, 200, 0.0, 6, 2.0), (600, 200, 0.1, 9, 2.0), (1000, 1000, 0.3, 17, 6.0)],
)
def test_few_polls_for_jobs_of_a_minute_and_a_quarter(
    rows: int, window: int, sigma: float, polls: int, lag: float
) -> None:
    """The lag is what so few polls allow for so wide a spread."""
    figures = _show(f"75 s, sigma {sigma}, {window} at once", simulate(rows, window, lognormal(75, sigma, 1)))
    assert figures.polls_per_job < polls
    assert figures.median_lag < lag
    assert figures.ratio < 1.06


@pytest.mark.slow
@pytest.mark.parametrize("seed", (1, 2))
def test_jobs_that_begin_at_once_share_their_durations(seed: int) -> None:
    """All begin before any duration is known: the first ones to end must serve the others in time."""
    durations = lognormal(75, 0.05, seed), lognormal(20, 0.05, seed + 100)
    figures = _show(f"75 s + 20 s, seed {seed}", simulate(300, 300, *durations))
    assert figures.polls_per_job < 8.5
    assert figures.median_lag < 2
    assert figures.ratio < 1.05


@pytest.mark.slow
def test_quick_and_instant_jobs_are_found_fast() -> None:
    """Early polls find out at once that a wait of a minute is not needed."""
    several = [
        _show("0.7 s + 0.5 s", simulate(200, 200, lognormal(0.7, 0.4, seed), lognormal(0.5, 0.4, seed + 1)))
        for seed in (1, 2, 3)
    ]
    instant = _show("instant", simulate(200, 200, lambda: 0.0))
    assert median(figures.ratio for figures in several) < 1.07
    assert max(figures.p99_lag for figures in several) < 1.0
    assert instant.median_lag < 0.15
    assert instant.polls_per_job < 1.1


def test_single_job_is_polled_often() -> None:
    figures = _show("one row of 90 s", simulate(1, 200, lambda: 90.0))
    assert figures.p99_lag < 2.0


@pytest.mark.slow
def test_slow_tail_is_followed_to_its_end() -> None:
    """Two kinds of jobs in one stage, and some ten times slower than all others."""
    durations = iter([*[20.0, 60.0] * 150, *[400.0] * 5])
    figures = _show("20 s, 60 s, and 400 s", simulate(305, 305, lambda: next(durations)))
    assert figures.ratio < 1.05


def test_only_the_last_durations_count() -> None:
    """A service changes."""
    known = Durations()
    for duration in [*[10.0] * 500, *[90.0] * Durations.MEMORY]:
        known.ended(duration, duration)
    assert known.first_likely == known.typical == 90.0


JOB: dict[str, Any] = {"jobId": "job-1", "kind": "pattern", "status": "running", "result": None}
DONE = {**JOB, "status": "succeeded", "result": {"patternId": "p-1"}}


def _ok(body: Any) -> Answer:
    return Answer(ExchangeResult.ANSWERED, status=200, body=body)


def _poller(ask: Callable[[str], Any], **resend: Any) -> Poller:
    return Poller(
        ask,
        Pace(100, at_once=64, clock=virtual.clock),
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
        await poller.close()
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
    assert isinstance(end, Succeeded)
    assert asked == 3


def test_endless_job_is_left_at_the_deadline() -> None:
    """29: the next run polls again."""
    end, at, _ = _follow(_ok(JOB), job_timeout=timedelta(minutes=5))
    assert end is GAVE_UP
    assert 300 <= at < 301


def test_job_of_an_earlier_run_is_polled_at_once_and_for_a_while() -> None:
    """However long ago it was accepted."""
    end, at, asked = _follow(_ok(DONE), age=90_000)
    assert isinstance(end, Succeeded)
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


@pytest.mark.parametrize(
    ("answer", "age", "expected"),
    [
        (_ok({**JOB, "status": "failed", "error": {"message": "no"}}), 0, (AttemptState.FAILED, False)),
        (Answer(ExchangeResult.ANSWERED, status=404), 600, (AttemptState.HELD, False)),
    ],
)
def test_other_ends(answer: Answer, age: float, expected: tuple[AttemptState | None, bool]) -> None:
    """16, 28."""
    end = _follow(answer, age=age)[0]
    assert isinstance(end, No) and (end.state, end.stops) == expected


def test_create_that_answered_with_the_end_is_not_polled() -> None:
    """A repeated request may find its job done."""

    async def main() -> None:
        async def ask(job_id: str) -> Answer:
            raise AssertionError("not asked")

        end = await _poller(ask).follow("job-1", Stage.PATTERN, known=read_job(DONE))
        assert isinstance(end, Succeeded)

    virtual.run(main())


def test_abandoned_waits_end_at_once() -> None:
    """The end of a drain."""

    async def main() -> None:
        async def ask(job_id: str) -> Answer:
            return _ok({**JOB, "jobId": job_id})

        poller = _poller(ask)
        waits = [asyncio.create_task(poller.follow(f"j{n}", Stage.PATTERN)) for n in range(50)]
        await asyncio.sleep(5)
        poller.abandon()
        ends = await asyncio.gather(*waits, poller.follow("later", Stage.PRODUCT))
        assert all(end is GAVE_UP for end in ends)
        assert virtual.clock() < 5.1
        await poller.close()

    virtual.run(main())


def test_cancelled_wait_is_not_polled_any_more() -> None:
    """And the others continue."""

    async def main() -> None:
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
        assert poller.following == 1
        stays.cancel()
        await poller.close()

    virtual.run(main())


def test_own_error_reaches_every_waiter() -> None:
    """No wait hangs on a poll that failed."""

    async def main() -> None:
        async def ask(job_id: str) -> Answer:
            raise RuntimeError("a bug")

        with pytest.raises(RuntimeError, match="a bug"):
            await _poller(ask).follow("job-1", Stage.PATTERN)

    virtual.run(main())


@pytest.mark.slow
def test_polls_keep_to_their_rate_and_concurrency() -> None:
    """A thousand jobs that end together do not make a thousand connections."""

    async def main() -> None:
        out = most = 0
        times: list[float] = []

        async def ask(job_id: str) -> Answer:
            nonlocal out, most
            out += 1
            most = max(most, out)
            times.append(virtual.clock())
            await asyncio.sleep(2.0)
            out -= 1
            return _ok({**DONE, "jobId": job_id})

        poller = _poller(ask)
        await asyncio.gather(
            *(poller.follow(f"j{n}", Stage.PATTERN, age=timedelta(days=1)) for n in range(1000))
        )
        assert most == 64
        assert max(sum(at <= other < at + 1 for other in times) for at in times) <= 106
        await poller.close()

    virtual.run(main())
