"""What is submitted to a cluster, and when: a group once it has a share, and again where its task did nothing."""

from __future__ import annotations

import asyncio
from collections import Counter
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from patternmill.runs.machines import Execution, FollowedGroups
from patternmill.service.studio_api import StudioApi
from patternmill.states import Outcome, RowStatus
from tasks import machines
from tests.hostile.in_process import InProcessApi, Service
from tests.unit.runs.workshop import Ended, Workshop, many


@dataclass
class Cluster:
    """Drives in this process what is submitted, but for the first tasks, which it loses."""

    shop: Workshop
    loses: int = 0
    status: str = "running"
    numbers: list[int] = field(default_factory=list)
    released: int = 0

    def __post_init__(self) -> None:
        self._loop = asyncio.get_running_loop()

    @property
    def client(self) -> Cluster:
        return self

    def submit(self, task: object, parameters: dict[str, Any]) -> Submitted:
        self.numbers.append(parameters["number"])
        if len(self.numbers) > self.loses:
            return Submitted(self, asyncio.run_coroutine_threadsafe(self._drive(**parameters), self._loop))
        lost: Future[None] = Future()
        lost.set_result(None)
        return Submitted(self, lost)

    async def _drive(self, run_id: str, number: int, **_: object) -> None:
        api = InProcessApi(self.shop.service)
        begun = await Execution.begin(
            self.shop.settings, cast(Any, run_id), number, lambda settings: cast(StudioApi, api)
        )
        assert begun is not None
        await begun.drive()


@dataclass
class Submitted:
    """A future of Prefect's, and Dask's in it."""

    cluster: Cluster
    task: Future[None]

    @property
    def wrapped_future(self) -> Submitted:
        return self

    def done(self) -> bool:
        return self.task.done()

    def release(self) -> None:
        self.cluster.released += 1


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workshop:
    monkeypatch.setattr(machines, "_LOOK_SECONDS", 0.01)
    monkeypatch.setattr(machines, "_AGAIN_AFTER", 0.05)
    return Workshop(tmp_path / "home", Service())


def drive(shop: Workshop, **cluster: Any) -> tuple[Ended, Cluster]:
    async def main() -> tuple[Ended, Cluster]:
        _, run = await shop.begin(many(60), max_in_flight=25)
        runner = Cluster(shop, **cluster)
        await machines._Submitted(run, runner, None).follow(await FollowedGroups.begin(run))
        ending = await run.end()
        return Ended(ending, shop.results(ending), run), runner

    return asyncio.run(asyncio.wait_for(main(), 30))


def test_group_whose_task_did_nothing_is_submitted_again(shop: Workshop) -> None:
    """The ledger says what has ended, not the future; and Dask keeps none of them."""
    ended, cluster = drive(shop, loses=2)
    assert ended.outcome is Outcome.COMPLETED
    assert cluster.numbers[:2] == [1, 2], "the third group has no share yet"
    times = Counter(cluster.numbers)
    assert times.keys() == {1, 2, 3}
    assert times[1] > 1 and times[2] > 1, "their first tasks did nothing"
    assert cluster.released >= 2, "the futures of the tasks that did nothing"
    assert len(set(shop.service.bought)) == len(shop.service.bought) == 120


@pytest.mark.parametrize("cluster", [{"status": "closed"}, {"loses": 1000}])
def test_run_without_machines_ends(
    shop: Workshop, cluster: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Because its scheduler is gone, or because nobody drives anything for too long."""
    monkeypatch.setattr(machines, "_PATIENCE", 0.3)
    ended, _ = drive(shop, **cluster)
    assert (ended.outcome, ended.counts) == (Outcome.FAILED, {RowStatus.NOT_STARTED: 60})
    assert "No machine drives the 3 groups of rows left." in (ended.ending.record.reason or "")
