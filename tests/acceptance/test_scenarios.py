"""Real processes that meet one another, a person's stop or a changed service, judged by the service's own record.

What each answer leads to is a line of a table in `tests/unit/service/test_resend.py`, and the simulation meets all of
them in virtual time.
"""

from __future__ import annotations

import signal
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from patternmill.ledger.database import LEDGER_FILE
from tests.acceptance.evidence import Evidence
from tests.acceptance.harness import HURRY, Room, Started, Zygote, some_rows, wait_for
from tests.hostile import Hostile, Plan, Rule, Times
from tests.hostile.certificates import write_certificates
from tests.hostile.plan import CREATES
from tests.hostile.record import Line, lines_of

#: The seconds that a signal may take to arrive on a busy machine.
HEARD = 2.0
#: A plan under which all jobs read as running until it is changed.
HELD = Plan(rules=(Rule("jobs/get", "edit", {"set": {"status": "running", "result": None}}),))


def room_in(folder: Path, service: Hostile, zygote: Zygote, rows: int, window: int) -> Room:
    settings = {"PATTERNMILL_MAX_IN_FLIGHT": str(window)}
    return Room(folder / "room", service, some_rows(rows), zygote, settings)


def creates_after(record: Path, moment: float) -> list[Line]:
    """Return the creates that the service received after a moment of the clock."""
    asked = (line for line in lines_of(record) if line["event"] == "request")
    return [line for line in asked if line["operation"] in CREATES and line["at"] > moment]


def finish(room: Room) -> Evidence:
    """Run the same command once more; then all invariants hold."""
    ended = room.run()
    assert ended.code == 0, ended.output
    evidence = Evidence(room)
    # A run that was stopped may ask about the jobs that it knew of; it may not buy.
    assert [fault for fault in evidence.faults() if not fault.startswith("jobs/get")] == []
    return evidence


def test_holder_that_stood_still_is_fenced_off(tmp_path: Path, zygote: Zygote) -> None:
    """It is stopped, another run takes over and makes everything, and the first one is continued: it buys nothing."""
    with Hostile(Plan(patterns=Times(median=0.6), products=Times(median=0.6)), tmp_path) as service:
        room = room_in(tmp_path, service, zygote, rows=24, window=6)
        hasty = (*HURRY, "--silence", "1.5")
        # Two or more requests are on record, and wait until they may be sent.
        first = room.start(inject=(*hasty, "--drain", "5", "--create-rate", "2"))
        wait_for(service.record, '"created"', count=4)
        _stop_between_writes(first, room.folder / room.home)
        # Requests that were sent have arrived by now.
        time.sleep(0.3)
        second = room.start("--out", str(tmp_path / "second"), inject=hasty)
        wait_for(service.record, '"products/create"', count=12)
        continued = time.time()
        first.send(signal.SIGCONT)
        taker, fenced = second.wait(), first.wait()
        assert taker.code == 0, taker.output
        assert fenced.code == 1 and "took over" in fenced.output, fenced.output
        assert [line for line in creates_after(service.record, continued) if line["repeat"]] == []
        finish(room)


def _stop_between_writes(started: Started, home: Path) -> None:
    """Stop a process while it holds no lock of the database: one that does keeps everybody out until it goes on."""
    while True:
        started.send(signal.SIGSTOP)
        while not _all_stopped(started.pid):
            time.sleep(0.005)
        with closing(sqlite3.connect(home / LEDGER_FILE, timeout=0.2, isolation_level=None)) as database:
            try:
                database.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:
                started.send(signal.SIGCONT)
                time.sleep(0.01)
            else:
                return


def _all_stopped(pid: int) -> bool:
    """Return whether all threads have stopped: after SIGSTOP one of them could still lock the database for a moment."""
    try:
        threads = [thread.read_text() for thread in Path(f"/proc/{pid}/task").glob("*/stat")]
    except (FileNotFoundError, ProcessLookupError):
        # A thread has ended in the meantime.
        return False
    return all(thread.rpartition(")")[2].split()[0] == "T" for thread in threads)


def test_one_signal_lets_what_runs_end(tmp_path: Path, zygote: Zygote) -> None:
    """Nothing new is bought, jobs in flight are followed to their end, and the results show the states."""
    window, jobs = 4, Times("uniform", low=0.4, high=1.2)
    with Hostile(Plan(patterns=jobs, products=jobs), tmp_path) as service:
        room = room_in(tmp_path, service, zygote, rows=16, window=window)
        started = room.start()
        wait_for(service.record, '"products/create"', count=2)
        sent = time.time()
        started.send(signal.SIGTERM)
        ended = started.wait()
        assert ended.code == 130, ended.output
        assert creates_after(service.record, sent + HEARD) == []
        evidence = Evidence(room)
        assert evidence.faults(all_made=False) == []
        assert evidence.audit.unfinished == (), "paid, and not waited for"
        assert "not_started" in evidence.statuses, "the stop came too late to prove anything"
        stranded = [row for row in evidence.results if row["pattern_id"] and not row["product_id"]]
        assert len(stranded) <= window
        finish(room)


def test_second_signal_ends_it_at_once(tmp_path: Path, zygote: Zygote) -> None:
    """It was following jobs that do not end; the next run resumes them."""
    with Hostile(HELD, tmp_path) as service:
        room = room_in(tmp_path, service, zygote, rows=4, window=4)
        started = room.start(inject=(*HURRY, "--drain", "3600"))
        wait_for(service.record, '"created"', count=3)
        started.send(signal.SIGINT)
        wait_for(started.err, "Stopping:")
        started.send(signal.SIGINT)
        ended = started.wait()
        assert ended.code == 130, ended.output
        service.change(Plan())
        assert finish(room).audit.bought("pattern") == 3


def test_service_that_forgets_a_request_sells_it_twice(tmp_path: Path, zygote: Zygote) -> None:
    """Nothing on this side can notice it; the record does, which shows how much all other tests rely on the service."""
    lost = Rule("patterns/create", "answer_lost", matching="no. 2", each=1)
    plan = Plan(rules=(lost, Rule("patterns/create", "forget", repeat=True)))
    with Hostile(plan, tmp_path) as service:
        room = room_in(tmp_path, service, zygote, rows=3, window=3)
        assert room.run(inject=HURRY).code == 0
        audit = Evidence(room).audit
        assert audit.unfired(plan) == [], "the fault was never met"
        assert (len(audit.double_purchases), audit.changed_bodies) == (1, ())


@pytest.mark.parametrize(
    ("expired", "host", "is_trusted", "is_valid"),
    [
        (True, "127.0.0.1", True, False),
        (False, "10.9.8.7", True, False),
        (False, "127.0.0.1", False, False),
        (False, "127.0.0.1", True, True),
    ],
    ids=["expired", "other host", "unknown authority", "valid"],
)
def test_unverifiable_certificate_stops_the_run(
    expired: bool, host: str, is_trusted: bool, is_valid: bool, tmp_path: Path, zygote: Zygote
) -> None:
    """Not one request goes out; with a valid one of a private authority it succeeds."""
    made = write_certificates(tmp_path / "tls", expired=expired, host=host)
    with Hostile(Plan(), tmp_path, certificate=made.service) as service:
        room = room_in(tmp_path, service, zygote, rows=1, window=1)
        room.settings |= {"SSL_CERT_FILE": str(made.authority)} if is_trusted else {}
        ended = room.run()
        assert ended.code == (0 if is_valid else 2), ended.output
        assert is_valid or "certificate" in ended.output
        assert is_valid or not [line for line in service.lines() if line["event"] == "request"]
