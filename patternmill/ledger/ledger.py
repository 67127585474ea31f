"""The ledger: what was asked of the service, under which request ID, and what came of it; and its one writer.

The writer groups the changes of many tasks into one commit, because a commit is what costs.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from itertools import chain, repeat
from pathlib import Path
from typing import Any, Self, TypeVar, cast

from patternmill.catalog.remote import shown_address
from patternmill.errors import ConfigurationError, LedgerError, LedgerUnavailable, PatternmillError
from patternmill.ledger.approvals import Approvals
from patternmill.ledger.catalogs import Catalogs
from patternmill.ledger.database import LEDGER_FILE, Clock, Database, Tables, not_in_place
from patternmill.ledger.purchases import Purchases
from patternmill.ledger.records import Lease
from patternmill.ledger.runs import Runs
from patternmill.processes import uptime
from patternmill.settings import Settings
from patternmill.text import duration


class Ledger(Tables):
    """Every write to one database, and what a run reads back, by four repositories; what people read is in `reports/`.

    Writes are called inside `transaction()`. Not safe for several threads at once: writes belong to one (see
    `LedgerWriter`), reads to a ledger of their own. A context manager, which closes it.
    """

    def __init__(self, database: Database, *, clock: Callable[[], float] | None = None) -> None:
        """`clock` in place of the database's own, or where it has none of this machine's."""
        super().__init__(database, Clock(clock or database.clock() or time.time))
        self.approvals = Approvals(database, self.now)
        self.purchases = Purchases(database, self.now, self.approvals)
        self.runs = Runs(database, self.now, self.purchases)
        self.catalogs = Catalogs(database, self.now, self.runs)
        self.identity = self._read_identity()

    @contextmanager
    def transaction(self, lease: Lease | None = None) -> Iterator[None]:
        """All or nothing. With `lease`, raises LeaseLost when another run took the catalog, or the group, over, and
        LedgerError when this is not the ledger any more that was opened.
        """
        with self.database.transaction():
            if lease is not None:
                self._require_same()
                (self.catalogs.check_fence if lease.group is None else self.runs.check_group)(lease)
            yield
            if lease is not None:
                # Once more: what is committed to a file that was removed meanwhile is lost.
                self.database.require_in_place()

    def _read_identity(self) -> str:
        found = self.database.rows("SELECT id FROM identity")
        return str(found[0][0]) if found else ""

    def _require_same(self) -> None:
        """Raise LedgerError where this is no longer the ledger that was opened, or no longer lies there."""
        self.database.require_in_place()
        if self._read_identity() != self.identity:
            raise not_in_place(self.database.name)

    def close(self) -> None:
        self.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def open_database(url: str | None, home: Path) -> Database:
    """Open the ledger's database, with its tables.

    `url` None means SQLite in `home`. Raises LedgerError, or ConfigurationError for one with other tables.
    """
    from patternmill.ledger.postgres import PostgresDatabase
    from patternmill.ledger.sqlite import SqliteDatabase

    if url is None:
        return SqliteDatabase(home / LEDGER_FILE)
    if url.startswith(("postgresql://", "postgres://")):
        return PostgresDatabase(url)
    if url.startswith("sqlite:///"):
        return SqliteDatabase(Path(url.removeprefix("sqlite:///")))
    # Without any part of it: in another form, each may be a password.
    raise ConfigurationError(
        "PATTERNMILL_LEDGER_URL names an unknown kind of database.",
        remedy="Use postgresql://... or leave it unset for SQLite.",
    )


def open_ledger(settings: Settings, *, must_exist: bool = False) -> Ledger:
    """The ledger that the settings name, brought up to this version: `with open_ledger(settings) as ledger`.

    It is made where none exists; with `must_exist` ConfigurationError is raised instead.
    """
    if must_exist and not has_ledger(settings):
        raise ConfigurationError(
            f"There is no ledger in {settings.home}: nothing was imported from here yet.",
            remedy="Go to the folder of the import, or set PATTERNMILL_HOME or PATTERNMILL_LEDGER_URL.",
        )
    url = settings.ledger_url.get_secret_value() if settings.ledger_url else None
    return Ledger(open_database(url, _folder(settings)))


@contextmanager
def ledger_if_any(settings: Settings) -> Iterator[Ledger | None]:
    """The ledger that the settings name, or None where none exists; a reader makes none."""
    if not has_ledger(settings):
        yield None
        return
    with open_ledger(settings) as ledger:
        yield ledger


def every_ledger(settings: Settings) -> Iterator[Ledger]:
    """Each ledger of the home that exists, the embedded studio's too; closed once the next is asked for."""
    if settings.ledger_url is not None:
        with open_ledger(settings) as ledger:
            yield ledger
    for folder in (settings.home, settings.home / "embedded"):
        if (folder / LEDGER_FILE).exists():
            with Ledger(open_database(None, folder)) as ledger:
                yield ledger


def ledger_place(settings: Settings) -> str:
    """Where the ledger is, for people: its file, or its database without what may be secret."""
    if settings.ledger_url is not None:
        return shown_address(settings.ledger_url.get_secret_value())
    return str((_folder(settings) / LEDGER_FILE).resolve())


def has_ledger(settings: Settings) -> bool:
    """Whether a ledger exists; opening one would make it."""
    return settings.ledger_url is not None or (_folder(settings) / LEDGER_FILE).exists()


def _folder(settings: Settings) -> Path:
    """Where SQLite's file is. The embedded studio has another one: no real service made its products."""
    embedded = settings.home / "embedded"
    if settings.embedded:
        return embedded
    is_read_only = settings.studio_url is None and (embedded / LEDGER_FILE).exists()
    return embedded if is_read_only else settings.home


T = TypeVar("T")
Change = Callable[[Ledger], T]
logger = logging.getLogger(__name__)

#: Seconds between tries while the ledger's database does not answer, and after how many the run gives up; a try that
#: has begun by then may take as long as one answer.
_PAUSES = (0.2, 0.5, 1.0, 2.0, 3.0, 5.0)
_PATIENCE = 60.0
#: The same once a person has stopped the run.
_PATIENCE_STOPPED = 10.0
#: How long a commit shows that the lease is held: heartbeats are less apart, and takeovers wait longer for one.
CONFIRMED_FOR = timedelta(seconds=6)
#: Seconds after which a write is shown as waiting.
_SHOWN_AFTER = 3.0


@dataclass
class _Waiting:
    change: Change[Any]
    done: asyncio.Future[Any]
    answer: Any = None
    refusal: PatternmillError | None = None


class LedgerWriter:
    """Runs changes on a thread of its own; a change is durable when its `write` returns.

    A change that raises a PatternmillError must have written nothing before; it alone is refused. Any other
    error takes the whole group back, and each of its writes raises LedgerError: from then on every write does.
    """

    def __init__(
        self,
        ledger: Ledger,
        lease: Lease | None = None,
        *,
        linger: timedelta = timedelta(milliseconds=40),
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
        uptime: Callable[[], float] = uptime,
    ) -> None:
        self._ledger = ledger
        self._sleep, self._clock, self._uptime = sleep, clock, uptime
        #: When the last commit began, which only the holder of the lease can make.
        self._committed_at = uptime()
        #: When the write that is under way began.
        self._writing_since: float | None = None
        #: Since when the database is unavailable; reset once it answers.
        self._unavailable_since: float | None = None
        self._shortened_at: float | None = None
        self.lease = lease
        self._linger = linger.total_seconds()
        self._waiting: list[_Waiting] = []
        self._flusher: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="ledger")
        #: Why nothing can be written any more.
        self.broken: PatternmillError | None = None

    async def write(self, change: Change[T]) -> T:
        """Make a change durable, in one commit with the other changes of the next few milliseconds."""
        if self.broken is not None:
            raise self.broken
        waiting = _Waiting(change, asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        if self._flusher is None or self._flusher.done():
            self._flusher = asyncio.create_task(self._flush())
        # A cancelled caller does not take its change back: it may be in the commit already.
        return cast(T, await asyncio.shield(waiting.done))

    async def confirm_lease(self) -> None:
        """Be sure that the lease is not another's by now: a process that was stopped for a while, or whose machine
        was, goes on where it was.

        Returns at once as long as commits, as of heartbeats, show it. Raises LeaseLost, or why nothing can be written.
        """
        while self._uptime() - self._committed_at > CONFIRMED_FOR.total_seconds():
            await self.write(lambda ledger: None)

    def now(self) -> float:
        """The ledger's time, in Unix seconds: it never goes back."""
        return self._ledger.now()

    @property
    def waiting(self) -> str:
        """For people: that the database is waited for, and for how long; empty otherwise."""
        since = self._writing_since
        seconds = 0.0 if since is None else self._clock() - since
        if seconds < _SHOWN_AFTER:
            return ""
        return f"waiting for the ledger's {self._ledger.database.name} since {duration(seconds)}"

    def shorten_wait(self) -> None:
        """A person has stopped the run: wait less for an unavailable database."""
        if self._shortened_at is None:
            self._shortened_at = self._clock()

    async def run_patiently(self, work: Callable[[Ledger], T]) -> T:
        """Like `run`, and wait for an unavailable database; for work that may be done twice."""
        return await self.run(lambda ledger: self._patiently(lambda: work(ledger)))

    async def run(self, work: Callable[[Ledger], T]) -> T:
        """Run something on the writer's thread that keeps its own transactions."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, self._ledger)

    async def close(self) -> None:
        """Write what waits, then end the thread and close the ledger, which the writer owns."""
        while self._flusher is not None and not self._flusher.done():
            await asyncio.wait([self._flusher])
        await asyncio.to_thread(self._thread.shutdown)
        self._ledger.close()

    async def _flush(self) -> None:
        while self._waiting:
            await asyncio.sleep(self._linger)
            group, self._waiting = self._waiting, []
            loop = asyncio.get_running_loop()
            try:
                await loop.run_in_executor(self._thread, self._patiently, partial(self._commit, group))
            except Exception as error:
                self.broken = _broken(error)
                _refuse(group + self._waiting, self.broken)
                self._waiting = []
                return
            for waiting in group:
                _answer(waiting)

    def _patiently(self, work: Callable[[], T]) -> T:
        """Do work again whose database became unavailable, also when its commit was done and only the answer was lost.

        Every change is one that finds itself done: an intent that is known is returned, a state that is reached
        stays. Once past its deadline, a database is tried only once for each write.
        """
        self._writing_since = began = self._clock()
        try:
            for pause in chain(_PAUSES, repeat(_PAUSES[-1])):
                try:
                    answer = work()
                except LedgerUnavailable as error:
                    self._log_unavailable(began, error)
                    if self._clock() >= self._deadline():
                        raise
                    self._sleep(pause)
                else:
                    self._log_available()
                    return answer
            raise AssertionError("there is always another pause")
        finally:
            self._writing_since = None

    def _log_unavailable(self, since: float, error: LedgerUnavailable) -> None:
        if self._unavailable_since is None:
            self._unavailable_since = since
            logger.warning("%s It is waited for, for %.0f s at most.", error.message, _PATIENCE)

    def _log_available(self) -> None:
        if self._unavailable_since is not None:
            seconds = self._clock() - self._unavailable_since
            logger.warning(
                "The ledger's %s answers again, after %.0f s.", self._ledger.database.name, seconds
            )
            self._unavailable_since = None

    def _deadline(self) -> float:
        assert self._unavailable_since is not None, "it is unavailable"
        until = self._unavailable_since + _PATIENCE
        if self._shortened_at is None:
            return until
        return min(until, max(self._unavailable_since, self._shortened_at) + _PATIENCE_STOPPED)

    def _commit(self, group: list[_Waiting]) -> None:
        began = self._uptime()
        with self._ledger.transaction(self.lease):
            for waiting in group:
                waiting.refusal = None
                try:
                    waiting.answer = waiting.change(self._ledger)
                except LedgerError:
                    raise
                except PatternmillError as refusal:
                    waiting.refusal = refusal
        self._committed_at = began


def _answer(waiting: _Waiting) -> None:
    if waiting.done.done():
        return
    if waiting.refusal is not None:
        waiting.done.set_exception(waiting.refusal)
        # The caller may have been cancelled since.
        waiting.done.exception()
    else:
        waiting.done.set_result(waiting.answer)


def _refuse(group: list[_Waiting], error: PatternmillError) -> None:
    for waiting in group:
        if not waiting.done.done():
            waiting.done.set_exception(error)
            waiting.done.exception()


def _broken(error: Exception) -> PatternmillError:
    if isinstance(error, PatternmillError):
        return error
    return LedgerError(
        f"The ledger could not be written: {type(error).__name__}: {error}.",
        remedy="Nothing that it acknowledged is lost. Mend the cause, then run the same command again.",
    )
