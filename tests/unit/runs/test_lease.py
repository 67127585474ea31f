"""Who drives a catalog: seen from beats, never from a clock; the dead are taken over at once, the silent later."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from patternmill.errors import LeaseLost, LedgerError, LedgerUnavailable, Overlap, PatternmillError
from patternmill.identifiers import RunId
from patternmill.ledger.brake import Pause
from patternmill.ledger.catalogs import RETRY_OF
from patternmill.ledger.ledger import Ledger, LedgerWriter
from patternmill.ledger.records import TAKEOVER_AFTER, Lease, holder_of, is_free, is_surely_dead, this_process
from patternmill.ledger.sqlite import SqliteDatabase
from patternmill.processes import machine
from patternmill.runs.lease import (
    HEARTBEAT_INTERVAL,
    LeaseHeartbeat,
    acquire_lease,
    crashed_runs,
    hold_lease,
    pause_after_beat,
    release_lease,
)
from patternmill.runs.run import Run
from patternmill.settings import Settings
from patternmill.states import Outcome
from tests.hostile.in_process import Service
from tests.integration.ledger.samples import RAW, RECORD, begin

from .workshop import Workshop, drive, many, take_over

MINE, THEIRS = RunId("mine"), RunId("theirs")
SOMEWHERE_ELSE = {"machine": "another-machine", "pid": 1, "born": "1", "flow_run_id": None}


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger(SqliteDatabase(tmp_path / "ledger.sqlite3")) as opened:
        yield opened


class Sleeper:
    """The only place where time passes; `beat` is called every `every` seconds of it."""

    def __init__(self, beat: Callable[[], None] = lambda: None, every: float = 1e9) -> None:
        self.slept = 0.0
        self._beat, self._every, self._beats = beat, every, 0

    async def __call__(self, seconds: float) -> None:
        self.slept += seconds
        while self.slept >= (self._beats + 1) * self._every:
            self._beats += 1
            self._beat()


def held_by(ledger: Ledger, holder: dict[str, Any]) -> Lease:
    with ledger.transaction():
        hold = ledger.catalogs.claim_lease("staging", "spring", THEIRS, json.dumps(holder), over=None)
    assert hold is not None
    return hold


def beating(ledger: Ledger, hold: Lease) -> Callable[[], None]:
    """Return a heartbeat of this holder."""

    def beat() -> None:
        with ledger.transaction(hold):
            ledger.catalogs.renew_lease(hold)

    return beat


def take(ledger: Ledger, sleep: Callable[[float], Awaitable[None]]) -> Lease:
    return asyncio.run(acquire_lease(ledger, "staging", "spring", MINE, sleep=sleep))


@pytest.mark.parametrize("ahead", [0, 86_400])
def test_living_holder_is_left_alone(tmp_path: Path, ahead: int) -> None:
    """Its heartbeat is seen within two beats, whatever the clock does; nothing is written, and it continues."""
    now = [1_800_000_000.0]
    ledger = Ledger(SqliteDatabase(tmp_path / "ledger.sqlite3"), clock=lambda: now[0])
    hold = held_by(ledger, SOMEWHERE_ELSE)
    now[0] += ahead
    beat = beating(ledger, hold)
    sleeper = Sleeper(beat, HEARTBEAT_INTERVAL.total_seconds())
    with pytest.raises(Overlap, match="driven by run theirs"):
        take(ledger, sleeper)
    assert sleeper.slept <= 2 * HEARTBEAT_INTERVAL.total_seconds()
    beat()
    ledger.close()


def test_silent_holder_elsewhere_is_taken_over(ledger: Ledger) -> None:
    """Not before its silence was watched for its time; then it can write no more."""
    hold = held_by(ledger, SOMEWHERE_ELSE)
    sleeper = Sleeper()
    assert take(ledger, sleeper).fence == hold.fence + 1
    assert sleeper.slept == pytest.approx(TAKEOVER_AFTER.total_seconds())
    with pytest.raises(LeaseLost), ledger.transaction(hold):
        pass


def test_holder_that_beats_in_the_last_moment_is_alive(ledger: Ledger) -> None:
    """Seen by the last look, and by the claim itself, which comes after it."""
    hold = held_by(ledger, SOMEWHERE_ELSE)

    beat = beating(ledger, hold)
    with pytest.raises(Overlap):
        take(ledger, Sleeper(beat, TAKEOVER_AFTER.total_seconds()))
    seen = ledger.catalogs.lease("staging", "spring")
    beat()
    with ledger.transaction():
        assert ledger.catalogs.claim_lease("staging", "spring", MINE, "{}", over=seen) is None


def test_quicker_taker_is_an_overlap(ledger: Ledger) -> None:
    """The fence changed while the silent holder was watched."""
    hold = held_by(ledger, SOMEWHERE_ELSE)

    def taken() -> None:
        with ledger.transaction():
            ledger.catalogs.claim_lease(
                "staging", "spring", RunId("third"), json.dumps(SOMEWHERE_ELSE), over=hold
            )

    with pytest.raises(Overlap, match="third"):
        take(ledger, Sleeper(taken, 3))


def as_holder(pid: int) -> dict[str, Any]:
    """Return the identity of a real process of this machine, as it would state it itself."""
    born = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    return {**this_process(), "pid": pid, "born": born}


needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the machine has no /proc")


@needs_proc
@pytest.mark.parametrize("buried", [True, False])
def test_dead_process_of_this_machine_is_taken_over_at_once(ledger: Ledger, buried: bool) -> None:
    """Whether its parent has reaped it or not."""
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    holder = as_holder(child.pid)
    held_by(ledger, holder)
    assert not is_surely_dead(holder)
    child.kill()
    if buried:
        child.communicate()
    else:
        # It has ended, and stays as a zombie.
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    sleeper = Sleeper()
    assert take(ledger, sleeper).fence == 2
    assert sleeper.slept == 0
    child.communicate()


@needs_proc
def test_reused_pid_is_another_process() -> None:
    """The start time tells them apart."""
    me = this_process()
    assert not is_surely_dead(me)
    assert is_surely_dead({**me, "born": "1"})


# -- the heart


async def test_heartbeat_begins_at_once_and_stops(ledger: Ledger) -> None:
    writer = LedgerWriter(ledger, held_by(ledger, SOMEWHERE_ELSE))
    lost: list[PatternmillError] = []
    heart = LeaseHeartbeat(writer, lost.append)
    while not ledger.database.rows("SELECT 1 FROM leases WHERE beats > 0"):
        await asyncio.sleep(0.005)
    await heart.stop()
    assert not [task for task in asyncio.all_tasks() if "_beat" in repr(task)], "it ends as it is stopped"
    await release_lease(writer)
    assert not lost


class LeavingLedger(Ledger):
    """A ledger whose database is unavailable from some moment on."""

    is_away = False

    def transaction(self, lease: Lease | None = None) -> Any:
        if self.is_away:
            raise LedgerUnavailable("away", remedy="")
        return super().transaction(lease)


@pytest.mark.parametrize("is_away", [False, True])
async def test_lease_is_released_or_given_up_soon(tmp_path: Path, is_away: bool) -> None:
    """The ledger is closed in any case; one that is unavailable is waited for ten seconds, and not a minute."""
    ledger, slept = LeavingLedger(SqliteDatabase(tmp_path / "ledger.sqlite3")), list[float]()
    hold = held_by(ledger, SOMEWHERE_ELSE)
    writer = LedgerWriter(ledger, hold, sleep=slept.append, clock=lambda: sum(slept))
    ledger.is_away = is_away
    await release_lease(writer)
    assert (10 <= sum(slept) < 20) == is_away
    with pytest.raises(LedgerError, match="closed database"):
        ledger.database.rows("SELECT 1")
    with Ledger(SqliteDatabase(tmp_path / "ledger.sqlite3")) as opened:
        left = opened.catalogs.lease("staging", "spring")
    assert left is not None and is_free(left) != is_away


async def test_lease_is_held_for_a_purpose(ledger: Ledger) -> None:
    """Under an ID that says which, until it is released, whatever happens."""
    with pytest.raises(ZeroDivisionError):
        async with hold_lease(ledger, "staging", "spring", "settle") as lease:
            assert re.fullmatch(r"settle-\d{8}-\d{6}-[0-9a-f]{6}", lease.run_id)
            held = ledger.catalogs.lease("staging", "spring")
            assert held is not None and not is_free(held)
            raise ZeroDivisionError
    left = ledger.catalogs.lease("staging", "spring")
    assert left is not None and is_free(left)


async def test_beats_are_quicker_while_a_pause_waits_for_them(ledger: Ledger) -> None:
    writer = LedgerWriter(ledger, held_by(ledger, SOMEWHERE_ELSE))
    assert pause_after_beat(writer) == 2
    ledger.brake.set(Pause("", "", "so", "anna"))
    await writer.write(lambda ledger: None)
    assert pause_after_beat(writer) == 0.2
    await writer.close()


async def test_heartbeat_reports_a_lost_lease(ledger: Ledger) -> None:
    """It does so once another run has taken the catalog over."""
    hold = held_by(ledger, SOMEWHERE_ELSE)
    with ledger.transaction():
        ledger.catalogs.claim_lease("staging", "spring", MINE, "{}", over=hold)
    lost: asyncio.Future[PatternmillError] = asyncio.get_running_loop().create_future()
    writer = LedgerWriter(ledger, hold)
    heart = LeaseHeartbeat(writer, lost.set_result)
    assert isinstance(await asyncio.wait_for(lost, 5), LeaseLost)
    await heart.stop()
    await writer.close()


def test_crashed_runs_of_deployments_are_those_without_heartbeats(ledger: Ledger, tmp_path: Path) -> None:
    """And without an end: neither one that beats, nor one of a terminal, nor one that was asked to stop."""

    def hold(run: str, flow_run: str | None, machine: str = "another-machine", **options: str) -> Lease:
        holder = json.dumps({**SOMEWHERE_ELSE, "machine": machine, "flow_run_id": flow_run})
        with ledger.transaction():
            lease = ledger.catalogs.claim_lease("staging", run, RunId(run), holder, over=None)
            ledger.runs.add(replace(RECORD, run_id=RunId(run), catalog=run, options=options), RAW)
        assert lease is not None
        return lease

    hold("silent", "flow-run-1", **{RETRY_OF: "earlier"})
    hold("terminal", None)
    hold("dead", "flow-run-2", machine())
    begin(ledger, "bought", price=40, run=RunId("dead"))
    alive, stopped, ended = hold("beating", "flow-run-3"), hold("stopped", "4"), hold("ended", "5")
    with ledger.transaction():
        ledger.catalogs.record_stop(stopped, "Stopped by SIGTERM.")
        ledger.catalogs.release_lease(ended)

    sleeper = Sleeper(beating(ledger, alive), every=HEARTBEAT_INTERVAL.total_seconds())
    crashed = asyncio.run(crashed_runs(Settings(home=tmp_path), sleep=sleeper))
    assert [
        (run.lease.run_id, holder_of(run.lease)["flow_run_id"], run.is_retry, run.spent.amounts)
        for run in crashed
    ] == [("dead", "flow-run-2", False, {"": 40}), ("silent", "flow-run-1", True, {})]
    assert sleeper.slept > TAKEOVER_AFTER.total_seconds()


def test_dead_processes_are_not_watched(ledger: Ledger, tmp_path: Path) -> None:
    """Where all of them are of this machine, it is known at once; a run without a record is no retry."""
    held_by(ledger, {**SOMEWHERE_ELSE, "machine": machine(), "flow_run_id": "flow-run-1"})
    sleeper = Sleeper()
    (crashed,) = asyncio.run(crashed_runs(Settings(home=tmp_path), sleep=sleeper))
    assert (sleeper.slept, crashed.is_retry) == (0, False)


# -- a run that was taken over, or whose ledger broke, stops: nothing that it does from there on counts


def test_run_that_was_taken_over_stops(shop: Workshop, service: Service) -> None:
    """It buys no more, writes no more, and has the reason; the taker loses nothing."""
    shop.at(4, lambda: take_over(shop))
    assert shop.broken(many(30), LeaseLost, max_in_flight=2) == "fenced"
    assert len(service.bought) <= 10
    service.at_create = lambda _: None
    assert shop.run(many(30)).outcome is Outcome.COMPLETED
    assert len(service.bought) == len(set(service.bought)) == 60


def _removed(shop: Workshop) -> None:
    (shop.home / "ledger.sqlite3").unlink()


def _moved(shop: Workshop) -> None:
    shop.home.rename(shop.home.with_name("elsewhere"))


def _replaced(shop: Workshop) -> None:
    file = shop.home / "ledger.sqlite3"
    shutil.copy(file, shop.home / "copy")
    (shop.home / "copy").replace(file)


def _another(shop: Workshop) -> None:
    with shop.ledger() as ledger, ledger.transaction():
        ledger.database.execute("UPDATE ledger SET id = 'another'")


def _upgraded(shop: Workshop) -> None:
    with shop.ledger() as ledger, ledger.transaction():
        ledger.database.execute("UPDATE ledger SET schema = schema + 1")


@pytest.mark.parametrize("change", [_removed, _moved, _replaced, _another, _upgraded])
def test_ledger_that_is_replaced_under_a_run_stops_it(
    shop: Workshop, service: Service, change: Callable[[Workshop], None]
) -> None:
    """Before the next purchase: else everything after it would be bought without a record."""
    shop.at(4, lambda: change(shop))
    code = shop.broken(many(12), LedgerError, max_in_flight=2)
    assert code == ("ledger_schema" if change is _upgraded else "ledger_replaced")
    # What was in flight, and nothing more.
    assert len(service.creates) <= 10


def test_full_disk_stops_before_the_next_purchase(shop: Workshop, service: Service) -> None:
    """Every create that reached the service had its intent on disk; with room again, the run can be resumed."""

    async def fill_up(run: Run) -> None:
        await run.writer.run(lambda ledger: ledger.database.execute("PRAGMA max_page_count = 1"))
        await drive(run)

    shop.broken(many(200), LedgerError, driving=fill_up, max_in_flight=4)
    intended = {attempt.request_id for attempts in shop.attempts().values() for attempt in attempts}
    assert {create.request_id for create in service.creates} <= intended
    shop.bury()
    assert shop.run(many(200), max_in_flight=50).outcome is Outcome.COMPLETED
    assert len(service.bought) == len(set(service.bought)) == 400
