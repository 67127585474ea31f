"""The window, the rates and the breaker, in virtual time."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable

import pytest

from patternmill.service.pacing import Breaker, BreakerState, RateLimiter, Window
from patternmill.states import Stage
from tests.unit.service import virtual


async def _settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def _window(ceiling: int) -> Window:
    return Window(ceiling, clock=virtual.clock)


def test_products_go_before_patterns_and_each_in_order() -> None:
    """First what finishes a row."""

    async def main() -> None:
        window, order = _window(1), []
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
        assert window._occupied == 0

    virtual.run(main())


def test_cancelled_waits_leak_no_slot() -> None:
    """Also when the slot was freed in the same moment."""

    async def main() -> None:
        window, chance, running, most = _window(3), random.Random(5), 0, 0

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
        assert window._occupied == 0
        await asyncio.wait_for(window.acquire(Stage.PATTERN), 1)

    virtual.run(main())


def test_slot_granted_while_cancelling_is_passed_on() -> None:
    """The race that leaks slots in other pools."""

    async def main() -> None:
        window = _window(1)
        await window.acquire(Stage.PATTERN)
        first = asyncio.create_task(window.acquire(Stage.PATTERN))
        second = asyncio.create_task(window.acquire(Stage.PATTERN))
        await _settle()
        window.release()
        first.cancel()
        await _settle()
        assert first.cancelled()
        assert second.done()
        assert window._occupied == 1

    virtual.run(main())


def test_window_halves_once_a_round_and_grows_back() -> None:
    """Many refusals of one round count once; the floor is one."""

    async def main() -> None:
        window = _window(100)
        for _ in range(50):
            window.overloaded(virtual.clock())
        assert window.limit == 50
        await asyncio.sleep(1)
        for _ in range(3):
            window.overloaded(virtual.clock())
        assert window.limit == 25
        for _ in range(20):
            await asyncio.sleep(1)
            for _ in range(3):
                window.overloaded(virtual.clock())
        assert window.limit == 1
        for _ in range(6000):
            window.accepted()
        assert window.limit == 100

    virtual.run(main())


def test_rare_refusals_do_not_shrink_the_window() -> None:
    """A steady one percent of faults costs no speed."""

    async def main() -> None:
        window = _window(100)
        for number in range(1000):
            await asyncio.sleep(0.1)
            if number % 50:
                window.accepted()
            else:
                window.overloaded(virtual.clock())
        assert window.limit == 100

    virtual.run(main())


class RateLimitedService:
    """Serves so many requests a second, with as many saved up, and refuses the rest."""

    def __init__(self, limit: float, noise: float = 0.0) -> None:
        self.limit, self.noise = limit, noise
        self.tokens, self.filled = limit, 0.0
        self.log: list[tuple[float, bool]] = []
        self.chance = random.Random(3)

    def serve(self) -> bool:
        now = virtual.clock()
        self.tokens = min(self.limit, self.tokens + (now - self.filled) * self.limit)
        self.filled = now
        served = self.tokens >= 1 and self.chance.random() >= self.noise
        self.tokens -= served
        self.log.append((now, served))
        return served


async def _ask_for_three_minutes(
    service: RateLimitedService, latency: float, pause: float
) -> tuple[float, float]:
    """The share of refusals, and the requests served a second, after the first half minute."""
    limiter, end = RateLimiter(200, clock=virtual.clock), 180.0

    async def worker() -> None:
        while virtual.clock() < end:
            await limiter.acquire()
            sent_at = virtual.clock()
            await asyncio.sleep(latency / 2)
            served = service.serve()
            await asyncio.sleep(latency / 2)
            if served:
                limiter.accepted(sent_at)
            else:
                limiter.limited(sent_at, pause)
                await asyncio.sleep(max(pause, 0.5))

    await asyncio.gather(*(worker() for _ in range(40)))
    late = [served for at, served in service.log if 30 < at <= end]
    return 1 - sum(late) / len(late), sum(late) / (end - 30)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("limit", "latency", "pause"), [(2, 0.05, 0.0), (5, 0.05, 1.0), (20, 0.5, 1.0), (30, 0.05, 0.0)]
)
def test_hidden_rate_limit_is_learned(limit: int, latency: float, pause: float) -> None:
    """Under five percent of refusals after half a minute, at no less than 85 percent of the limit."""
    share, served = virtual.run(_ask_for_three_minutes(RateLimitedService(limit), latency, pause))
    assert share < 0.05
    assert served > 0.85 * limit


@pytest.mark.slow
def test_random_refusals_do_not_lower_the_rate() -> None:
    """One percent of random 429 leaves a rate that suits a bulk run."""
    share, served = virtual.run(_ask_for_three_minutes(RateLimitedService(1e6, 0.01), 0.05, 0.0))
    assert share < 0.02
    assert served > 35


def test_retry_after_pauses_every_sender() -> None:
    """One 429 pauses all, and not longer than requested."""

    async def main() -> None:
        limiter = RateLimiter(50, clock=virtual.clock)
        assert await limiter.acquire()
        limiter.limited(virtual.clock(), 7.0)
        sent = []

        async def send() -> None:
            await limiter.acquire()
            sent.append(virtual.clock())

        await asyncio.gather(*(send() for _ in range(20)))
        assert 7.0 <= min(sent) < 7.1
        assert max(sent) < 8

    virtual.run(main())


def test_rate_holds_and_turns_are_first_come_first_served() -> None:
    """A burst of a twentieth of a second's worth, then the rate."""

    async def main() -> None:
        limiter, order = RateLimiter(20, clock=virtual.clock), []

        async def send(number: int) -> None:
            await limiter.acquire()
            order.append(number)

        await asyncio.gather(*(send(number) for number in range(200)))
        assert order == list(range(200))
        assert virtual.clock() == pytest.approx(199 / 20, rel=0.02)

    virtual.run(main())


def test_cancelled_and_closed_waits_take_no_turn() -> None:
    """Closing ends every wait with False."""

    async def main() -> None:
        limiter = RateLimiter(1, clock=virtual.clock)
        await limiter.acquire()
        tasks = [asyncio.create_task(limiter.acquire()) for _ in range(4)]
        await asyncio.sleep(0.1)
        tasks[0].cancel()
        await asyncio.sleep(1.0)
        assert [task.done() for task in tasks] == [True, True, False, False]
        limiter.close()
        assert await tasks[2] is False
        assert await tasks[3] is False
        assert await limiter.acquire() is False

    virtual.run(main())


def _breaker(**options: float) -> Breaker:
    return Breaker(failures=3, clock=virtual.clock, **options)


def test_repeated_failures_open_the_breaker_and_send_one_probe() -> None:
    """Nine of ten wait; when the probe succeeds, all go."""

    async def main() -> None:
        breaker = _breaker()
        for _ in range(3):
            assert await breaker.ready()
            breaker.failed()
        assert breaker.state is BreakerState.OPEN
        out: list[float] = []

        async def item() -> None:
            assert await breaker.ready()
            out.append(virtual.clock())

        items = [asyncio.create_task(item()) for _ in range(10)]
        await asyncio.sleep(1.5)
        assert len(out) == 1
        assert breaker.state is BreakerState.PROBING
        breaker.failed()
        await asyncio.sleep(1.5)
        assert len(out) == 1
        await asyncio.sleep(1.0)
        assert len(out) == 2
        breaker.succeeded()
        await asyncio.gather(*items)
        assert breaker.state is BreakerState.CLOSED
        assert virtual.clock() < 5

    virtual.run(main())


def test_successful_poll_closes_the_breaker() -> None:
    """Polls probe the service while creates wait."""

    async def main() -> None:
        breaker = _breaker(first_pause=30.0)
        for _ in range(3):
            breaker.failed()
        waiting = asyncio.create_task(breaker.ready())
        await asyncio.sleep(1)
        breaker.succeeded()
        assert await waiting
        assert virtual.clock() < 2

    virtual.run(main())


def test_lost_probe_does_not_block_the_run() -> None:
    """Its sender may have been cancelled."""

    async def main() -> None:
        breaker = _breaker()
        for _ in range(3):
            breaker.failed()
        assert await breaker.ready()
        assert await breaker.ready()
        assert virtual.clock() < 40

    virtual.run(main())


def _ends(wait: Callable[[Breaker], Awaitable[None]]) -> bool:
    async def main() -> bool:
        breaker = _breaker(patience=60.0)
        for _ in range(3):
            breaker.failed()
        await wait(breaker)
        return await breaker.ready()

    return virtual.run(main())


def test_service_unavailable_for_too_long_stops_the_run() -> None:

    async def too_long(breaker: Breaker) -> None:
        while not breaker.hopeless:
            assert await breaker.ready() or breaker.hopeless
            breaker.failed()

    assert _ends(too_long) is False


def test_single_failures_do_not_open_the_breaker() -> None:
    """Only failures in a row count."""

    async def main() -> None:
        breaker = _breaker()
        for _ in range(50):
            breaker.failed()
            breaker.failed()
            breaker.succeeded()
        assert breaker.state is BreakerState.CLOSED

    virtual.run(main())
