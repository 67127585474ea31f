"""The token bucket, in virtual time."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from patternmill.service.pacing import Pace
from tests.unit.service import virtual


async def _send(pace: Pace, count: int, accept: bool = True) -> None:
    """Send so many requests, all answered alike."""

    async def send() -> None:
        await pace.acquire()
        (pace.accepted if accept else pace.refused)(virtual.clock())

    await asyncio.gather(*(send() for _ in range(count)))


async def test_rate_holds_and_turns_are_first_come_first_served() -> None:
    """A burst of a twentieth of a second's worth, then the rate; whoever has waited longer goes first."""
    pace, order = Pace(20, clock=virtual.clock), []

    async def send(number: int, since: float) -> None:
        await pace.acquire(since)
        order.append(number)

    await asyncio.gather(*(send(number, 1.0) for number in range(199)), send(199, 0.5))
    assert order == [0, 199, *range(1, 199)]
    assert virtual.clock() == pytest.approx(199 / 20, rel=0.02)


async def test_cancelled_waits_take_no_turn() -> None:
    pace = Pace(1, clock=virtual.clock)
    await pace.acquire()
    tasks = [asyncio.create_task(pace.acquire()) for _ in range(3)]
    await asyncio.sleep(0.1)
    tasks[0].cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert virtual.clock() == pytest.approx(2.0, abs=0.1)


async def test_refusal_cuts_the_rate_once_and_what_is_accepted_raises_it_again() -> None:
    """The cut is small after many accepted requests, large after few; what was sent before it says nothing new."""
    pace = Pace(100, clock=virtual.clock)
    await _send(pace, 50)
    pace.refused(virtual.clock())
    cut = pace.rate
    assert 90 < cut < 100
    pace.refused(virtual.clock() - 1)
    assert pace.rate == cut
    await asyncio.sleep(1)
    pace.refused(virtual.clock())
    assert pace.rate < cut / 2
    await _send(pace, 60)
    assert pace.rate == pytest.approx(100, rel=0.02)


async def test_rate_is_back_within_seconds_after_an_outage() -> None:
    """Meanwhile few requests are sent."""
    pace = Pace(100, clock=virtual.clock)
    await _send(pace, 50)
    await _send(pace, 20, accept=False)
    began = virtual.clock()
    assert began > 60
    await _send(pace, 200)
    assert virtual.clock() - began < 15
    assert pace.rate == pytest.approx(100, rel=0.02)


def test_rates_are_shared_by_clients() -> None:
    """Each has a part of the rate, and sends no more than the service takes."""
    pace = Pace(100, clock=lambda: 0.0)
    pace.limit(25)
    assert pace.rate == 25
    pace.refused(0.0)
    rate = pace.rate
    pace.limit(100)
    assert pace.rate == rate < 25


class Limit:
    """A limit that a service does not state: a number of requests in each whole second, or a bucket of ten."""

    def __init__(self, rate: float, in_seconds: bool) -> None:
        self.rate, self.in_seconds = rate, in_seconds
        self.left, self.looked_at = 0.0, 0.0

    def takes(self) -> bool:
        now = virtual.clock()
        if not self.in_seconds:
            self.left = min(10.0, self.left + (now - self.looked_at) * self.rate)
        elif int(now) != int(self.looked_at):
            self.left = self.rate
        self.looked_at = now
        self.left -= (passes := self.left >= 1)
        return passes


@pytest.mark.parametrize(
    ("rate", "in_seconds", "pause", "senders"),
    [(6, True, 5.0, 1), (12, False, 0.0, 2), (3, False, 0.0, 1)],
)
async def test_limit_that_nobody_stated_is_made_use_of(
    rate: int, in_seconds: bool, pause: float, senders: int
) -> None:
    """After the first minute, one or several clients use at least 85 % of it, and few answers are 429."""
    limit, answers = Limit(rate, in_seconds), list[tuple[float, bool]]()

    async def send(pace: Pace) -> None:
        while True:
            await pace.acquire()
            sent_at = virtual.clock()
            await asyncio.sleep(0.05)
            passes = limit.takes()
            answers.append((virtual.clock(), passes))
            pace.accepted(sent_at) if passes else pace.refused(sent_at, pause)

    paces = [Pace(500, clock=virtual.clock) for _ in range(senders)]
    with suppress(TimeoutError):
        async with asyncio.timeout(360):
            await asyncio.gather(*(send(pace) for pace in paces for _ in range(100)))
    late = [passes for at, passes in answers if at >= 60]
    assert sum(late) >= 0.85 * 300 * rate
    assert late.count(False) <= 0.03 * len(late)
