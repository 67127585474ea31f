"""The brake: once `pause` has returned nothing is created by anybody, what runs is followed, and a run says why."""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from pydantic import SecretStr

from patternmill.errors import ConfigurationError
from patternmill.identifiers import RunId
from patternmill.ledger.brake import Brake, Pause
from patternmill.ledger.ledger import open_ledger
from patternmill.ledger.records import Lease
from patternmill.runs import lease
from patternmill.runs.lease import pause, unpause
from patternmill.runs.run import Run
from patternmill.settings import Settings
from patternmill.states import AttemptState, Outcome, RowStatus
from tests.hostile.in_process import ANSWER_LOST, Crash, Create, Service
from tests.integrity import problems

from .workshop import Workshop, drive, many, until

BY = {"reason": "wrong prices in the feed", "who": "anna"}
EVERYTHING = Pause("", "", **BY)


@pytest.fixture(autouse=True)
def quick_beats(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "HEARTBEAT_INTERVAL", timedelta(milliseconds=20))


class Braked:
    """A pause that another thread sets at a moment of a run, as another process would."""

    def __init__(self, settings: Settings, service: Service) -> None:
        self.awaited: list[str] = []
        #: The number of creates at the service when the pause was set, and when it had returned.
        self.before = self.after = -1
        self._settings, self._service = settings, service
        self._thread = threading.Thread(target=self._pause)

    def set(self) -> None:
        self._thread.start()

    def _pause(self) -> None:
        self.before = len(self._service.creates)
        pause(self._settings, EVERYTHING, self.awaited.extend)
        self.after = len(self._service.creates)

    @property
    def has_returned(self) -> bool:
        return self._thread.ident is not None and not self._thread.is_alive()


def test_pause_in_a_run(shop: Workshop, service: Service) -> None:
    """What is out is answered first, jobs are followed to their ends, and the next run after it makes the rest."""
    braked = Braked(shop.settings, service)
    service.on_create["prompt 001"] = [ANSWER_LOST]

    async def at_create(create: Create) -> None:
        """Set the brake while a create is out: nobody is let know until it is answered, however often the run beats."""
        if create.name == "prompt 005":
            braked.set()
            await until(lambda: bool(braked.awaited))
            for _ in range(5):
                await asyncio.sleep(0.02)
                assert not braked.has_returned

    service.at_create = at_create

    async def main() -> None:
        api, run = await shop.begin(many(40), max_in_flight=4)
        api.jobs_may_end.clear()
        driving = asyncio.create_task(drive(run))
        await until(lambda: len(service.creates) == 4)
        api.jobs_may_end.set()
        await until(lambda: braked.has_returned)
        await driving
        ending = await run.end()
        assert ending.outcome is Outcome.PAUSED
        reason = ending.record.reason or ""
        assert re.match(r"Paused \(everything\) since .* by anna: wrong prices in the feed\.", reason)
        assert "`patternmill unpause` lifts it" in reason
        left = {RowStatus.CANCELLED, RowStatus.IN_DOUBT, RowStatus.NOT_STARTED}
        assert set(ending.rows) <= {RowStatus.SUCCEEDED, *left}

    asyncio.run(asyncio.wait_for(main(), 120))
    assert braked.awaited and "of 'spring' (staging)" in braked.awaited[0]
    assert braked.before <= braked.after == len(service.creates) < 40
    states = {attempt.state for attempts in shop.attempts().values() for attempt in attempts}
    assert AttemptState.ACCEPTED not in states, "each job was followed to its end"
    unpause(shop.settings, "", "", "bert")
    assert shop.run(many(40)).outcome is Outcome.COMPLETED
    assert len(service.bought) == len(set(service.bought)) == 80
    with shop.ledger() as ledger:
        assert list(problems(ledger)) == []


def crash(name: str) -> None:
    raise Crash


def test_run_that_meets_the_brake(shop: Workshop, service: Service) -> None:
    """It sends nothing, also nothing again, asks for the jobs that are open, needs no approval, and says why."""
    service.at_job_end = crash
    service.on_create["prompt 001"] = [ANSWER_LOST]
    shop.crash(many(2))
    service.at_job_end = lambda name: None
    states = {name: one[-1].state for name, one in shop.attempts().items() if one}
    assert states == {"prompt 000": AttemptState.ACCEPTED, "prompt 001": AttemptState.INTENDED}
    sent = len(service.creates)
    pause(shop.settings, EVERYTHING)

    ended = shop.run(many(30), approve_above_items=1)

    assert ended.outcome is Outcome.PAUSED and "by anna: wrong prices" in (ended.ending.record.reason or "")
    assert len(service.creates) == sent
    assert shop.state("prompt 000") is AttemptState.SUCCEEDED
    assert shop.state("prompt 001") is AttemptState.INTENDED
    assert ended.counts[RowStatus.NOT_STARTED] == 28
    unpause(shop.settings, "", "", "bert")
    assert shop.run(many(30)).outcome is Outcome.COMPLETED
    assert len(service.bought) == len(set(service.bought)) == 60
    pause(shop.settings, EVERYTHING)
    assert shop.run(many(30)).outcome is Outcome.COMPLETED, "what buys nothing is not stopped"


SCOPES = {
    ("", ""): {"spring", "spring/orders", "autumn", "spring of production"},
    ("", "spring"): {"spring", "spring/orders", "spring of production"},
    ("staging", ""): {"spring", "spring/orders", "autumn"},
    ("staging", "spring"): {"spring", "spring/orders"},
}


@pytest.mark.parametrize(("environment", "catalog"), SCOPES)
def test_pause_covers_what_it_names(environment: str, catalog: str) -> None:
    everything = {name: ("staging", name) for name in ("spring", "spring/orders", "autumn")}
    everything["spring of production"] = "production", "spring"
    asked = Pause(environment, catalog, **BY)
    assert {name for name, scope in everything.items() if asked.covers(*scope)} == SCOPES[
        environment, catalog
    ]


def test_pauses_are_lifted_one_by_one(shop: Workshop) -> None:
    """By what they name; the earlier of two alike stays, and each change is on record."""
    shop.run(many(1))
    (first,) = pause(shop.settings, EVERYTHING)
    assert pause(shop.settings, Pause("", "", "another reason", "carl")) == [first]
    (of_catalog,) = pause(shop.settings, Pause("", "spring", **BY))
    assert unpause(shop.settings, "staging", "", "bert") == ([], [first, of_catalog])
    assert unpause(shop.settings, "", "", "bert") == ([first], [of_catalog])
    assert shop.run(many(2)).outcome is Outcome.PAUSED
    assert unpause(shop.settings, "", "spring", "bert") == ([of_catalog], [])
    with open_ledger(shop.settings) as ledger:
        kinds = ledger.database.rows("SELECT kind FROM events WHERE run_id = '' ORDER BY seq")
    assert [kind for (kind,) in kinds] == ["paused", "paused", "paused", "unpaused", "unpaused"]


REFUSED: dict[str, Callable[[Settings], object]] = {
    "one printable line": lambda settings: Pause("", "", "two\nlines", "anna"),
    "There was no run of catalog 'sprnig'": lambda settings: pause(settings, Pause("", "sprnig", **BY)),
    "There was no run of environment prod": lambda settings: pause(settings, Pause("prod", "", **BY)),
    "There is no ledger": lambda settings: pause(
        settings.model_copy(update={"home": settings.home / "none"}), EVERYTHING
    ),
}


@pytest.mark.parametrize("message", REFUSED)
def test_pause_of_nothing_is_refused(shop: Workshop, message: str) -> None:
    shop.run(many(1))
    with pytest.raises(ConfigurationError, match=message):
        REFUSED[message](shop.settings)


def test_ledger_that_is_named_by_its_address_too_is_paused_once(shop: Workshop) -> None:
    shop.run(many(1))
    shop.ledger_url = SecretStr(f"sqlite:///{shop.home}/ledger.sqlite3")
    assert len(pause(shop.settings, EVERYTHING)) == 1


def test_dead_and_silent_holders_are_not_waited_for(shop: Workshop, service: Service) -> None:
    """A dead one of this machine at once, one of another machine after as long as a takeover waits."""
    shop.crash_at(1, many(1))
    pause(shop.settings, EVERYTHING, sleep=lambda _: pytest.fail("it is dead"))
    with shop.ledger() as ledger, ledger.transaction():
        ledger.database.execute(
            'UPDATE leases SET holder = replace(holder, \'"machine": "\', \'"machine": "x\')'
        )
    now, awaited = [0.0], list[list[str]]()

    def sleep(seconds: float) -> None:
        now[0] += seconds

    pause(shop.settings, Pause("", "spring", **BY), awaited.append, sleep=sleep)
    assert len(awaited) == 1 and now[0] == pytest.approx(20, abs=0.5)


def test_group_on_another_machine_is_waited_for(shop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long its creates are out: the ledger leaves it out once it has no heartbeats."""
    shop.run(many(1))
    looks = iter([[Lease("staging", "spring", 0, RunId("its"), group=2)]] * 300)
    monkeypatch.setattr(Brake, "holders_without", lambda self, count: next(looks, []))
    slept, awaited = list[float](), list[str]()
    pause(shop.settings, EVERYTHING, awaited.extend, sleep=slept.append)
    assert (len(slept), awaited) == (300, ["group 2 of run its of 'spring' (staging)"])


def test_run_is_braked_that_a_pause_found_before_its_engine(shop: Workshop, service: Service) -> None:
    """As its plan was made: its heartbeat acknowledges, and the engine begins with the brake set."""

    async def main() -> Run:
        braked = Braked(shop.settings, service)
        put = Run._put_on_record

        def put_on_record(self: Run, *arguments: Any) -> Any:
            begun = put(self, *arguments)
            braked.set()
            while not arguments[0].brake.pauses():
                time.sleep(0.01)
            return begun

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Run, "_put_on_record", put_on_record)
            _, run = await shop.begin(many(3))
        await drive(run)
        await until(lambda: braked.has_returned)
        await run.end()
        return run

    shop.run(many(1))
    run = asyncio.run(asyncio.wait_for(main(), 120))
    assert run.ended.outcome is Outcome.PAUSED
    assert len(service.creates) == 2, "those of the run before"
