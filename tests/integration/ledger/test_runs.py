"""Whole runs over each database, on one machine and on several: everything is bought once, and dated by the ledger."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest
from pydantic import SecretStr

from patternmill.errors import ConfigurationError, LeaseLost
from patternmill.ledger.brake import Pause
from patternmill.ledger.postgres import PostgresDatabase
from patternmill.ledger.records import RunGroup, SpendingLimits
from patternmill.profiles import Profile
from patternmill.runs import lease
from patternmill.runs.machines import Execution, FollowedGroups, shares
from patternmill.runs.run import Run
from patternmill.service.studio_api import StudioApi
from patternmill.states import AttemptState, Outcome, RowStatus
from tests.hostile.in_process import Crash, Create, InProcessApi, Service, failed
from tests.unit.runs.workshop import Ended, Workshop, many, until

Work = Callable[[Run, FollowedGroups], Coroutine[Any, Any, None]]


class Machines(Workshop):
    """The run's own process, and other processes, each with its own client of the same service."""

    def drive(self, catalog: str, work: Work, **options: Any) -> Ended:
        async def main() -> Ended:
            _, run = await self.begin(catalog, **options)
            followed = await FollowedGroups.begin(run)
            await followed.look()
            await work(run, followed)
            await followed.look()
            ending = await run.end()
            return Ended(ending, self.results(ending), run)

        return asyncio.run(asyncio.wait_for(main(), 60))

    async def execution(self, run: Run, number: int) -> tuple[Execution, InProcessApi]:
        api = InProcessApi(self.service)
        execution = await Execution.begin(
            self.settings, run.record.run_id, number, lambda settings: cast(StudioApi, api)
        )
        assert execution is not None
        return execution, api

    async def drive_all(self, run: Run, followed: FollowedGroups) -> None:
        """Drive each group once it has a share, as the cluster does."""
        driving: dict[int, asyncio.Task[None]] = {}
        while left := [group for group in await followed.look() if group.ended_at is None]:
            for group in left:
                if group.share and group.number not in driving:
                    execution, _ = await self.execution(run, group.number)
                    driving[group.number] = asyncio.create_task(execution.drive())
            await asyncio.sleep(0.05)
        await asyncio.gather(*driving.values())


@pytest.fixture
def service() -> Service:
    return Service()


@pytest.fixture
def shop(tmp_path: Path, service: Service) -> Machines:
    return Machines(tmp_path / "home", service)


@pytest.fixture
def shop_over(url: str, tmp_path: Path, service: Service) -> Machines:
    """A shop over each database."""
    return Machines(tmp_path / "other-home", service, SecretStr(url))


@pytest.fixture(autouse=True)
def quick_beats(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "HEARTBEAT_INTERVAL", lease.HEARTBEAT_INTERVAL / 20)


def crash(_: object) -> None:
    raise Crash


def test_crashes_and_limits_buy_everything_once(shop_over: Machines, service: Service) -> None:
    """Crashes at random moments, then a limit, then the rest."""
    chance = random.Random(3)
    service.at_create = service.at_job_end = lambda it: crash(it) if chance.random() < 0.2 else None
    for _ in range(3):
        shop_over.crash(many(12), max_in_flight=4)
    service.at_create = service.at_job_end = lambda _: None
    limited = shop_over.run(many(12), max_in_flight=4, limits=SpendingLimits(items=6))
    assert limited.outcome is Outcome.BUDGET_REACHED
    assert limited.counts[RowStatus.SUCCEEDED] < 12
    assert shop_over.run(many(12)).outcome is Outcome.COMPLETED
    asked = len(service.creates)
    assert shop_over.run(many(12)).outcome is Outcome.COMPLETED
    assert len(service.creates) == asked
    assert len(service.bought) == len(set(service.bought)) == 24


def test_run_is_dated_by_its_ledger(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its beginning, its end and its ID are by the ledger's clock, whatever its machine's clock says."""
    measured = PostgresDatabase.time
    monkeypatch.setattr(PostgresDatabase, "time", lambda self: measured(self) + 48 * 3600)
    record = Workshop(tmp_path / "home", Service(), SecretStr(postgres_url)).run(many(1)).ending.record
    assert record.ended_at is not None
    for moment in (record.started_at, record.ended_at):
        assert abs(moment - datetime.now(UTC) - timedelta(hours=48)) < timedelta(minutes=5)
    assert record.run_id.startswith(f"{record.started_at:%Y%m%d-%H%M%S}")


# -- several machines


def test_groups_share_one_window(shop_over: Machines, service: Service) -> None:
    """Three machines with a window of five: never six jobs, those of an earlier run included.

    The group of these has a share from the beginning, and follows them before it begins anything.
    """
    running, counts = set[str](), list[int]()

    def create(create: Create) -> None:
        running.add(create.name)
        counts.append(len(running))

    service.at_create, service.at_job_end = create, crash
    catalog = many(41).splitlines(keepends=True)
    shop_over.crash("".join([catalog[0], *catalog[26:31]]), max_in_flight=5)
    service.at_job_end = running.discard

    async def work(run: Run, followed: FollowedGroups) -> None:
        assert [group.share for group in await followed.look()] == [0, 5, 0]
        await shop_over.drive_all(run, followed)
        assert (run.progress.ended, run.progress.failed) == (41, 0)

    ended = shop_over.drive("".join(catalog), work, max_in_flight=5)
    assert ended.outcome is Outcome.COMPLETED
    assert len(service.bought) == len(set(service.bought)) == 82
    assert max(counts) == 5


def test_shares_never_pass_the_window() -> None:
    """Whatever is begun is filled up first; more than the window may be under way since an earlier run."""
    for groups, more in (
        ([(20, 0), (20, 0), (20, 0)], {1: 20, 2: 10}),
        ([(20, 0), (20, 4), (3, 3)], {2: 16, 1: 7}),
        ([(20, 15), (20, 0), (20, 20)], {}),
    ):
        at_work = [RunGroup(number, *group, None, None, None) for number, group in enumerate(groups, start=1)]
        assert shares(at_work, 30) == more


def test_two_executions_at_once_buy_nothing_twice(shop_over: Machines, service: Service) -> None:
    """A frozen machine goes on after another one has taken over its group, and ends quietly."""

    async def work(run: Run, followed: FollowedGroups) -> None:
        older, its_api = await shop_over.execution(run, 1)
        its_api.jobs_may_end.clear()
        frozen = asyncio.create_task(older.drive())
        await until(lambda: len(service.creates) == 20)
        newer, _ = await shop_over.execution(run, 1)
        driving = asyncio.create_task(newer.drive())
        its_api.jobs_may_end.set()
        with pytest.raises(LeaseLost):
            await frozen
        await driving

    ended = shop_over.drive(many(20), work)
    assert ended.outcome is Outcome.COMPLETED
    assert len(service.bought) == len(set(service.bought)) == 40
    assert all(len(attempts) == 1 for attempts in shop_over.attempts().values())


def test_stop_reaches_all_groups(shop: Machines, service: Service) -> None:
    """What is in flight is followed for a while, and nothing new is begun; also by a group that had not begun."""

    async def work(run: Run, followed: FollowedGroups) -> None:
        driven, its_api = await shop.execution(run, 1)
        its_api.jobs_may_end.clear()
        driving = asyncio.create_task(driven.drive())
        await until(lambda: len(service.creates) == 5)
        run.stop("Enough.")
        await followed.look()
        await until(lambda: driven.engine.halt.is_total)
        its_api.jobs_may_end.set()
        late, _ = await shop.execution(run, 2)
        await asyncio.gather(driving, late.drive())

    ended = shop.drive(many(40), work, max_in_flight=5)
    assert ended.outcome is Outcome.CANCELLED
    assert len(service.creates) <= 10
    assert ended.counts[RowStatus.NOT_STARTED] >= 30


def test_failures_are_counted_over_all_groups(shop: Machines, service: Service) -> None:
    """Each group alone has too few of them to stop."""
    for number in (0, 1, 20, 21):
        service.on_follow[f"prompt {number:03}"] = [failed()]

    async def work(run: Run, followed: FollowedGroups) -> None:
        for number in (1, 2):
            execution, _ = await shop.execution(run, number)
            await execution.drive()
        assert not run.halt.reason
        for _ in range(2):
            await followed.look()
        late, _ = await shop.execution(run, 3)
        await late.drive()

    ended = shop.drive(many(41), work, most_failures=3, attempts=1)
    assert ended.outcome is Outcome.FAILED
    assert ended.counts[RowStatus.SUCCEEDED] == 36
    assert "--max-failures" in (ended.ending.record.reason or "")


def test_items_of_a_person_are_retried_once(shop: Machines, service: Service) -> None:
    """That is so however many executions it takes."""
    service.on_follow["prompt 000"] = [failed()] * 9
    assert shop.run(many(1), attempts=1).outcome is Outcome.COMPLETED_WITH_FAILURES

    async def work(run: Run, followed: FollowedGroups) -> None:
        for _ in range(3):
            execution, _ = await shop.execution(run, 1)
            execution.engine.halt.begin = lambda *_, **__: None  # type: ignore[method-assign]
            await execution.engine.drive()
            await execution._writer.close()

    shop.drive(many(1), work, attempts=1, retries=True)
    assert [attempt.state for attempt in shop.attempts()["prompt 000"]] == [AttemptState.FAILED] * 2


def test_execution_that_may_not_begin(shop: Machines, service: Service) -> None:
    """A machine with another service is refused; a run that has ended is driven by nobody."""

    async def work(run: Run, followed: FollowedGroups) -> None:
        elsewhere = shop.settings.at(Profile(url="http://127.0.0.1:8/v1", key=SecretStr("key")))
        with pytest.raises(ConfigurationError, match="and http://127\\.0\\.0\\.1:8/v1 is set"):
            await Execution.begin(elsewhere, run.record.run_id, 1)
        assert (await followed.look())[0].beat_at is None

    ended = shop.drive(many(1), work)
    assert ended.counts == {RowStatus.NOT_STARTED: 1} and not service.creates
    assert asyncio.run(Execution.begin(shop.settings, ended.ending.record.run_id, 1)) is None


def test_pause_waits_for_groups_on_other_machines(shop_over: Machines, service: Service) -> None:
    """It waits until a beat of each living execution has acknowledged it; one without beats counts as lost."""

    async def work(run: Run, followed: FollowedGroups) -> None:
        execution, api = await shop_over.execution(run, 1)
        frozen, _ = await shop_over.execution(run, 2)
        api.jobs_may_end.clear()
        driving = asyncio.create_task(execution.drive())
        await until(lambda: bool(service.creates))
        with shop_over.ledger() as ledger:
            ledger.database.execute("UPDATE run_groups SET beat_at = beat_at - 11 WHERE number = 2")
            _, count = ledger.brake.set(Pause("", "", "why", "anna"))
            while ledger.brake.holders_without(count):
                await asyncio.sleep(0.01)
            sent = len(service.creates)
            api.jobs_may_end.set()
            await driving
            await frozen.drive()
            assert len(service.creates) == sent

    assert shop_over.drive(many(41), work, max_in_flight=4).outcome is Outcome.PAUSED
