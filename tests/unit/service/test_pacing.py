"""The window and the rates, in virtual time."""

from __future__ import annotations

import asyncio
import random

import pytest

from patternmill.service.pacing import JobLimit, Pace
from patternmill.states import Stage
from tests.unit.service import virtual


async def _settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_products_go_before_patterns_and_each_in_order() -> None:
    """First what finishes a row."""

    async def main() -> None:
        window, order = Pace(500, at_once=1, clock=virtual.clock), []
        await window.acquire(Stage.PATTERN)

        async def take(name: str, stage: Stage) -> None:
            await window.acquire(stage)
            order.append(name)
            window.release()

        names = [("a", Stage.PATTERN), ("x", Stage.PRODUCT), ("b", Stage.PATTERN), ("y", Stage.PRODUCT)]
        tasks = [asyncio.create_task(take(*name)) for name in names]
        await _settle()
        window.release()
        await asyncio.gather(*tasks)
        assert order == ["x", "y", "a", "b"]
        assert window.occupied == 0

    virtual.run(main())


def test_cancelled_waits_leak_no_slot() -> None:
    """Also when the slot was freed in the same moment."""

    async def main() -> None:
        window = Pace(500, at_once=3, clock=virtual.clock)
        chance, running, most = random.Random(5), 0, 0

        async def work(stage: Stage) -> None:
            nonlocal running, most
            await window.acquire(stage)
            running += 1
            most = max(most, running)
            try:
                await asyncio.sleep(chance.random())
            finally:
                running -= 1
                window.release()

        tasks = [asyncio.create_task(work(chance.choice(list(Stage)))) for _ in range(300)]
        while not all(task.done() for task in tasks):
            await asyncio.sleep(chance.random() / 5)
            chance.choice(tasks).cancel()
        assert most == 3
        assert window.occupied == 0
        await asyncio.wait_for(window.acquire(Stage.PATTERN), 1)

    virtual.run(main())


def test_slot_granted_while_cancelling_is_passed_on() -> None:
    """The race that leaks slots in other pools."""

    async def main() -> None:
        window = Pace(500, at_once=1, clock=virtual.clock)
        await window.acquire(Stage.PATTERN)
        first = asyncio.create_task(window.acquire(Stage.PATTERN))
        second = asyncio.create_task(window.acquire(Stage.PATTERN))
        await _settle()
        window.release()
        first.cancel()
        await _settle()
        assert first.cancelled()
        assert second.done()
        assert window.occupied == 1

    virtual.run(main())


def test_retry_after_pauses_every_sender() -> None:
    """One 429 pauses all, and hardly longer than requested."""

    async def main() -> None:
        pace = Pace(50, clock=virtual.clock)
        await pace.acquire()
        pace.refused(virtual.clock(), 7.0)
        sent = []

        async def send() -> None:
            await pace.acquire()
            sent.append(virtual.clock())

        await asyncio.gather(*(send() for _ in range(20)))
        assert 7.0 <= min(sent) < 8
        assert max(sent) < 15

    virtual.run(main())


def test_rate_holds_and_turns_are_first_come_first_served() -> None:
    """A burst of a twentieth of a second's worth, then the rate."""

    async def main() -> None:
        pace, order = Pace(20, clock=virtual.clock), []

        async def send(number: int) -> None:
            await pace.acquire()
            order.append(number)

        await asyncio.gather(*(send(number) for number in range(200)))
        assert order == list(range(200))
        assert virtual.clock() == pytest.approx(199 / 20, rel=0.02)

    virtual.run(main())


def test_cancelled_waits_take_no_turn() -> None:
    async def main() -> None:
        pace = Pace(1, clock=virtual.clock)
        await pace.acquire()
        tasks = [asyncio.create_task(pace.acquire()) for _ in range(3)]
        await asyncio.sleep(0.1)
        tasks[0].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert virtual.clock() == pytest.approx(2.0, abs=0.1)
        assert pace.occupied == 3

    virtual.run(main())


def test_rate_after_an_outage_doubles_each_second() -> None:
    """Up to what went well before; some failures among many are no outage, and meanwhile few requests are sent."""

    async def main() -> None:
        pace = Pace(100, clock=virtual.clock)
        for _ in range(50):
            pace.accepted(virtual.clock())
        pace.failed(virtual.clock())
        assert pace.rate > 90
        sent = []

        async def send(is_away: bool) -> None:
            await pace.acquire()
            sent.append(virtual.clock())
            (pace.failed if is_away else pace.accepted)(virtual.clock())

        await asyncio.gather(*(send(True) for _ in range(25)))
        assert 55 < virtual.clock() < 70
        sent.clear()
        began = virtual.clock()
        await asyncio.gather(*(send(False) for _ in range(200)))
        assert sum(at < began + 8 for at in sent) < 40
        assert virtual.clock() - began < 15

    virtual.run(main())


def test_rates_are_shared_by_clients() -> None:
    """A part of the rate, and no more than was learned."""
    pace = Pace(100, clock=lambda: 0.0)
    pace.limit(25)
    assert pace.rate == 25
    pace.refused(0.0)
    learned = pace.rate
    pace.limit(100)
    assert pace.rate == learned < 25


class Jobs:
    """Two operations that share one limit of jobs, as far as is known."""

    def __init__(self) -> None:
        limit = JobLimit(virtual.clock)
        self.patterns, self.products = (Pace(100, jobs=limit, clock=virtual.clock) for _ in range(2))

    async def accept(self, pace: Pace) -> None:
        await pace.acquire()
        pace.accepted(virtual.clock())
        pace.began()
        pace.release()

    async def refuse(self, pace: Pace, times: int = 3) -> None:
        for _ in range(times):
            await asyncio.sleep(1.1)
            await asyncio.wait_for(pace.acquire(), 30)
            pace.refused(virtual.clock())
            pace.release()

    async def fill(self, patterns: int) -> None:
        """So many patterns run, and no more is accepted."""
        for _ in range(patterns):
            await self.accept(self.patterns)
        await self.refuse(self.patterns)


def test_limit_of_jobs_is_known_when_nothing_is_accepted() -> None:
    """Then a create waits until a job ends, and a product goes before a pattern; what is cancelled leaves no slot."""

    async def main() -> None:
        jobs = Jobs()
        await jobs.fill(4)
        assert jobs.patterns.jobs._most == 4
        order = []

        async def send(pace: Pace, name: str, stage: Stage, again: bool = False) -> None:
            await pace.acquire(stage, again=again)
            order.append(name)
            pace.release()

        tasks = [
            asyncio.create_task(send(jobs.patterns, "new", Stage.PATTERN)),
            asyncio.create_task(send(jobs.patterns, "never", Stage.PATTERN)),
            asyncio.create_task(send(jobs.patterns, "again", Stage.PATTERN, True)),
            asyncio.create_task(send(jobs.products, "product", Stage.PRODUCT)),
        ]
        await asyncio.sleep(20)
        assert order == []
        tasks[1].cancel()
        jobs.patterns.ended()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert order == ["product", "again", "new"]
        assert jobs.patterns.occupied == 3

    virtual.run(main())


def test_refusals_among_what_is_accepted_are_of_the_rate() -> None:
    async def main() -> None:
        jobs = Jobs()
        for _ in range(10):
            await jobs.refuse(jobs.patterns, 2)
            await jobs.accept(jobs.patterns)
        assert not jobs.patterns.jobs.is_known

    virtual.run(main())


def test_limit_that_rose_is_found_and_a_failed_trial_costs_one_refusal() -> None:
    async def main() -> None:
        jobs = Jobs()
        await jobs.fill(5)
        for _ in range(60):
            await asyncio.sleep(0.1)
            jobs.patterns.ended()
            await jobs.accept(jobs.patterns)
            while not jobs.patterns.is_full and jobs.patterns.running < 25:
                await jobs.accept(jobs.patterns)
        assert jobs.patterns.running > 20
        await jobs.refuse(jobs.patterns, 1)
        assert jobs.patterns.jobs._most == jobs.patterns.running

    virtual.run(main())
