"""Who drives a catalog: seen from beats, never from a clock; the dead are taken over at once, the silent later."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from patternmill.errors import LeaseLost, Overlap, PatternmillError
from patternmill.identifiers import RunId
from patternmill.ledger.leases import TAKEOVER_AFTER, holder_of, is_surely_dead, this_process
from patternmill.ledger.ledger import Ledger, LedgerWriter
from patternmill.ledger.records import Lease
from patternmill.ledger.sqlite import SqliteDatabase
from patternmill.processes import machine
from patternmill.runs.lease import HEARTBEAT_INTERVAL, LeaseHeartbeat, acquire_lease, crashed_runs
from patternmill.settings import Settings

MINE, THEIRS = RunId("mine"), RunId("theirs")
SOMEWHERE_ELSE = {"machine": "another-machine", "pid": 1, "born": "1", "flow_run_id": None}


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger(SqliteDatabase(tmp_path / "ledger.sqlite3")) as opened:
        yield opened


class Sleeper:
    """Time passes only here; `beat` is called at every `every` seconds of it."""

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


def test_living_holder_is_left_alone(ledger: Ledger) -> None:
    """Its heartbeat is seen within two beats; nothing is written, and it continues."""
    hold = held_by(ledger, SOMEWHERE_ELSE)

    beat = beating(ledger, hold)
    sleeper = Sleeper(beat, HEARTBEAT_INTERVAL.total_seconds())
    with pytest.raises(Overlap, match="driven by run theirs"):
        take(ledger, sleeper)
    assert sleeper.slept <= 2 * HEARTBEAT_INTERVAL.total_seconds()
    beat()


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


def test_silence_is_watched_not_computed(tmp_path: Path) -> None:
    """The ledger's clock may jump by a day: it is no evidence of life."""
    now = [1_800_000_000.0]
    ledger = Ledger(SqliteDatabase(tmp_path / "ledger.sqlite3"), clock=lambda: now[0])
    hold = held_by(ledger, SOMEWHERE_ELSE)
    now[0] += 86_400

    with pytest.raises(Overlap):
        take(ledger, Sleeper(beating(ledger, hold), HEARTBEAT_INTERVAL.total_seconds()))
    ledger.close()


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
    """A real process of this machine, named as it would name itself."""
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
        until = time.monotonic() + 10
        while not is_surely_dead(holder) and time.monotonic() < until:
            time.sleep(0.005)
    sleeper = Sleeper()
    assert take(ledger, sleeper).fence == 2
    assert sleeper.slept == 0
    child.communicate()


@needs_proc
def test_reused_pid_is_another_process() -> None:
    """By its start time."""
    me = this_process()
    assert not is_surely_dead(me)
    assert is_surely_dead({**me, "born": "1"})


# -- the heart


async def test_heartbeat_begins_at_once_and_stops(ledger: Ledger) -> None:
    writer = LedgerWriter(ledger, held_by(ledger, SOMEWHERE_ELSE))
    lost: list[PatternmillError] = []
    heart = LeaseHeartbeat(writer, lost.append)
    heart.start()
    async with asyncio.timeout(5):
        while not ledger.database.rows("SELECT 1 FROM leases WHERE beats > 0"):
            await asyncio.sleep(0.005)
    await heart.stop()
    assert not [task for task in asyncio.all_tasks() if "_beat" in repr(task)], (
        "it has ended as it is stopped"
    )
    await writer.close()
    assert not lost


async def test_heartbeat_reports_a_lost_lease(ledger: Ledger) -> None:
    """Once another run has taken the catalog over."""
    hold = held_by(ledger, SOMEWHERE_ELSE)
    with ledger.transaction():
        ledger.catalogs.claim_lease("staging", "spring", MINE, "{}", over=hold)
    lost: asyncio.Future[PatternmillError] = asyncio.get_running_loop().create_future()
    writer = LedgerWriter(ledger, hold)
    heart = LeaseHeartbeat(writer, lost.set_result)
    heart.start()
    assert isinstance(await asyncio.wait_for(lost, 5), LeaseLost)
    await heart.stop()
    await writer.close()


def test_crashed_runs_of_deployments_are_those_without_heartbeats(ledger: Ledger, tmp_path: Path) -> None:
    """And without an end: neither one that beats, nor one of a terminal, nor one that was asked to stop."""

    def hold(run: str, flow_run: str | None, machine: str = "another-machine") -> Lease:
        holder = json.dumps({**SOMEWHERE_ELSE, "machine": machine, "flow_run_id": flow_run})
        with ledger.transaction():
            lease = ledger.catalogs.claim_lease("staging", run, RunId(run), holder, over=None)
        assert lease is not None
        return lease

    hold("silent", "flow-run-1")
    hold("terminal", None)
    hold("dead", "flow-run-2", machine())
    alive, stopped, ended = hold("beating", "flow-run-3"), hold("stopped", "4"), hold("ended", "5")
    with ledger.transaction():
        ledger.catalogs.record_stop(stopped, "Stopped by SIGTERM.")
        ledger.catalogs.release_lease(ended)

    sleeper = Sleeper(beating(ledger, alive), every=HEARTBEAT_INTERVAL.total_seconds())
    crashed = asyncio.run(crashed_runs(Settings(home=tmp_path), sleep=sleeper))
    assert {run.lease.run_id: holder_of(run.lease)["flow_run_id"] for run in crashed} == {
        "silent": "flow-run-1",
        "dead": "flow-run-2",
    }
    assert sleeper.slept > TAKEOVER_AFTER.total_seconds()


def test_dead_processes_are_not_watched(ledger: Ledger, tmp_path: Path) -> None:
    """Where all of them are of this machine, it is known at once."""
    held_by(ledger, {**SOMEWHERE_ELSE, "machine": machine(), "flow_run_id": "flow-run-1"})
    sleeper = Sleeper()
    assert len(asyncio.run(crashed_runs(Settings(home=tmp_path), sleep=sleeper))) == 1
    assert sleeper.slept == 0
