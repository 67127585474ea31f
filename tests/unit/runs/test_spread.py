"""A run in parts, without processes: what a part is assigned, finds again in the ledger, and leaves to the next one."""

from __future__ import annotations

import asyncio
import json
import os
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from patternmill.catalog.rows import Row
from patternmill.engine.progress import Halt, HaltReason, halts_from
from patternmill.errors import ConfigurationError, LeaseLost
from patternmill.identifiers import RunId
from patternmill.ledger.records import PartProgress, SpendingLimits
from patternmill.runs import spread
from patternmill.runs.assignment import Assignment, assignment, require_same_service
from patternmill.runs.part_worker import Part, PartWork
from patternmill.runs.request import ImportRequest
from patternmill.runs.run import Run, RunEnding
from patternmill.runs.spec import import_spec
from patternmill.runs.spread import PartGrant, PartSupervisor, WorkerHandle
from patternmill.service.studio_api import StudioApi
from patternmill.states import AttemptState, Outcome, PartState, RowStatus, Stage

from .fake_studio import FakeStudioApi, Service, failed
from .workshop import Workshop, many, rows

FOUR = rows(("H-1", "herons"), ("H-2", "herons"), ("F-1", "ferns"), ("O-1", "owls"))


class Nobody:
    """There is no worker: the run drives its parts itself."""

    async def start(self, given: PartGrant) -> WorkerHandle:
        raise OSError("no server")


@dataclass
class Spreads:
    """Spreads catalogs over parts that this process drives one beside the other."""

    shop: Workshop

    async def begun(self, catalog: str, *, retry: Any = lambda row: False, **options: Any) -> Run:
        _, run = await self.shop.begin(catalog, retry=retry, **options)
        run.spec = replace(run.spec, spread=2)
        return run

    def crew(self, run: Run, hands: Any = None) -> PartSupervisor:
        async def soon(seconds: float) -> None:
            await asyncio.sleep(0.005)

        return PartSupervisor(run, hands or Nobody(), lambda part: part.engine.drive(), sleep=soon)

    def __call__(self, catalog: str, **options: Any) -> RunEnding:
        async def main() -> RunEnding:
            run = await self.begun(catalog, **options)
            await self.crew(run).work(2)
            return await run.end()

        return asyncio.run(asyncio.wait_for(main(), 60))

    def said(self, run_id: RunId) -> list[PartProgress]:
        with self.shop.ledger() as ledger:
            return ledger.parts_of(run_id)


@pytest.fixture
def spreads(shop: Workshop, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Spreads:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        StudioApi,
        "from_settings",
        lambda settings: FakeStudioApi(shop.service, settings.max_in_flight),
    )
    for name, value in {
        "HOME": str(shop.home),
        "STUDIO_URL": "http://127.0.0.1:9/v1",
        "API_KEY": "key",
        # What a worker says for itself of its runs' terms does not hold.
        "ATTEMPTS": "9",
        "PATTERN_PRICE": "77",
        "MAX_IN_FLIGHT": "4000",
    }.items():
        monkeypatch.setenv(f"PATTERNMILL_{name}", value)
    return Spreads(shop)


def test_parts_make_everything_once(spreads: Spreads, service: Service) -> None:
    """Shared patterns too; the progress adds up, and every part has reported its end."""
    ending = spreads(many(9) + "Z-1,prompt 003,Tote,Z-1\n", max_in_flight=5)
    assert ending.rows == {RowStatus.SUCCEEDED: 10}
    assert len(service.bought) == len(set(service.bought)) == 9 + 10
    said = spreads.said(ending.record.run_id)[1:]
    assert [standing.state for standing in said] == [PartState.ENDED] * 2
    assert sum(standing.counts["products"] for standing in said) == 10
    assert sum(standing.counts["ended"] for standing in said) == 10


def test_part_has_its_share_and_the_runs_options(spreads: Spreads) -> None:
    """A share of the window and the rates; attempts, limits and prices as the run has them, not as its worker."""

    async def main() -> list[Assignment]:
        run = await spreads.begun(many(6), max_in_flight=7, attempts=3)
        crew = spreads.crew(run)
        await crew.work(2)
        assigned = [assignment(run.record.run_id, number, "staging") for number in (1, 2)]
        await run.end()
        return assigned

    first, second = asyncio.run(main())
    assert (first.settings.max_in_flight, second.settings.max_in_flight) == (4, 3)
    assert first.options.max_in_flight == 4
    assert first.settings.create_rate == 250.0 and first.settings.poll_rate == 150.0
    assert first.options.attempts == 3 and first.options.pattern_price == 0
    assert sorted(first.positions + second.positions) == list(range(6))
    assert first.settings.api_key == SecretStr("key")


def test_budget_buys_whole_rows_over_all_parts(spreads: Spreads, service: Service) -> None:
    """The plan is cut to it before it is cut into parts; a second attempt in one leaves the money of the others."""
    service.on_follow["prompt 003"] = [failed()]
    prices = {"pattern_price": 40, "product_price": 10}
    ending = spreads(many(60), max_in_flight=25, limits=SpendingLimits(run_amount=1000), **prices)
    assert ending.outcome is Outcome.BUDGET_REACHED
    assert "reaches to 20 of 60 rows" in (ending.record.reason or "")
    assert ending.rows == {RowStatus.SUCCEEDED: 19, RowStatus.FAILED: 1, RowStatus.NOT_STARTED: 40}
    assert len(service.bought) == 39 and spreads.shop.stranded() == 0


def test_failed_items_are_retried_once(spreads: Spreads, service: Service) -> None:
    """The retry reaches the part; a process that resumes the part does not repeat it."""
    service.on_follow["ferns"] = [failed() for _ in range(9)]
    assert spreads(FOUR, attempts=2).rows[RowStatus.FAILED] == 1
    bought = len(service.bought)

    def wished(row: Row) -> bool:
        return True

    async def main() -> RunEnding:
        run = await spreads.begun(FOUR, retry=wished, attempts=2)
        await spreads.crew(run).work(2)
        hold = run.writer.lease
        assert hold is not None
        grant = await run.writer.write(lambda ledger: ledger.assign_part(hold, 1))
        again = PartWork(assignment(run.record.run_id, 1, "staging"), grant)
        async with again as part:
            await part.engine.drive()
        return await run.end()

    assert asyncio.run(main()).rows[RowStatus.FAILED] == 1
    assert service.bought[bought:] == ["ferns", "ferns"]
    assert len(spreads.shop.attempts()["ferns"]) == 4
    assert spreads.shop.state("ferns") is AttemptState.FAILED


class Wrong:
    """A part goes to a process that is lost at once, and once more."""

    def __init__(self) -> None:
        self.given: list[PartGrant] = []

    async def start(self, given: PartGrant) -> Lost:
        self.given.append(given)
        return Lost()


class Lost:
    async def is_gone(self) -> bool:
        return True

    async def dismiss(self) -> None:
        """Nothing is left of it."""

    async def await_end(self) -> None:
        raise AssertionError("it never said that it is through")


def test_part_lost_three_times_is_driven_by_the_run(spreads: Spreads, service: Service) -> None:
    """It is assigned to three processes, each under a grant of its own."""
    hands = Wrong()
    now = 0.0

    def clock() -> float:
        nonlocal now
        now += 1.0
        return now

    async def main() -> RunEnding:
        run = await spreads.begun(many(2))
        crew = spreads.crew(run, hands)
        crew._clock = clock
        await crew.work(2)
        return await run.end()

    ending = asyncio.run(asyncio.wait_for(main(), 60))
    assert ending.outcome is Outcome.COMPLETED
    assert sorted((given.number, given.grant) for given in hands.given) == [
        (number, grant) for number in (1, 2) for grant in (1, 2, 3)
    ]
    assert [given.name for given in hands.given[:2]] == ["rows 2-2 · S-000", "rows 3-3 · S-001"]
    assert len(service.bought) == 4


class Lingering:
    """Processes that make everything, and never say that they are through: what shows them stands still."""

    def __init__(self) -> None:
        self._tasks: list[asyncio.Task[None]] = []
        self.dismissed = 0

    async def start(self, given: PartGrant) -> Lingering:
        self._tasks.append(asyncio.create_task(self._linger(given)))
        return self

    async def _linger(self, given: PartGrant) -> None:
        async with PartWork(assignment(given.run_id, given.number, given.environment), given.grant) as part:
            await part.engine.drive()
            await part.writer.write(part._report(PartState.BEGUN))
            await asyncio.sleep(3600)

    async def is_gone(self) -> bool:
        return False

    async def dismiss(self) -> None:
        self.dismissed += 1
        for task in self._tasks:
            task.cancel()

    async def await_end(self) -> None:
        raise AssertionError("it never said that it is through")


def test_part_without_a_final_report(
    spreads: Spreads, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its rows are all made: the run ends without its report, and buys nothing again."""
    monkeypatch.setattr(spread, "_LINGERING", timedelta(seconds=0.1))
    hands = Lingering()

    async def main() -> RunEnding:
        run = await spreads.begun(many(2))
        await spreads.crew(run, hands).work(1)
        return await run.end()

    assert asyncio.run(asyncio.wait_for(main(), 60)).outcome is Outcome.COMPLETED
    assert hands.dismissed == 1 and len(service.bought) == 4


def test_part_of_an_ended_or_unknown_run_is_not_begun(spreads: Spreads, service: Service) -> None:
    ending = spreads(many(2))
    bought = len(service.bought)
    run_id = ending.record.run_id

    async def late() -> None:
        async with PartWork(assignment(run_id, 1, "staging"), 1):
            pytest.fail("it was begun")

    with pytest.raises(LeaseLost):
        asyncio.run(late())
    with pytest.raises(ConfigurationError, match="knows no part 7"):
        assignment(run_id, 7, "staging")
    assert len(service.bought) == bought


def test_part_of_a_stopped_run_sends_nothing(spreads: Spreads, service: Service) -> None:
    """Stopped between the grant and the beginning: the part reads the halt before it sends anything."""

    async def main() -> Part:
        run = await spreads.begun(many(4))
        crew = spreads.crew(run)
        run.stop("Stopped by a test.")
        await crew._put_on_record([list(run.plan.to_do())])
        await crew._check()
        hold = run.writer.lease
        assert hold is not None
        grant = await run.writer.write(lambda ledger: ledger.assign_part(hold, 1))
        async with PartWork(assignment(run.record.run_id, 1, "staging"), grant) as part:
            await part.engine.drive()
        await run.end()
        return part

    part = asyncio.run(main())
    assert part.halt.reason is not None and part.halt.reason.outcome is Outcome.CANCELLED
    assert not service.bought


def test_worker_with_another_service_is_refused(spreads: Spreads, monkeypatch: pytest.MonkeyPatch) -> None:
    """Request IDs do not name the service they were sent to: so it is compared before anything is sent."""
    run_id = spreads(many(2)).record.run_id
    monkeypatch.setenv("PATTERNMILL_STUDIO_URL", "http://127.0.0.1:8/v1")
    with pytest.raises(ConfigurationError, match="same PATTERNMILL_STUDIO_URL"):
        require_same_service(assignment(run_id, 1, "staging"))


def test_worker_with_another_name_of_the_service_is_accepted(
    spreads: Spreads, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = spreads(many(2)).record.run_id
    url = os.environ["PATTERNMILL_STUDIO_URL"]
    monkeypatch.setenv("PATTERNMILL_STUDIO_URL", url.replace("127.0.0.1", "localhost") + "/")
    require_same_service(assignment(run_id, 1, "staging"))
    both = json.dumps([url, "https://studio.example/v1"])
    monkeypatch.setenv("PATTERNMILL_SAME_SERVICE", both)
    monkeypatch.setenv("PATTERNMILL_STUDIO_URL", "https://studio.example/v1")
    require_same_service(assignment(run_id, 1, "staging"))


def test_halts_are_read_back_from_the_ledger() -> None:
    """By stage, unchanged."""
    halt = Halt()
    halt.begin(HaltReason(Outcome.BUDGET_REACHED, "budget", "No more."), stages=(Stage.PATTERN,))
    halt.begin(HaltReason(Outcome.FAILED, "unauthorized", "401"), stages=(Stage.PRODUCT,))
    halt.begin(HaltReason(Outcome.BUDGET_REACHED, "second_attempt", "Not twice."), stages=())
    again = Halt()
    for stages, reason in halts_from(halt.on_record()):
        again.begin(reason, stages=stages)
    assert again.on_record() == halt.on_record() and again.reason == halt.reason


@pytest.mark.parametrize(
    ("ledger", "spread", "said"),
    [
        (None, 2, "PATTERNMILL_LEDGER_URL=postgresql"),
        ("sqlite:///ledger.sqlite3", 2, "PATTERNMILL_LEDGER_URL=postgresql"),
        ("postgresql://nobody@127.0.0.1:1/none", 9, "8 jobs in flight cannot be shared by 9"),
    ],
)
def test_unspreadable_request_is_refused(
    ledger: str | None, spread: int, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When it is made: nothing is opened, and nothing sent."""
    monkeypatch.setenv("PATTERNMILL_LEDGER_URL", ledger or "")
    with pytest.raises(ConfigurationError, match=said):
        import_spec(ImportRequest(file=tmp_path / "spring.csv", spread=spread, max_in_flight=8))


def test_missing_ledger_of_a_part_is_not_created(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATTERNMILL_HOME", str(home))
        with pytest.raises(ConfigurationError, match="knows no part"):
            assignment(RunId("20270101-000000-abcdef"), 1, "staging")
    assert not home.exists()
