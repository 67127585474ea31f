"""The ledger's writer: few commits, each durable before anybody learns of it; whoever cannot write, loses nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from patternmill.errors import BudgetReached, LeaseLost, LedgerError, LedgerUnavailable
from patternmill.identifiers import RequestId, RunId
from patternmill.ledger.brake import Pause
from patternmill.ledger.ledger import Ledger, LedgerWriter
from patternmill.ledger.records import Attempt, Lease, SpendingLimits
from patternmill.ledger.sqlite import SqliteDatabase
from patternmill.states import AttemptState

from .conftest import OpenLedger
from .samples import CATALOG, RUN, STAGING, UNLIMITED, intent, item

TIMES = timedelta(milliseconds=1)


class CountingLedger(Ledger):
    """A ledger that counts its transactions."""

    transactions = 0

    @contextmanager
    def transaction(self, hold: Lease | None = None) -> Iterator[None]:
        self.transactions += 1
        with super().transaction(hold):
            yield


def buying(name: str, limits: SpendingLimits = UNLIMITED) -> Callable[[Ledger], Attempt]:
    def buy(ledger: Ledger) -> Attempt:
        ledger.purchases.add_items(STAGING, CATALOG, [item(name)])
        return ledger.purchases.intend(RUN, intent(name), limits)

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
    writer, limits = LedgerWriter(ledger), SpendingLimits(items=3)
    writes = (writer.write(buying(f"p{number}", limits)) for number in range(5))
    ends = await asyncio.gather(*writes, return_exceptions=True)
    assert [isinstance(end, BudgetReached) for end in ends] == [False] * 3 + [True] * 2
    assert writer.broken is None
    assert (await writer.write(buying("p0", limits))).item_key == "p0"
    await writer.close()
    assert asked_for(open_ledger()) == {"p0", "p1", "p2"}


@pytest.mark.parametrize("error", [RuntimeError("a slip of ours"), LedgerError("A full disk.")], ids=str)
async def test_any_other_error_rolls_the_group_back_and_breaks_the_writer(
    ledger: Ledger, open_ledger: OpenLedger, error: Exception
) -> None:
    """What may be half done is not kept, and nothing is written afterwards."""

    def slip(ledger: Ledger) -> None:
        ledger.purchases.add_items(STAGING, CATALOG, [item("half")])
        raise error

    writer = LedgerWriter(ledger)
    await writer.write(buying("before"))
    writes = (writer.write(buying("a")), writer.write(slip), writer.write(buying("b")))
    ends = await asyncio.gather(*writes, return_exceptions=True)
    assert all(isinstance(end, LedgerError) for end in ends)
    with pytest.raises(LedgerError, match=str(error)):
        await writer.write(buying("after"))
    await writer.close()
    assert open_ledger().database.rows("SELECT key FROM items") == [("before",)]


async def test_error_after_a_commit_leaves_no_caller_waiting(open_ledger: OpenLedger) -> None:
    """What obeys the brake may fail, once the change is written; nothing can be written afterwards."""

    def slip(pause: Pause) -> None:
        raise RuntimeError("a slip of ours")

    ledger, other = open_ledger(), open_ledger()
    with ledger.transaction():
        lease = ledger.catalogs.claim_lease(STAGING, CATALOG, RUN, "me", over=None)
    writer = LedgerWriter(ledger, lease)
    writer.heed(slip, lambda: True)
    other.brake.set(Pause(STAGING, CATALOG, "a test", "anna"))
    with pytest.raises(LedgerError, match="a slip of ours"):
        await asyncio.wait_for(writer.write(buying("a")), 10)
    await writer.close()
    assert asked_for(other) == {"a"}


async def test_pending_writes_are_made_before_the_writer_closes(
    ledger: Ledger, open_ledger: OpenLedger
) -> None:
    """That of a cancelled caller too, which may be in the commit already; nothing can be written afterwards."""
    writer = LedgerWriter(ledger)
    asking = [asyncio.create_task(writer.write(buying(f"p{number}"))) for number in range(5)]
    await asyncio.sleep(0)
    asking[0].cancel()
    await writer.close()
    assert len(await asyncio.gather(*asking[1:])) == 4
    with pytest.raises(LedgerError):
        await writer.write(buying("late"))
    assert asked_for(open_ledger()) == {f"p{number}" for number in range(5)}


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
    for write in (writer.confirm_lease(), writer.write(buying("late"))):
        with pytest.raises(LeaseLost):
            await write
    assert isinstance(writer.broken, LeaseLost)
    await writer.close()
    assert asked_for(other) == set()


# -- a database that goes away


class LeavingLedger(Ledger):
    """A ledger whose database goes away as a transaction ends, before the commit or after it, with its result lost.

    Time passes only in the writer's sleeps.
    """

    def __init__(self, path: Path, *, committed: bool = False) -> None:
        super().__init__(SqliteDatabase(path / "ledger.sqlite3"))
        self.times, self.committed = 0, committed
        self.time, self.pauses, self.seen = 100.0, list[float](), list[str]()
        self.writer = LedgerWriter(self, linger=TIMES, sleep=self.sleep, clock=lambda: self.time)

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.time += seconds
        self.seen.append(self.writer.waiting)

    @contextmanager
    def transaction(self, hold: Lease | None = None) -> Iterator[None]:
        leaves, self.times = self.times > 0, self.times - 1
        with super().transaction(hold):
            yield
            if leaves and not self.committed:
                raise LedgerUnavailable("It went away.")
        if leaves:
            raise LedgerUnavailable("It went away, and the commit was done.")


@pytest.mark.parametrize("committed", [False, True])
async def test_lost_database_is_waited_for(
    tmp_path: Path, committed: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Each write is made once, whether or not the commit was done before its answer was lost; people are told."""
    ledger = LeavingLedger(tmp_path, committed=committed)
    writer = ledger.writer
    await writer.write(buying("a"))
    ledger.times = 5
    await asyncio.gather(writer.write(buying("b")), writer.write(accepting("a")))
    assert asked_for(ledger) == {"a", "b"}
    accepted = attempt_at("a")(ledger)
    assert accepted is not None and accepted.state is AttemptState.ACCEPTED
    assert ledger.database.rows("SELECT sum(items) FROM spending") == [(2,)]
    assert len(ledger.pauses) == 5
    waiting = f"waiting for the ledger's SQLite file {tmp_path}/ledger.sqlite3 since 7 s"
    assert (ledger.seen[0], ledger.seen[-1], writer.waiting) == ("", waiting, "")
    begun, ended = caplog.messages
    assert "It went away" in begun and "answers again" in ended
    await writer.close()


@pytest.mark.parametrize(("is_stopped", "least", "most"), [(False, 50, 70), (True, 5, 16)])
async def test_database_that_stays_unavailable_breaks_the_writer(
    tmp_path: Path, is_stopped: bool, least: float, most: float
) -> None:
    """After about a minute, or ten seconds once a person has stopped the run; later writes are tried once."""
    ledger = LeavingLedger(tmp_path)
    ledger.times, writer = 99, ledger.writer
    if is_stopped:
        writer.shorten_wait()
    with pytest.raises(LedgerUnavailable):
        await writer.write(buying("a"))
    assert least < sum(ledger.pauses) < most
    waited = len(ledger.pauses)
    with pytest.raises(LedgerUnavailable):
        await writer.run_patiently(commit_nothing)
    assert len(ledger.pauses) == waited
    await writer.close()


def commit_nothing(ledger: Ledger) -> None:
    with ledger.transaction():
        pass
