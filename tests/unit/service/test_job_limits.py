"""Limits of jobs at once: how they are known, whose they are, and what waits for them; in virtual time."""

from __future__ import annotations

import asyncio

from patternmill.service.job_limits import Claim, JobLimit, JobLimits, Refusals
from patternmill.states import Stage
from tests.unit.service import virtual

PATTERNS, PRODUCTS = "patterns/create", "products/create"


def _limit(most: int) -> JobLimit:
    limit = JobLimit(virtual.clock)
    limit.find(most)
    return limit


async def _pass(seconds: float) -> None:
    await asyncio.sleep(seconds)


def test_refusals_at_one_number_of_jobs_are_of_a_limit_of_jobs() -> None:
    """Whatever the pace of them."""
    refusals, found = Refusals(), None
    for number in range(8):
        for running in (17, 18, 19):
            refusals.accepted(running)
        found = refusals.refused(3.0 * number**2, 20 + number % 2)
    assert found == 20


def test_refusals_where_as_many_jobs_are_accepted_are_of_the_rate() -> None:
    """As many jobs run whenever the rate is the same."""
    refusals = Refusals()
    for number in range(50):
        for running in (19, 20, 20, 21):
            refusals.accepted(running)
        assert refusals.refused(3.0 * number, 20) is None


def test_refusals_at_many_numbers_of_jobs_are_of_the_rate() -> None:
    """Though hardly anything is accepted at the higher ones."""
    refusals = Refusals()
    for number in range(50):
        refusals.accepted(number)
        assert refusals.refused(3.0 * number, number + 3) is None


def test_burst_of_refusals_counts_once() -> None:
    """A rate that is much too high is refused many times at about the same number of jobs."""
    refusals = Refusals()
    assert not any(refusals.refused(number / 100, 20) for number in range(90))


def test_refusal_lowers_the_limit_once_a_round() -> None:
    """To the jobs that ran."""

    async def main() -> None:
        limit = _limit(20)
        await _pass(1)
        sent_at = virtual.clock()
        await _pass(1)
        assert limit.refused(sent_at, 18)
        assert limit.refused(sent_at, 17)
        assert limit.most == 18

    virtual.run(main())


def test_refusal_with_few_jobs_is_not_of_the_limit() -> None:
    """Then the rate is too high, and with none something else is wrong."""

    async def main() -> None:
        limit = _limit(20)
        assert not limit.refused(1.0, 10)
        assert not _limit(1).refused(1.0, 0)
        assert limit.most == 20

    virtual.run(main())


def test_trial_that_is_refused_changes_nothing() -> None:
    """It costs one 429."""

    async def main() -> None:
        limit = _limit(20)
        await _pass(31)
        limit.accepted(19)
        assert limit.most == 21
        assert limit.refused(virtual.clock(), 20)
        assert limit.most == 20

    virtual.run(main())


def test_limit_found_too_low_is_left_within_a_minute() -> None:
    """After a trial that goes well, with each create that is accepted."""

    async def main() -> None:
        limit = _limit(5)
        while limit.most < 200:
            await _pass(0.1)
            limit.accepted(int(limit.most) - 1)
        assert virtual.clock() < 60

    virtual.run(main())


def test_creates_that_left_slots_free_try_no_more() -> None:
    """They prove nothing."""

    async def main() -> None:
        limit = _limit(20)
        for _ in range(500):
            await _pass(1)
            limit.accepted(5)
        assert limit.most == 20

    virtual.run(main())


async def _accepted(limits: JobLimits, operation: str, job_id: str) -> None:
    claim = await limits.claim(operation, Stage.PATTERN)
    limits.send(claim)
    limits.accepted(claim, job_id)
    limits.release(claim)


async def _refused(limits: JobLimits, operation: str) -> tuple[Claim, bool]:
    claim = await limits.claim(operation, Stage.PATTERN)
    limits.send(claim)
    refused = limits.refused(claim)
    limits.release(claim)
    return claim, refused


async def _found(jobs: int) -> JobLimits:
    """So many patterns run, and a limit of so many jobs is found."""
    limits = JobLimits(clock=virtual.clock)
    for number in range(jobs):
        await _accepted(limits, PATTERNS, f"pattern-{number}")
    claim, known = await _refused(limits, PATTERNS)
    assert not known
    assert limits.find(claim)
    return limits


def test_what_finishes_something_waits_for_its_slot_before_the_rest() -> None:
    """And what is sent again before what was not yet sent; cancelled waits leave no slot occupied."""

    async def main() -> None:
        limits, order = await _found(1), list[str]()

        async def send(name: str, stage: Stage, again: bool) -> None:
            operation = PRODUCTS if stage is Stage.PRODUCT else PATTERNS
            claim = await limits.claim(operation, stage, again=again)
            order.append(name)
            limits.release(claim)

        creates = [
            ("new", Stage.PATTERN, False),
            ("never", Stage.PRODUCT, False),
            ("again", Stage.PATTERN, True),
            ("product", Stage.PRODUCT, False),
        ]
        tasks = [asyncio.create_task(send(*one)) for one in creates]
        await _pass(1)
        assert order == []
        tasks[1].cancel()
        limits.ended("pattern-0")
        await asyncio.gather(*tasks, return_exceptions=True)
        assert order == ["product", "again", "new"]

    virtual.run(main())


def test_claim_cancelled_as_it_is_granted_is_passed_on() -> None:
    """The slot is free again."""

    async def main() -> None:
        limits = await _found(1)
        waiting = asyncio.create_task(limits.claim(PATTERNS, Stage.PATTERN))
        await _pass(1)
        limits.ended("pattern-0")
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        await asyncio.wait_for(limits.claim(PATTERNS, Stage.PATTERN), 1)

    virtual.run(main())


def test_claims_from_before_the_limit_was_found_may_not_be_sent() -> None:
    """They waited for their turn of the rate."""

    async def main() -> None:
        limits = JobLimits(clock=virtual.clock)
        early = await limits.claim(PATTERNS, Stage.PATTERN)
        await _accepted(limits, PATTERNS, "pattern")
        claim, _ = await _refused(limits, PATTERNS)
        assert limits.may_send(early)
        limits.find(claim)
        assert not limits.may_send(early)

    virtual.run(main())


def test_without_jobs_no_limit_of_them_is_found() -> None:
    """A service that refuses everything is asked at the lowest rate, not as fast as it answers."""

    async def main() -> None:
        limits = JobLimits(clock=virtual.clock)
        claim, _ = await _refused(limits, PATTERNS)
        assert not limits.find(claim)
        claims = [await limits.claim(PATTERNS, Stage.PATTERN) for _ in range(100)]
        assert all(limits.may_send(claim) for claim in claims)

    virtual.run(main())


def test_limit_of_one_operation_is_told_from_one_of_all() -> None:
    """Products are refused whenever three of them run, however many patterns do; patterns then have their own limit."""

    async def main() -> None:
        limits = await _found(10)
        for number in range(3):
            limits.ended(f"pattern-{number}")
            await _accepted(limits, PRODUCTS, f"product-{number}")
        for number in range(3):
            await _pass(1)
            limits.ended(f"pattern-{3 + number}")
            assert (await _refused(limits, PRODUCTS))[1]
            limits.ended(f"product-{number}")
            await _accepted(limits, PRODUCTS, f"product-{3 + number}")
        assert not limits._operations[PRODUCTS].shares
        assert limits._operations[PRODUCTS].limit.most == 3
        assert limits._operations[PATTERNS].shares

    virtual.run(main())


def test_jobs_of_an_earlier_run_count() -> None:
    """They occupy the service's slots though this run did not send them."""

    async def main() -> None:
        limits = JobLimits(clock=virtual.clock)
        limits.follow("earlier", PATTERNS)
        limits.follow("earlier", PATTERNS)
        claim, _ = await _refused(limits, PATTERNS)
        assert (claim.own, claim.shared) == (1, 1)

    virtual.run(main())


def test_one_create_goes_after_a_while_though_no_job_ends() -> None:
    """Jobs may hang, and the limit may be wrong: what is accepted then raises it."""

    async def main() -> None:
        limits = await _found(5)
        await _pass(1)
        waiting = [asyncio.create_task(limits.claim(PATTERNS, Stage.PATTERN)) for _ in range(3)]
        await _pass(0.9 * limits.LONGEST)
        assert not any(task.done() for task in waiting)
        await _pass(0.3 * limits.LONGEST)
        (claim,) = (task.result() for task in waiting if task.done())
        assert limits.may_send(claim)
        limits.send(claim)
        limits.accepted(claim, "unexpected")
        limits.release(claim)
        await _pass(0)
        assert limits._limit(claim.operation).most > 5
        for task in waiting:
            task.cancel()

    virtual.run(main())
