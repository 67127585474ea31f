"""The engine against a service in memory: nothing is bought twice, nothing is lost, and every end has its word."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from patternmill.engine.engine import Step
from patternmill.engine.options import FailureLimit
from patternmill.errors import RowFailed
from patternmill.ledger.records import SpendingLimits
from patternmill.planning.items import Item
from patternmill.runs.run import Run
from patternmill.service import outcomes
from patternmill.service.jobs import Job
from patternmill.states import AttemptState, Outcome, RowStatus, Stage

from .fake_studio import ANSWER_LOST, Crash, Create, FakeStudioApi, Service, failed
from .workshop import Workshop, many, rows, until

#: A limit or a stop that is heard between the intent and its create.


def ignore(_: object) -> None:
    """Nothing happens."""


ONE = rows(("H-1", "herons"))
THREE = rows(("H-1", "herons"), ("H-2", "herons"), ("F-1", "ferns"))
ALL_THREE = ["F-1", "H-1", "H-2", "ferns", "herons"]


def test_every_row_gets_its_product(shop: Workshop, service: Service) -> None:
    """Rows with the same prompt share one pattern; each product is built on its own row's pattern."""
    ended = shop.run(THREE)
    assert ended.outcome is Outcome.COMPLETED
    assert sorted(service.bought) == ALL_THREE
    assert {sku: (row.pattern_id, row.product_id) for sku, row in ended.rows.items()} == {
        "H-1": ("pattern-of-herons", "product-of-H-1"),
        "H-2": ("pattern-of-herons", "product-of-H-2"),
        "F-1": ("pattern-of-ferns", "product-of-F-1"),
    }


def test_progress_adds_up(shop: Workshop) -> None:
    """The numbers of the screen are those of the run."""
    progress = shop.run(THREE).run.progress
    assert (progress.rows, progress.to_do, progress.ended) == (3, 3, 3)
    assert (progress.patterns, progress.products, progress.failed, progress.in_flight) == (2, 3, 0, 0)


def test_a_second_run_makes_no_create(shop: Workshop, service: Service) -> None:
    """Nor does it ask for anything."""
    shop.run(THREE)
    asked = (len(service.creates), len(service.follows))
    again = shop.run(THREE)
    assert (len(service.creates), len(service.follows)) == asked
    assert again.outcome is Outcome.COMPLETED
    assert again.run.progress.done_before == 3


def test_a_refused_row_stands_beside_the_others(shop: Workshop, service: Service) -> None:
    """It is counted as what it is, and asks for nothing."""
    ended = shop.run(ONE + "X-1,,Tote,X-1\n")
    assert ended.outcome is Outcome.COMPLETED_WITH_FAILURES
    assert ended.statuses == {"H-1": RowStatus.SUCCEEDED, "X-1": RowStatus.REFUSED}
    assert sorted(service.bought) == ["H-1", "herons"]


# -- crashes


@pytest.mark.parametrize("number", range(1, 6))
@pytest.mark.parametrize("moment", ["as the request arrives", "before the end is told"])
def test_a_crash_anywhere_costs_nothing(shop: Workshop, service: Service, number: int, moment: str) -> None:
    """The next run goes on under the same request IDs, and everything is bought once."""
    calls = 0

    def crash(_: object) -> None:
        nonlocal calls
        calls += 1
        if calls == number:
            raise Crash

    setattr(service, "heard" if moment.startswith("as") else "told", crash)
    shop.crash(THREE)
    before = dict(service.jobs)
    service.heard, service.told = ignore, ignore
    ended = shop.run(THREE)
    assert ended.outcome is Outcome.COMPLETED
    assert sorted(service.bought) == ALL_THREE
    assert before.items() <= service.jobs.items()


@pytest.mark.slow
def test_many_crashes_at_random_moments(shop: Workshop, service: Service) -> None:
    """Including crashes of the recovery itself: each item is bought once, with the same bytes each time."""
    chance = random.Random(7)
    catalog = many(8)

    def crash(_: object) -> None:
        if chance.random() < 0.15:
            raise Crash

    crashes = 0
    for _ in range(30):
        service.heard, service.told = crash, crash
        try:
            shop.crash(catalog, max_in_flight=4, chance=chance)
        except AssertionError:
            break
        crashes += 1
    shop.bury()
    service.heard, service.told = ignore, ignore
    ended = shop.run(catalog, max_in_flight=4)
    assert crashes >= 3
    assert ended.outcome is Outcome.COMPLETED
    assert len(service.bought) == len(set(service.bought)) == 16
    assert len({create.body for create in service.creates}) == len(service.jobs)


def test_an_answer_that_was_lost_is_asked_for_again(shop: Workshop, service: Service) -> None:
    """Same ID, same bytes; how old the request is is told, so that its fate is known to be open."""
    service.on_create["herons"] = [ANSWER_LOST]
    first = shop.run(ONE)
    assert first.statuses == {"H-1": RowStatus.IN_DOUBT}
    assert shop.state("herons") is AttemptState.INTENDED
    second = shop.run(ONE)
    assert second.outcome is Outcome.COMPLETED
    asked = [create for create in service.creates if create.name == "herons"]
    assert len(asked) == 2 and asked[0].body == asked[1].body
    assert asked[0].age is None and asked[1].age is not None
    assert sorted(service.bought) == ["H-1", "herons"]


def test_a_job_that_goes_on_is_asked_for_by_its_id(shop: Workshop, service: Service) -> None:
    """The next run re-attaches; nothing is created."""
    service.on_follow["herons"] = [outcomes.GaveUp("job-1", "not in time")]
    first = shop.run(ONE)
    assert (first.outcome, first.statuses) == (
        Outcome.COMPLETED_WITH_FAILURES,
        {"H-1": RowStatus.WAITING},
    )
    assert shop.state("herons") is AttemptState.ACCEPTED
    assert shop.run(ONE).outcome is Outcome.COMPLETED
    assert service.follows.count("job-1") == 2
    assert [create.name for create in service.creates] == ["herons", "H-1"]


def test_past_the_age_limit_nothing_is_sent(shop: Workshop, service: Service) -> None:
    """The service may have forgotten the ID: a person decides."""
    service.on_create["herons"] = [ANSWER_LOST]
    shop.run(ONE)
    ended = shop.run(ONE, in_doubt_limit=timedelta(0))
    assert ended.statuses == {"H-1": RowStatus.IN_DOUBT}
    assert len(service.creates) == 1


# -- failures


@pytest.mark.parametrize("name", ["herons", "H-1"])
def test_a_failed_job_gets_another_attempt(shop: Workshop, service: Service, name: str) -> None:
    """Under a new request ID, and only after the service itself said that it failed."""
    service.on_follow[name] = [failed()]
    ended = shop.run(ONE)
    assert ended.outcome is Outcome.COMPLETED
    assert [(one.attempt, one.state) for one in shop.attempts()[name]] == [
        (1, AttemptState.FAILED),
        (2, AttemptState.SUCCEEDED),
    ]
    assert service.bought.count(name) == 2
    assert ended.run.progress.tried_again == 1


@pytest.mark.parametrize("attempts", [1, 2, 3])
def test_attempts_have_an_end(shop: Workshop, service: Service, attempts: int) -> None:
    """As many as allowed; a second run makes none."""
    service.on_follow["herons"] = [failed() for _ in range(9)]
    for _ in range(2):
        ended = shop.run(ONE, attempts=attempts)
        assert ended.statuses == {"H-1": RowStatus.FAILED}
        assert (ended.rows["H-1"].error_code, ended.rows["H-1"].error) == ("pattern_failed", "the loom broke")
        assert service.bought == ["herons"] * attempts


def test_attempts_left_are_made_by_the_next_run(shop: Workshop, service: Service) -> None:
    """A limit that was raised counts for what failed before."""
    service.on_follow["herons"] = [failed()]
    assert shop.run(ONE, attempts=1).statuses == {"H-1": RowStatus.FAILED}
    assert shop.run(ONE, attempts=2).outcome is Outcome.COMPLETED


def test_a_reason_that_is_final_gets_no_other_attempt(shop: Workshop, service: Service) -> None:
    """Neither now nor in the next run."""
    service.on_follow["herons"] = [failed("Content refused: a trademark")]
    for _ in range(2):
        ended = shop.run(ONE, final_reasons=("content refused",))
        assert ended.rows["H-1"].error_code == "failed_for_good"
    assert service.bought == ["herons"]


def test_a_retry_gives_a_failed_item_its_attempts_again(shop: Workshop, service: Service) -> None:
    """It works however often it is asked for, and a paid pattern is never bought again."""
    service.on_follow["H-1"] = [failed() for _ in range(5)]
    for bought in (2, 4):
        ended = shop.run(ONE, retry=lambda row: True)
        assert ended.statuses == {"H-1": RowStatus.FAILED}
        assert service.bought.count("H-1") == bought
    assert shop.run(ONE, retry=lambda row: True).outcome is Outcome.COMPLETED
    assert service.bought.count("herons") == 1
    assert service.bought.count("H-1") == 6


@pytest.mark.parametrize(
    ("end", "state", "status", "outcome", "code"),
    [
        (
            outcomes.Refused("invalid", "no such thing"),
            AttemptState.REJECTED,
            RowStatus.FAILED,
            Outcome.COMPLETED_WITH_FAILURES,
            "invalid",
        ),
        (
            outcomes.Conflict("second_job", "two jobs"),
            AttemptState.HELD,
            RowStatus.HELD,
            Outcome.FAILED,
            "second_job",
        ),
        (
            outcomes.Unresolved("known_there", "409"),
            AttemptState.HELD,
            RowStatus.HELD,
            Outcome.COMPLETED_WITH_FAILURES,
            "known_there",
        ),
        (
            outcomes.Unresolved("still_500", "for ever", in_doubt=True),
            AttemptState.INTENDED,
            RowStatus.IN_DOUBT,
            Outcome.COMPLETED_WITH_FAILURES,
            "in_doubt",
        ),
        (
            outcomes.InDoubt("stopped"),
            AttemptState.INTENDED,
            RowStatus.IN_DOUBT,
            Outcome.COMPLETED_WITH_FAILURES,
            "in_doubt",
        ),
        (
            outcomes.Stopped("unauthorised", "401", in_doubt=True),
            AttemptState.INTENDED,
            RowStatus.IN_DOUBT,
            Outcome.FAILED,
            "in_doubt",
        ),
        (
            outcomes.Stopped("redirect", "to elsewhere", item_refused=True),
            AttemptState.REJECTED,
            RowStatus.FAILED,
            Outcome.FAILED,
            "redirect",
        ),
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize("name", ["herons", "H-1"])
def test_every_end_of_a_create_has_its_word(
    shop: Workshop,
    service: Service,
    name: str,
    end: outcomes.CreateEnd,
    state: AttemptState,
    status: RowStatus,
    outcome: Outcome,
    code: str,
) -> None:
    """In the ledger, in the row and in the outcome; and no new ID is made of it, now or in the next run."""
    service.on_create[name] = [end]
    ended = shop.run(ONE)
    assert (shop.state(name), ended.statuses["H-1"], ended.outcome) == (state, status, outcome)
    assert ended.rows["H-1"].error_code == code
    shop.run(ONE)
    assert len(shop.attempts()[name]) == 1
    assert service.bought.count(name) <= 1


@pytest.mark.parametrize(
    "end", [outcomes.NotBegun(), outcomes.Stopped("unauthorised", "401")], ids=lambda end: type(end).__name__
)
def test_what_was_certainly_not_executed_is_withdrawn(
    shop: Workshop, service: Service, end: outcomes.CreateEnd
) -> None:
    """It is not in doubt, holds no budget, and the next run sends it."""
    service.on_create["herons"] = [end]
    ended = shop.run(ONE, limits=SpendingLimits(patterns=1))
    assert shop.state("herons") is AttemptState.WITHDRAWN
    assert ended.statuses == {"H-1": RowStatus.NOT_STARTED}
    assert shop.run(ONE).outcome is Outcome.COMPLETED
    assert service.bought.count("herons") == 1


@pytest.mark.parametrize(
    ("end", "state", "status", "outcome"),
    [
        (
            outcomes.Unresolved("gone", "404"),
            AttemptState.HELD,
            RowStatus.HELD,
            Outcome.COMPLETED_WITH_FAILURES,
        ),
        (
            outcomes.Unresolved("odd", "a word", in_doubt=True),
            AttemptState.ACCEPTED,
            RowStatus.WAITING,
            Outcome.COMPLETED_WITH_FAILURES,
        ),
        (outcomes.Conflict("other_kind", "a mug"), AttemptState.HELD, RowStatus.HELD, Outcome.FAILED),
        (outcomes.Stopped("unauthorised", "401"), AttemptState.ACCEPTED, RowStatus.WAITING, Outcome.FAILED),
    ],
    ids=lambda value: type(value).__name__,
)
def test_every_end_of_a_job_has_its_word(
    shop: Workshop,
    service: Service,
    end: outcomes.JobEnd,
    state: AttemptState,
    status: RowStatus,
    outcome: Outcome,
) -> None:
    """A poll's trouble never makes a failure, nor another attempt."""
    service.on_follow["herons"] = [end]
    ended = shop.run(ONE)
    assert (shop.state("herons"), ended.statuses["H-1"], ended.outcome) == (state, status, outcome)
    assert service.bought == ["herons"]


def test_a_job_of_another_item_is_a_contradiction(shop: Workshop, service: Service) -> None:
    """The second request is held, nothing new is begun, and the first keeps its job."""
    catalog = rows(("H-1", "herons"), ("F-1", "ferns"), ("O-1", "owls"))
    theirs = outcomes.Accepted(Job("job-1", "pattern", "running", None, {}))
    service.on_create["ferns"] = [theirs]
    ended = shop.run(catalog, max_in_flight=1)
    assert shop.state("ferns") is AttemptState.HELD
    assert ended.statuses["F-1"] is RowStatus.HELD
    assert ended.rows["F-1"].error_code == "job_of_another_item"
    assert (ended.outcome, ended.statuses["O-1"]) == (Outcome.FAILED, RowStatus.NOT_STARTED)
    assert ended.statuses["H-1"] is RowStatus.SUCCEEDED


def test_too_many_failures_stop_new_items(shop: Workshop, service: Service) -> None:
    """What was paid for is finished; rows that were never reached read so."""
    for number in range(30):
        service.on_follow[f"prompt {number:03}"] = [failed()]
    ended = shop.run(many(30), max_in_flight=3, attempts=1, failure_limit=FailureLimit(count=4))
    assert ended.outcome is Outcome.FAILED
    assert "max-failures" in (ended.ending.record.reason or "")
    assert 5 <= len(service.bought) <= 7
    assert ended.counts[RowStatus.FAILED] == len(service.bought)
    assert ended.counts[RowStatus.NOT_STARTED] == 30 - len(service.bought)


# -- money


def test_a_limit_ends_the_run_and_raising_it_goes_on(shop: Workshop, service: Service) -> None:
    """Exactly what the limit allows is bought; products of patterns that are there are still built."""
    ended = shop.run(many(10), max_in_flight=3, limits=SpendingLimits(patterns=4))
    assert ended.outcome is Outcome.BUDGET_REACHED
    assert "--max-patterns" in (ended.ending.record.reason or "")
    assert ended.counts == {RowStatus.SUCCEEDED: 4, RowStatus.NOT_STARTED: 6}
    assert shop.run(many(10), limits=SpendingLimits(patterns=6)).outcome is Outcome.COMPLETED
    assert len(service.bought) == len(set(service.bought)) == 20


def test_a_budget_is_never_passed(shop: Workshop, service: Service) -> None:
    """Reserved with the intent, whatever is in flight at once, with attempts that fail."""
    for number in range(10):
        service.on_follow[f"prompt {number:03}"] = [failed()]
    prices: dict[str, Any] = {"pattern_price": 30, "product_price": 20}
    ended = shop.run(many(10), max_in_flight=6, limits=SpendingLimits(run_amount=300), **prices)
    patterns = sum(create.stage is Stage.PATTERN for create in service.creates)
    spent = 30 * patterns + 20 * (len(service.bought) - patterns)
    assert ended.outcome is Outcome.BUDGET_REACHED
    assert 0 < spent <= 300
    assert shop.run(many(10), **prices).outcome is Outcome.COMPLETED
    assert all(service.bought.count(f"S-{number:03}") == 1 for number in range(10))
    assert all(service.bought.count(f"prompt {number:03}") == 2 for number in range(10))


def test_a_limit_of_products_strands_nothing(shop: Workshop, service: Service) -> None:
    """Where products cannot be bought, patterns are not bought for nothing."""
    ended = shop.run(many(30), max_in_flight=3, limits=SpendingLimits(products=2))
    assert ended.outcome is Outcome.BUDGET_REACHED
    assert ended.counts[RowStatus.SUCCEEDED] == 2
    assert shop.stranded() == 0


# -- order and stopping


def test_products_go_before_patterns(shop: Workshop, service: Service) -> None:
    """With room for one, each row is finished before the next is begun."""
    shop.run(many(4), max_in_flight=1)
    assert service.bought == [
        name for number in range(4) for name in (f"prompt {number:03}", f"S-{number:03}")
    ]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_whatever_stops_a_run_strands_at_most_a_window(shop: Workshop, service: Service, seed: int) -> None:
    """Killed at random moments, one after the other, of unique and shared prompts, in one shard or several."""
    chance = random.Random(seed)
    window, shard = chance.choice([2, 3, 5]), chance.choice([8, 24])
    pairs = [(f"S-{n:02}", f"prompt {chance.randrange(n // 2 + 1) if seed % 2 else n}") for n in range(24)]
    prompts = [prompt for _, prompt in pairs]
    largest = max(prompts.count(prompt) for prompt in prompts)
    left = 0

    def crash(_: object) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            raise Crash

    service.told = crash
    for _ in range(3):
        left = chance.randrange(3, 14)
        with suppress(AssertionError):
            shop.crash(rows(*pairs), max_in_flight=window, shard_rows=shard, chance=chance)
        assert shop.stranded() <= max(window, largest)


def test_the_window_is_never_passed(shop: Workshop, service: Service) -> None:
    """No more jobs in flight than allowed, and all of them used."""
    most = 0

    async def watch(run: Run, api: FakeStudioApi) -> None:
        nonlocal most
        while run.progress.ended < 20:
            most = max(most, run.progress.in_flight)
            assert run.progress.in_flight <= 4
            await asyncio.sleep(0)

    shop.run(many(20), max_in_flight=4, shard_rows=7, watch=watch, chance=random.Random(1))
    assert most == 4


def test_a_stop_drains(shop: Workshop, service: Service) -> None:
    """No create is sent after it; the jobs that run are followed to their ends; the rest reads as it is."""

    async def stop(run: Run, api: FakeStudioApi) -> None:
        api.jobs_may_end.clear()
        await until(lambda: len(service.jobs) == 3)
        run.stop("a person pressed Ctrl-C")
        api.jobs_may_end.set()

    ended = shop.run(many(10), max_in_flight=3, watch=stop)
    assert ended.outcome is Outcome.CANCELLED
    assert len(service.creates) == 3
    assert ended.counts == {RowStatus.CANCELLED: 3, RowStatus.NOT_STARTED: 7}
    assert shop.run(many(10)).outcome is Outcome.COMPLETED
    assert len(service.bought) == len(set(service.bought)) == 20


def test_a_drain_has_an_end(shop: Workshop, service: Service) -> None:
    """Jobs that go on longer keep their IDs for the next run."""

    async def stop(run: Run, api: FakeStudioApi) -> None:
        api.jobs_may_end.clear()
        await until(lambda: len(service.jobs) == 2)
        run.stop("a person pressed Ctrl-C")

    ended = shop.run(many(2), watch=stop, drain=timedelta(milliseconds=30))
    assert (ended.outcome, ended.counts) == (Outcome.CANCELLED, {RowStatus.CANCELLED: 2})
    assert {one.state for these in shop.attempts().values() for one in these} == {AttemptState.ACCEPTED}
    assert shop.run(many(2)).outcome is Outcome.COMPLETED
    assert len(service.bought) == 4


def test_a_run_whose_rows_are_all_there_is_complete_though_it_was_stopped(shop: Workshop) -> None:
    """What was said on the way does not count against what is there."""

    async def stop(run: Run, api: FakeStudioApi) -> None:
        await until(lambda: run.progress.ended == 1)
        run.stop("too late")

    assert shop.run(ONE, watch=stop).outcome is Outcome.COMPLETED


# -- steps


def test_a_step_that_breaks_outside_of_the_engine_is_taken_without_it(
    shop: Workshop, service: Service
) -> None:
    """Prefect gone, before or after the work: everything is made, once."""

    def broken(run: Run) -> Step:
        async def step(item: Item) -> None:
            if item.stage is Stage.PRODUCT:
                await run.engine.make(item)
            raise ConnectionError("the server is gone")

        return step

    assert shop.run(THREE, step=broken).outcome is Outcome.COMPLETED
    assert sorted(service.bought) == ALL_THREE


def test_a_step_that_breaks_after_a_failed_retry_buys_nothing_more(shop: Workshop, service: Service) -> None:
    """The attempts that a retry gives are given once."""
    service.on_follow["herons"] = [failed() for _ in range(10)]
    shop.run(ONE)

    def broken(run: Run) -> Step:
        async def step(item: Item) -> None:
            try:
                await run.engine.make(item)
            except RowFailed as lost:
                raise ConnectionError("the server is gone") from lost

        return step

    shop.run(ONE, step=broken, retry=lambda row: True)
    assert service.bought == ["herons"] * 4


def test_a_shard_is_driven_once(shop: Workshop, service: Service) -> None:
    """A nested flow that is run again leaves it alone."""

    async def again(run: Run, api: FakeStudioApi) -> None:
        await until(lambda: run.progress.ended == 3)
        await run.engine.drive(run.engine.shard(1), run.engine.make)

    assert shop.run(THREE, watch=again).run.progress.ended == 3
    assert len(service.creates) == 5


def test_shards_hold_the_rows_that_need_work(shop: Workshop) -> None:
    """Cut by their size, named by what they hold, and counted when made."""
    shop.run(many(2))
    ended = shop.run(many(7), shard_rows=2)
    shards = ended.run.engine.shards
    assert [len(shard.rows) for shard in shards] == [2, 2, 1]
    assert shards[0].describe() == "rows 4-5 · S-002 … S-003"
    assert shards[2].describe() == "rows 8-8 · S-006"
    assert [ended.run.engine.made(shard) for shard in shards] == [2, 2, 1]


def test_rows_of_one_pattern_stay_together_and_those_that_have_it_go_first(shop: Workshop) -> None:
    """So that a stop finds few patterns without their products, in whatever shards the rows would have stood."""
    shop.run(rows(("C-1", "cranes")))
    four = rows(("H-1", "herons"), ("F-1", "ferns"), ("H-2", "herons"), ("C-2", "cranes"))
    shards = shop.run(four, shard_rows=2).run.engine.shards
    assert [[row.sku for row in shard.rows] for shard in shards] == [["C-2"], ["H-1", "H-2"], ["F-1"]]
    assert shards[1].describe() == "rows 2-4 · H-1 … H-2"


def test_more_rows_of_one_pattern_than_a_shard_holds_are_cut(shop: Workshop) -> None:
    """A page with all rows of a large catalog on one motif would not be usable."""
    same = rows(*((f"S-{number}", "herons") for number in range(5)))
    shards = shop.run(same, shard_rows=2).run.engine.shards
    assert [len(shard.rows) for shard in shards] == [2, 2, 1]


def test_records_of_a_run_say_what_it_was(shop: Workshop) -> None:
    """And a run that crashed is closed by the next one of its catalog."""
    service = shop.service

    def crash(_: Create) -> None:
        raise Crash

    service.heard = crash
    shop.crash(ONE)
    service.heard = lambda _: None
    ended = shop.run(ONE)
    with shop.ledger() as ledger:
        last, first = ledger.runs()
    assert last == ended.ending.record
    assert (first.outcome, first.ended_at is not None) == (Outcome.FAILED, True)
    assert "without closing" in (first.reason or "")
    assert replace(last, run_id=first.run_id).catalog == first.catalog == "spring"
