"""How fast requests leave, and when a job is asked about; all in virtual time."""

import asyncio
import random

import pytest

from patternmill.items import Stage
from patternmill.service.pacing import Bucket, Pace, Polling
from tests.virtual import play


class Limited:
    """A service that takes so many creates a second, and saves up as many."""

    def __init__(self, rate, retry_after=None):
        self.rate, self.retry_after, self.saved, self.at = rate, retry_after, rate, 0.0

    def takes(self):
        now = asyncio.get_running_loop().time()
        self.saved, self.at = min(self.rate, self.saved + (now - self.at) * self.rate), now
        self.saved -= (taken := self.saved >= 1)
        return taken


async def send(bucket, service, count):
    """Send creates until each is taken; return the seconds and how many were refused."""
    loop, refused = asyncio.get_running_loop(), 0

    async def one():
        nonlocal refused
        await bucket.turn()
        while True:
            sent_at = loop.time()
            await asyncio.sleep(0.05)
            if service.takes():
                return bucket.taken()
            refused += 1
            bucket.refused(sent_at)
            bucket.hold(service.retry_after or 0.0)
            await asyncio.sleep(service.retry_after or 0.5)
            await bucket.turn(0)

    began = loop.time()
    await asyncio.gather(*(one() for _ in range(count)))
    return loop.time() - began, refused


@pytest.mark.parametrize("retry_after", [None, 1.0])
@pytest.mark.parametrize("rate", [2.0, 6.0, 15.0, 60.0])
def test_an_untold_limit_is_found_and_used(rate, retry_after):
    count = int(rate * 100)
    seconds, refused = play(lambda: send(Bucket(20.0), Limited(rate, retry_after), count))
    assert seconds < 112 and refused < 80 + 0.03 * count


def test_without_a_limit_a_hundred_leave_in_three_seconds():
    seconds, refused = play(lambda: send(Bucket(20.0), Limited(1e6), 100))
    assert seconds < 3 and not refused


def test_creates_saved_up_during_a_pause_leave_at_once():
    async def main():
        bucket, loop = Bucket(20.0), asyncio.get_running_loop()
        await bucket.turn()
        bucket.hold(5.0)
        began = loop.time()
        await asyncio.gather(*(bucket.turn() for _ in range(20)))
        return loop.time() - began

    assert play(main) == pytest.approx(5.0, abs=0.01)


def test_a_resend_goes_before_what_is_new_and_operations_do_not_wait_for_each_other():
    async def main():
        pace, order = Pace(), []

        async def turn(name, stage, rank=1):
            await pace.creates[stage].turn(rank)
            order.append(name)

        pace.creates[Stage.PATTERN].hold(1.0)
        turns = [turn("new", Stage.PATTERN), turn("again", Stage.PATTERN, 0), turn("product", Stage.PRODUCT)]
        await asyncio.gather(*turns)
        return order

    assert play(main) == ["product", "again", "new"]


def test_who_is_cancelled_takes_no_turn():
    async def main():
        bucket = Bucket(1.0)
        bucket.hold(1.0)
        waiting = [asyncio.ensure_future(bucket.turn()) for _ in range(4)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        began = asyncio.get_running_loop().time()
        await asyncio.gather(*waiting[1:])
        return asyncio.get_running_loop().time() - began

    assert play(main) == pytest.approx(2.0, abs=0.01)


def followed(polling, seconds, accepted, asked):
    """Follow one job; count its polls, and return how late its end is seen."""

    async def follow():
        loop = asyncio.get_running_loop()
        await asyncio.sleep(accepted)
        began, scout = loop.time(), polling.begin()
        while (age := loop.time() - began) < seconds:
            await asyncio.sleep(polling.pause(age, scout=scout))
            asked.append(1)
        polling.learn(age)
        return age - seconds

    return follow()


def test_jobs_of_75_seconds_cost_few_polls_and_are_seen_soon():
    """The first import of all: nothing is known of any job yet."""
    dice, asked, polling = random.Random(1), [], Polling([])
    times = [(75 * dice.lognormvariate(0, 0.25), dice.uniform(0, 3)) for _ in range(300)]
    jobs = [followed(polling, seconds, accepted, asked) for seconds, accepted in times]

    async def main():
        return sorted(await asyncio.gather(*jobs))

    late = play(main)
    assert len(asked) / 300 <= 18  # the 300 products that follow take 5 each
    assert late[150] < 2.5 and late[270] < 6


def test_later_imports_know_how_long_jobs_take():
    dice, asked = random.Random(2), []
    polling = Polling([75 * dice.lognormvariate(0, 0.25) for _ in range(100)])
    jobs = [followed(polling, 75 * dice.lognormvariate(0, 0.25), index / 5, asked) for index in range(300)]

    async def main():
        return sorted(await asyncio.gather(*jobs))

    late = play(main)
    assert len(asked) / 300 <= 10 and late[150] < 2.0


def test_the_first_poll_does_not_ratchet():
    dice, asked, polling = random.Random(3), [], Polling([])

    async def main():
        return [await followed(polling, dice.gauss(90, 3), 0.0, asked) for _ in range(3000)]

    late = play(main)
    assert sum(late[-500:]) / 500 < 4 and len(asked) / 3000 < 5


def test_the_first_poll_follows_jobs_that_have_become_quicker():
    polling = Polling([90.0] * 100)
    for _ in range(2000):
        polling.learn(max(polling.pause(0.0), 60.0))  # seen at the first poll, and never before
    assert polling.pause(0.0) < 65


def test_a_quick_service_is_asked_at_once():
    polling = Polling([])
    assert polling.pause(0.0, scout=polling.begin()) == 0.5
    assert Polling([0.2] * 100).pause(0.0) == pytest.approx(0.18)


def test_durations_come_with_the_last_first():
    polling = Polling([10.0] * 100 + [900.0] * 100)
    assert polling.pause(0.0) == pytest.approx(9.0)
