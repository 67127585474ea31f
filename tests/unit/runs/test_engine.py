"""The engine against a service in memory: nothing is bought twice, nothing is lost, and every end has its word."""

from __future__ import annotations

import asyncio
import itertools
from datetime import timedelta
from typing import Any

import pytest

from patternmill.engine.engine import Make
from patternmill.engine.groups import Group
from patternmill.planning.items import Item
from patternmill.runs.run import Run
from patternmill.service import outcomes
from patternmill.states import AttemptState, Outcome, RowStatus
from tests.hostile.in_process import InProcessApi, Service, failed

from .workshop import Workshop, many, rows, until

ONE = rows(("H-1", "herons"))
THREE = rows(("H-1", "herons"), ("H-2", "herons"), ("F-1", "ferns"))
ALL_THREE = ["F-1", "H-1", "H-2", "ferns", "herons"]


def test_every_row_gets_its_product(shop: Workshop, service: Service) -> None:
    """Rows with the same prompt share one pattern; each product is built on its own row's pattern. Then nothing is."""
    ended = shop.run(THREE)
    progress = ended.run.progress
    assert ended.outcome is Outcome.COMPLETED
    assert (progress.to_do, progress.ended) == (3, 3)
    assert (dict(progress.made), progress.failed, progress.in_flight) == ({"pattern": 2, "product": 3}, 0, 0)
    assert sorted(service.bought) == ALL_THREE
    ids = {sku: (row.pattern_id, row.product_id) for sku, row in ended.rows.items()}
    prompts = {"H-1": "herons", "H-2": "herons", "F-1": "ferns"}
    assert ids == {sku: (service.result_of(its), service.result_of(sku)) for sku, its in prompts.items()}
    asked = (len(service.creates), len(service.follows))
    again = shop.run(THREE)
    assert (len(service.creates), len(service.follows)) == asked
    assert (again.outcome, again.run.progress.done_before) == (Outcome.COMPLETED, 3)


# -- crashes


def test_crashed_run_is_closed_by_the_next_one(shop: Workshop, service: Service) -> None:
    """As it ended with its last activity: nobody knows how long later that was."""

    shop.crash_at(1, ONE)
    ended = shop.run(ONE)
    with shop.ledger() as ledger:
        last, closed = ledger.runs.find()
        assert last == ended.ending.record
        assert (closed.outcome, closed.catalog) == (Outcome.FAILED, "spring")
        assert "without closing" in (closed.reason or "")
        assert closed.ended_at == ledger.runs.last_activity(closed.run_id)
        assert closed.ended_at is not None and closed.ended_at >= closed.started_at


# -- failures


@pytest.mark.parametrize("reason", ["the loom broke", "Content refused: a trademark"])
def test_attempts_are_limited(shop: Workshop, service: Service, reason: str) -> None:
    """There is one attempt where the reason is final; a second run makes no more."""
    service.on_follow["herons"] = [failed(reason) for _ in range(9)]
    code, count = ("failed_for_good", 1) if "Content" in reason else ("pattern_failed", 3)
    for _ in range(2):
        row = shop.run(ONE, attempts=3, final_reasons=("content refused",)).rows["H-1"]
        assert (row.status, row.error_code, row.error) == (RowStatus.FAILED, code, reason)
        assert service.bought == ["herons"] * count


def test_retry_renews_the_attempts_of_a_failed_item(shop: Workshop, service: Service) -> None:
    """However often it is repeated, and a paid pattern is never bought again."""
    service.on_follow["H-1"] = [failed() for _ in range(5)]
    for bought in (2, 4):
        ended = shop.run(ONE, retries=True)
        assert ended.statuses == {"H-1": RowStatus.FAILED}
        assert service.bought.count("H-1") == bought
    assert shop.run(ONE, retries=True).outcome is Outcome.COMPLETED
    assert service.bought.count("herons") == 1
    assert service.bought.count("H-1") == 6


#: The kind of request and the item, the state that a refusal leaves it in (none: as it was), the code, and whether the
#: run stops | the attempt's state, the row's status and code, and the run's outcome.
ENDS = """
create herons rejected invalid      -    | rejected failed   invalid             CompletedWithFailures
create H-1    rejected redirect     stop | rejected failed   redirect            Failed
create herons held     second_job   stop | held     held     second_job          Failed
create H-1    held     known_there  -    | held     held     known_there         CompletedWithFailures
create herons -        still_500    -    | intended in_doubt in_doubt            CompletedWithFailures
create H-1    -        unauthorised stop | intended in_doubt in_doubt            Failed
job    herons held     gone         -    | held     held     gone                CompletedWithFailures
job    herons -        odd          -    | accepted waiting  gave_up_waiting     CompletedWithFailures
job    herons held     other_kind   stop | held     held     other_kind          Failed
job    herons -        unauthorised stop | accepted waiting  gave_up_waiting     Failed
"""


@pytest.mark.parametrize("line", ENDS.strip().splitlines())
def test_every_end(shop: Workshop, service: Service, line: str) -> None:
    """Its state in the ledger, the row and the outcome; and no new ID is made of it, now or in the next run."""
    given, expected = (part.split() for part in line.split("|"))
    of, name, left, code, stops = given
    state = None if left == "-" else AttemptState(left)
    scripts: Any = service.on_create if of == "create" else service.on_follow
    scripts[name] = [outcomes.Refusal(state, code, "so it is", stops=stops == "stop")]
    ended = shop.run(ONE)
    row = ended.rows["H-1"]
    assert [shop.state(name), row.status, row.error_code, ended.outcome] == expected
    shop.run(ONE)
    assert len(shop.attempts()[name]) == 1
    assert service.bought.count(name) <= 1


def test_too_many_failures_halt_new_items(shop: Workshop, service: Service) -> None:
    """Paid items are finished; rows that were never reached are not_started."""
    for number in range(30):
        service.on_follow[f"prompt {number:03}"] = [failed()]
    ended = shop.run(many(30), max_in_flight=3, attempts=1, most_failures=4)
    assert ended.outcome is Outcome.FAILED
    assert "max-failures" in (ended.ending.record.reason or "")
    assert 5 <= len(service.bought) <= 7
    assert ended.counts[RowStatus.FAILED] == len(service.bought)
    assert ended.counts[RowStatus.NOT_STARTED] == 30 - len(service.bought)


# -- order and stopping


def test_stop_drains_until_a_deadline(shop: Workshop, service: Service) -> None:
    """No create is sent after it; jobs that go on longer keep their IDs for the next run, which makes the rest."""

    async def stop(run: Run, api: InProcessApi) -> None:
        api.jobs_may_end.clear()
        await until(lambda: len(service.jobs) == 3)
        run.stop("a person pressed Ctrl-C")

    ended = shop.run(many(10), watch=stop, max_in_flight=3, drain=timedelta(milliseconds=30))
    assert (ended.outcome, len(service.creates)) == (Outcome.CANCELLED, 3)
    assert ended.counts == {RowStatus.CANCELLED: 3, RowStatus.NOT_STARTED: 7}
    attempts = [attempt for attempts in shop.attempts().values() for attempt in attempts]
    assert [attempt.state for attempt in attempts] == [AttemptState.ACCEPTED] * 3
    assert shop.run(many(10)).outcome is Outcome.COMPLETED
    assert len(service.bought) == len(set(service.bought)) == 20


def test_paused_run_begins_nothing_new(shop: Workshop, service: Service) -> None:
    """What is in flight is finished, also by attempts that were begun; then everything goes on."""

    async def pause(run: Run, api: InProcessApi) -> None:
        api.jobs_may_end.clear()
        await until(lambda: len(service.jobs) == 3)
        run.engine.pause(True)
        api.jobs_may_end.set()
        await until(lambda: len(service.follows) == 3 and not run.progress.in_flight)
        for _ in range(50):
            await asyncio.sleep(0)
        assert (len(service.creates), run.engine.is_paused) == (3, True)
        run.engine.pause(False)

    ended = shop.run(many(10), max_in_flight=3, watch=pause)
    assert ended.outcome is Outcome.COMPLETED
    assert len(service.bought) == len(set(service.bought)) == 20


# -- tasks that make the items, and their loss


class Cancelled(BaseException):
    """What a scheduler raises in a task that it ends."""


def losing(run: Run, when: str) -> Make:
    """Return a task that is lost for every other item: before, while or after it is made."""
    count = itertools.count()

    async def make(item: Item) -> None:
        is_lost = next(count) % 2 == 0
        if is_lost and when == "before":
            raise Cancelled
        making = asyncio.ensure_future(run.engine.make(item))
        if is_lost and when == "while":
            while not (making.done() or await run.engine._attempts.is_open(item)):
                await asyncio.sleep(0)
            making.cancel()
        await making
        if is_lost:
            raise Cancelled

    return make


@pytest.mark.parametrize("when", ["while", "after"])
def test_item_of_a_lost_task_is_followed(shop: Workshop, service: Service, when: str) -> None:
    """Everything is made, once."""
    ended = shop.run(THREE, driving=lambda run: run.engine.drive(losing(run, when)))
    assert (ended.outcome, ended.run.progress.in_flight) == (Outcome.COMPLETED, 0)
    assert sorted(service.bought) == ALL_THREE


def test_item_whose_task_never_began_is_not_started(shop: Workshop, service: Service) -> None:
    """Nothing is bought for it, the run says why, and the next one makes it."""
    ended = shop.run(THREE, driving=lambda run: run.engine.drive(losing(run, "before")))
    assert (ended.outcome, ended.counts[RowStatus.NOT_STARTED]) == (Outcome.FAILED, 2)
    assert "was cancelled or refused by Prefect (Cancelled)" in (ended.ending.record.reason or "")
    before = len(service.bought)
    assert shop.run(THREE).outcome is Outcome.COMPLETED
    assert before < len(service.bought) == len(ALL_THREE)


@pytest.mark.parametrize("loses", ["before", "after"])
def test_rows_of_a_lost_group_task_are_followed(shop: Workshop, service: Service, loses: str) -> None:
    """What it had begun is made; a group that it never drove is left to the next run. No item has a task."""

    async def in_groups(run: Run) -> None:
        async def make_group(group: Group) -> None:
            if group.number == 2 and loses == "before":
                raise Cancelled
            driving = asyncio.ensure_future(run.engine.drive_group(group))
            if group.number == 2:
                await until(lambda: len(run.engine._rows.get(2, ())) >= 3)
                driving.cancel()
            await driving

        await run.engine.drive(lambda item: pytest.fail("no item is shared by groups"), make_group)
        assert len(service.bought) == 80 + 2 * len(run.engine._rows.get(2, ()))

    assert shop.run(many(60), driving=in_groups, max_in_flight=5).outcome is Outcome.FAILED
    assert shop.run(many(60)).outcome is Outcome.COMPLETED
    assert len(service.bought) == len(set(service.bought)) == 120


def test_failures_of_a_group(shop: Workshop, service: Service) -> None:
    """A pattern's failure is that of each row that shares it."""
    service.on_follow["herons"].extend(failed() for _ in range(2))

    async def driven(run: Run) -> None:
        await run.engine.drive()
        (group,) = run.engine.groups
        assert run.engine.made(group) == 1
        failures = run.engine.failures(group)
        assert [row.sku for row, _ in failures] == ["H-1", "H-2"]
        assert {failure.code for _, failure in failures} == {"pattern_failed"}

    shop.run(THREE, driving=driven)


def test_rows_whose_pattern_exists_go_first(shop: Workshop, service: Service) -> None:
    """This is so that a stop leaves few patterns without their products."""
    shop.run(rows(("C-1", "cranes")))
    before = len(service.creates)
    more = [(f"F-{number:02}", f"fern {number}") for number in range(20)]
    shop.run(rows(*more, ("C-2", "cranes")), max_in_flight=1)
    assert service.creates[before].name == "C-2"
