"""The writer: groups changes into commits, keeps a refusal to its own change, waits for a database, loses nothing."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from patternmill.errors import BudgetReached, LeaseLost, LedgerError, LedgerUnavailable
from patternmill.identifiers import RequestId, RunId
from patternmill.ledger.ledger import Ledger, LedgerWriter, open_database
from patternmill.ledger.records import Attempt, Lease, SpendingLimits
from patternmill.ledger.sqlite import SqliteDatabase
from patternmill.states import AttemptState

from .conftest import OpenLedger
from .samples import CATALOG, RUN, STAGING, UNLIMITED, intent, item

ROOT = Path(__file__).resolve().parents[3]
TIMES = timedelta(milliseconds=1)


class Pauses:
    """Time that passes only in a sleep; every pause is recorded."""

    def __init__(self) -> None:
        self.now, self.pauses = 100.0, list[float]()

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds

    def writer(self, ledger: Ledger) -> LedgerWriter:
        return LedgerWriter(ledger, linger=TIMES, sleep=self.sleep, clock=lambda: self.now)


class CountingLedger(Ledger):
    """Counts its transactions."""

    transactions = 0

    @contextmanager
    def transaction(self, hold: Lease | None = None) -> Iterator[None]:
        self.transactions += 1
        with super().transaction(hold):
            yield


def buying(name: str, limits: SpendingLimits = UNLIMITED) -> Callable[[Ledger], Attempt]:
    def buy(ledger: Ledger) -> Attempt:
        ledger.purchases.add_items(STAGING, CATALOG, [item(name)])
        return ledger.purchases.intend(RUN, STAGING, intent(name), limits)

    return buy


def accepting(name: str) -> Callable[[Ledger], Attempt]:
    return lambda ledger: ledger.purchases.change(
        RUN, RequestId(f"{name}/1"), AttemptState.ACCEPTED, job_id=f"job-{name}"
    )


def attempt_at(name: str) -> Callable[[Ledger], Attempt | None]:
    return lambda ledger: ledger.purchases.attempt(RequestId(f"{name}/1"))


def asked_for(ledger: Ledger) -> set[str]:
    return {key for (key,) in ledger.database.rows("SELECT item_key FROM attempts")}


def sqlite_at(path: Path) -> CountingLedger:
    return CountingLedger(SqliteDatabase(path / "ledger.sqlite3"))


async def test_many_writes_are_few_commits(tmp_path: Path) -> None:
    """A hundred tasks that write at once cost a commit or two, and each gets its own result."""
    ledger = sqlite_at(tmp_path)
    writer = LedgerWriter(ledger)
    made = await asyncio.gather(*(writer.write(buying(f"p{number}")) for number in range(100)))
    assert [attempt.item_key for attempt in made] == [f"p{number}" for number in range(100)]
    await writer.close()
    assert ledger.transactions <= 2
    assert len(asked_for(sqlite_at(tmp_path))) == 100


async def test_writes_are_durable_when_they_return_and_in_their_order(open_ledger: OpenLedger) -> None:
    """What builds on an earlier change finds it, in the same group or in a later one; another connection sees it."""
    reader, writer = open_ledger(), LedgerWriter(open_ledger(), linger=TIMES)
    await asyncio.gather(writer.write(buying("a")), writer.write(accepting("a")))
    for attempt in (await writer.write(attempt_at("a")), attempt_at("a")(reader)):
        assert attempt is not None and attempt.job_id == "job-a"
    await writer.close()


async def test_one_refusal_does_not_affect_its_group(ledger: Ledger, open_ledger: OpenLedger) -> None:
    """Of a group that exceeds the budget, what fits is written, and the others get the reason."""
    writer = LedgerWriter(ledger)
    limits = SpendingLimits(items=3)
    ends = await asyncio.gather(
        *(writer.write(buying(f"p{number}", limits)) for number in range(5)), return_exceptions=True
    )
    assert [isinstance(end, BudgetReached) for end in ends] == [False] * 3 + [True] * 2
    assert writer.broken is None
    assert (await writer.write(buying("p0", limits))).item_key == "p0"
    await writer.close()
    assert asked_for(open_ledger()) == {"p0", "p1", "p2"}


async def test_any_other_error_rolls_the_group_back_and_breaks_the_writer(
    ledger: Ledger, open_ledger: OpenLedger
) -> None:
    """What may be half done is not kept, and nothing is written afterwards."""

    def slip(ledger: Ledger) -> None:
        ledger.purchases.add_items(STAGING, CATALOG, [item("half")])
        raise RuntimeError("a slip of ours")

    writer = LedgerWriter(ledger)
    await writer.write(buying("before"))
    ends = await asyncio.gather(
        writer.write(buying("a")), writer.write(slip), writer.write(buying("b")), return_exceptions=True
    )
    assert all(isinstance(end, LedgerError) for end in ends)
    assert isinstance(writer.broken, LedgerError)
    with pytest.raises(LedgerError, match="RuntimeError"):
        await writer.write(buying("after"))
    await writer.close()
    assert open_ledger().database.rows("SELECT key FROM items") == [("before",)]


async def test_full_disk_refuses_the_group_and_loses_nothing(tmp_path: Path) -> None:
    """The group that does not fit is refused whole; acknowledged writes are kept."""
    writer = LedgerWriter(sqlite_at(tmp_path), linger=TIMES)
    acknowledged = set()
    await writer.write(lambda ledger: ledger.database.execute("PRAGMA max_page_count = 60"))
    with pytest.raises(LedgerError, match="full"):
        for number in range(5000):
            acknowledged.add((await writer.write(buying(f"p{number:04}"))).item_key)
    with pytest.raises(LedgerError, match="full"):
        await writer.write(lambda ledger: None)
    await writer.close()
    assert acknowledged and asked_for(sqlite_at(tmp_path)) == acknowledged


async def test_pending_writes_are_made_before_the_writer_closes(
    ledger: Ledger, open_ledger: OpenLedger
) -> None:
    """That of a cancelled caller too, which may be in the commit already; nothing can be written afterwards."""
    writer = LedgerWriter(ledger, linger=timedelta(milliseconds=50))
    asking = [asyncio.create_task(writer.write(buying(f"p{number}"))) for number in range(5)]
    await asyncio.sleep(0)
    asking[0].cancel()
    await writer.close()
    assert len(await asyncio.gather(*asking[1:])) == 4
    with pytest.raises(LedgerError):
        await writer.write(buying("late"))
    assert asked_for(open_ledger()) == {f"p{number}" for number in range(5)}


async def test_fenced_writer_writes_nothing_more(open_ledger: OpenLedger) -> None:
    """Once another run has the lease, each write of the earlier one raises LeaseLost."""
    ledger, other = open_ledger(), open_ledger()
    with ledger.transaction():
        hold = ledger.catalogs.claim_lease(STAGING, CATALOG, RUN, "me", over=None)
    assert hold is not None
    writer = LedgerWriter(ledger, hold, linger=TIMES)
    await writer.write(buying("before"))
    with other.transaction():
        other.catalogs.claim_lease(STAGING, CATALOG, RunId("run-2"), "other", over=hold)
    for _ in range(2):
        with pytest.raises(LeaseLost):
            await writer.write(buying("late"))
    assert isinstance(writer.broken, LeaseLost)
    await writer.close()
    assert asked_for(other) == {"before"}


async def test_lease_is_confirmed_after_a_standstill(open_ledger: OpenLedger) -> None:
    """By a commit, which shows that another run took it over; as long as commits are recent, none is made for it."""
    ledger, other = CountingLedger(open_ledger().database), open_ledger()
    with ledger.transaction():
        lease = ledger.catalogs.claim_lease(STAGING, CATALOG, RUN, "me", over=None)
    assert lease is not None
    now = 0.0
    writer = LedgerWriter(ledger, lease, linger=TIMES, uptime=lambda: now)
    before = ledger.transactions
    await writer.confirm_lease()
    assert ledger.transactions == before
    now = 13 * 3600.0
    await writer.confirm_lease()
    await writer.confirm_lease()
    assert ledger.transactions == before + 1
    now *= 2
    with other.transaction():
        other.catalogs.claim_lease(STAGING, CATALOG, RunId("run-2"), "other", over=lease)
    with pytest.raises(LeaseLost):
        await writer.confirm_lease()
    await writer.close()


async def test_separate_work_makes_its_own_transactions(ledger: Ledger) -> None:
    """On the writer's thread, so that it never meets a group in the middle."""

    def work(ledger: Ledger) -> int:
        with ledger.transaction():
            buying("a")(ledger)
        return len(asked_for(ledger))

    writer = LedgerWriter(ledger)
    counts = await asyncio.gather(writer.run(work), *(writer.write(buying(f"p{n}")) for n in range(5)))
    assert counts[0] in (1, 6)
    await writer.close()


class LeavingLedger(Ledger):
    """Its database goes away as a transaction ends, before its commit or after it was done and unheard."""

    def __init__(self, database: SqliteDatabase, times: int, *, committed: bool) -> None:
        super().__init__(database)
        self.times, self.committed = times, committed

    @contextmanager
    def transaction(self, hold: Lease | None = None) -> Iterator[None]:
        with super().transaction(hold):
            yield
            if self._leaves() and not self.committed:
                raise LedgerUnavailable("It went away.")
        if self._leaves():
            self.times -= 1
            raise LedgerUnavailable("It went away, and the commit was done.")

    def _leaves(self) -> bool:
        if not self.committed and self.times > 0:
            self.times -= 1
            return True
        return self.committed and self.times > 0


@pytest.mark.parametrize("committed", [False, True])
async def test_lost_database_is_waited_for(tmp_path: Path, committed: bool) -> None:
    """Each write is made once, whether or not the commit was done before its answer was lost."""
    time = Pauses()
    leaving = LeavingLedger(SqliteDatabase(tmp_path / "ledger.sqlite3"), 0, committed=committed)
    writer = time.writer(leaving)
    await writer.write(buying("a"))
    leaving.times = 3
    await asyncio.gather(writer.write(buying("b")), writer.write(accepting("a")))
    assert asked_for(leaving) == {"a", "b"}
    assert leaving.purchases.attempt(RequestId("a/1")).state is AttemptState.ACCEPTED  # type: ignore[union-attr]
    assert leaving.database.rows("SELECT sum(items) FROM spending") == [(2,)]
    await writer.close()
    assert len(time.pauses) == 3


@pytest.mark.parametrize(("is_stopped", "least", "most"), [(False, 50, 70), (True, 5, 16)])
async def test_database_that_stays_unavailable_breaks_the_writer(
    tmp_path: Path, is_stopped: bool, least: float, most: float
) -> None:
    """After about a minute, or ten seconds once a person has stopped the run; later writes are tried once."""
    time = Pauses()
    writer = time.writer(LeavingLedger(SqliteDatabase(tmp_path / "ledger.sqlite3"), 99, committed=False))
    if is_stopped:
        writer.shorten_wait()
    with pytest.raises(LedgerUnavailable):
        await writer.write(buying("a"))
    assert least < sum(time.pauses) < most
    waited = len(time.pauses)
    with pytest.raises(LedgerUnavailable):
        await writer.run_patiently(in_transaction)
    assert len(time.pauses) == waited
    await writer.close()


def in_transaction(ledger: Ledger) -> None:
    with ledger.transaction():
        pass


async def test_waiting_for_the_database_is_reported(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """By its name, with the seconds, while it lasts; the log has the beginning and the end."""
    seen: list[str] = []
    time = Pauses()
    leaving = LeavingLedger(SqliteDatabase(tmp_path / "ledger.sqlite3"), 5, committed=False)

    def sleep(seconds: float) -> None:
        time.sleep(seconds)
        seen.append(writer.waiting)

    writer = LedgerWriter(leaving, linger=TIMES, sleep=sleep, clock=lambda: time.now)
    assert writer.waiting == ""
    await writer.write(buying("a"))
    assert writer.waiting == ""
    await writer.close()
    assert seen[0] == ""
    assert seen[-1] == f"waiting for the ledger's SQLite file {tmp_path}/ledger.sqlite3 since 7 s"
    begun, ended = (record.getMessage() for record in caplog.records)
    assert "It went away." in begun and "answers again" in ended


# -- a process that is killed


#: Prints each attempt the instant it was acknowledged.
WRITING = """
import asyncio, sys
from pathlib import Path
from patternmill.ledger.ledger import Ledger, LedgerWriter, open_database
from tests.integration.ledger.samples import CATALOG, RUN, STAGING, UNLIMITED, intent, item

async def main(url, first):
    writer = LedgerWriter(Ledger(open_database(url, Path("unused"))))

    async def buy(name):
        def change(ledger):
            ledger.purchases.add_items(STAGING, CATALOG, [item(name)])
            return ledger.purchases.intend(RUN, STAGING, intent(name), UNLIMITED)
        await writer.write(change)
        sys.stdout.write(name + "\\n")
        sys.stdout.flush()

    async def buy_many(task):
        for number in range(10_000):
            await buy(f"{first}-{task}-{number}")

    await asyncio.gather(*(buy_many(task) for task in range(8)))

asyncio.run(main(sys.argv[1], sys.argv[2]))
"""


def acknowledged_until_killed(url: str, round_: int, lines: int) -> list[str]:
    """Let a process write, and kill it when it has acknowledged so many changes."""
    process = subprocess.Popen(
        [sys.executable, "-c", WRITING, url, str(round_)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    with process.stdout:
        printed = [process.stdout.readline().strip() for _ in range(lines)]
        process.send_signal(signal.SIGKILL)
        printed += process.stdout.read().splitlines(keepends=False)
    assert process.wait() == -signal.SIGKILL
    return [name for name in printed if name]


def test_killed_process_loses_no_acknowledged_write(url: str) -> None:
    """SIGKILL as soon as a write returned, twice over one ledger; every acknowledged change is there."""
    acknowledged: set[str] = set()
    for round_, lines in enumerate((1, 40)):
        printed = acknowledged_until_killed(url, round_, lines)
        # The last line may have been cut short by the kill.
        acknowledged |= set(printed[:-1] if len(printed) > lines else printed)
        ledger = Ledger(open_database(url, Path("unused")))
        on_record = {key for (key,) in ledger.database.rows("SELECT item_key FROM attempts")}
        noted = {name for (name,) in ledger.database.rows("SELECT request_id FROM events")}
        if url.startswith("sqlite"):
            assert ledger.database.rows("PRAGMA integrity_check") == [("ok",)]
        ledger.close()
        assert acknowledged <= on_record
        assert noted == {f"{name}/1" for name in on_record}
