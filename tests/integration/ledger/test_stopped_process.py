"""A process that is stopped inside a SQLite transaction: others can read, get its name, and its own catalog resumes."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli import main
from patternmill.errors import LedgerUnavailable
from patternmill.identifiers import RunId
from patternmill.ledger.ledger import Ledger
from patternmill.ledger.records import Lease
from patternmill.ledger.sqlite import SqliteDatabase
from patternmill.runs.lease import acquire_lease

from .samples import STAGING, begin

#: Holds the catalog `spring`, and is stopped inside a transaction once it has printed a line.
HOLDS = """
import json, sys, time
from pathlib import Path
from patternmill.ledger.records import this_process
from patternmill.ledger.ledger import Ledger
from patternmill.ledger.sqlite import SqliteDatabase
ledger = Ledger(SqliteDatabase(Path(sys.argv[1])))
with ledger.transaction():
    holder = json.dumps(this_process())
    hold = ledger.catalogs.claim_lease("staging", "spring", "theirs", holder, over=None)
with ledger.transaction(hold):
    ledger.catalogs.renew_lease(hold)
    print("inside", flush=True)
    time.sleep(600)
"""


async def no_time(seconds: float) -> None:
    """Return at once, so that watching a silent lease takes no test time."""


def acquire(ledger: Ledger, catalog: str) -> Lease:
    return asyncio.run(acquire_lease(ledger, STAGING, catalog, RunId("mine"), sleep=no_time))


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    """Yield a ledger that waits for a lock only for a moment."""
    with Ledger(SqliteDatabase(tmp_path / "ledger.sqlite3")) as ledger:
        ledger.database.rows("PRAGMA busy_timeout = 200")
        yield ledger


@pytest.fixture
def holder(ledger: Ledger, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A real process that was stopped inside a transaction."""
    command = [sys.executable, "-c", HOLDS, str(tmp_path / "ledger.sqlite3")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "inside\n"
        process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
        yield process
        process.kill()


def test_holder_of_the_lock_is_named_and_not_ended(
    ledger: Ledger,
    holder: subprocess.Popen[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """By process, command, time and run, with the remedy, also to a run; reading needs no lock."""
    monkeypatch.setenv("PATTERNMILL_HOME", str(tmp_path))
    monkeypatch.delenv("PATTERNMILL_LEDGER_URL", raising=False)
    assert main.run(["status"]) == 0
    assert f"stopped by a signal (process {holder.pid})" in capsys.readouterr().out
    with pytest.raises(LedgerUnavailable) as caught:
        begin(ledger, "a")
    named = rf"open in run theirs of 'spring' in process {holder.pid} \(`.*python.*`, since .* UTC\), which is stopped"
    assert re.search(named, caught.value.message, re.DOTALL)
    assert f"(`kill -CONT {holder.pid}`) or end it (`kill -KILL {holder.pid}`)" in caught.value.remedy
    for catalog in ("spring", "autumn"):
        with pytest.raises(LedgerUnavailable, match=f"process {holder.pid}"):
            acquire(ledger, catalog)
    holder.send_signal(signal.SIGCONT)
    with pytest.raises(LedgerUnavailable, match=r"(?s)process \d+ \(.*UTC\)\. ") as caught:
        begin(ledger, "a")
    assert "wait for it" in caught.value.remedy
    assert holder.poll() is None
    holder.kill()
    holder.wait()
    begin(ledger, "a")
    assert acquire(ledger, "spring").run_id == "mine"
