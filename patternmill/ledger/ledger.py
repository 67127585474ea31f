"""The ledger: what was requested from the service, under which ID, and what came of it; how it is opened; its writer.

The writer groups the changes of many tasks into one commit, because commits are what takes time.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from itertools import chain, repeat
from pathlib import Path
from typing import Any, Self, TypeVar

from patternmill.addresses import shown_address
from patternmill.errors import ConfigurationError, LedgerError, LedgerUnavailable, PatternmillError
from patternmill.ledger.brake import Brake, Pause
from patternmill.ledger.catalogs import Catalogs
from patternmill.ledger.database import LEDGER_FILE, Clock, Database, Tables, not_in_place
from patternmill.ledger.purchases import Purchases, log_transition
from patternmill.ledger.records import Lease
from patternmill.ledger.runs import Runs
from patternmill.ledger.spending import Approvals
from patternmill.ledger.sqlite import EmptyDatabase, SqliteDatabase
from patternmill.parameters import UPGRADE
from patternmill.processes import uptime
from patternmill.settings import Settings
from patternmill.text import duration

#: The beginning of the address of an SQLite file; every other address is of PostgreSQL.
_FILE = "sqlite:///"


class Ledger(Tables):
    """Everything that is written to one database, and what a run reads back; `reports/` has what people read.

    Writes are called inside `transaction()`. Not safe for several threads at once: one thread writes (see
    `LedgerWriter`), and readers open a ledger of their own. As a context manager it closes itself.
    """

    def __init__(self, database: Database, *, clock: Callable[[], float] | None = None) -> None:
        """Use `clock` in place of the database's, in tests."""
        super().__init__(database, Clock(clock or database.time))
        self.brake = Brake(database, self.now)
        self.approvals = Approvals(database, self.now)
        self.purchases = Purchases(database, self.now, self.approvals)
        self.runs = Runs(database, self.now, self.purchases)
        self.catalogs = Catalogs(database, self.now, self.runs)
        ((self.identity, self.schema),) = database.rows("SELECT id, schema FROM ledger")

    @contextmanager
    def transaction(self, lease: Lease | None = None) -> Iterator[None]:
        """Do all or nothing. With `lease`, raise LeaseLost when another run took over the catalog or the group.

        Raises LedgerError when the ledger is no longer the one that was opened, or has another schema by now.
        """
        self.purchases.transitions.clear()
        with self.database.transaction():
            self._require_same()
            if lease is not None:
                (self.catalogs.check_fence if lease.group is None else self.runs.check_group)(lease)
            yield
            # Checked again: what is committed to a file that was removed meanwhile is lost.
            self.database.require_in_place()
        for transition in self.purchases.transitions:
            log_transition(transition)

    def _require_same(self) -> None:
        """Raise LedgerError if this is no longer the ledger that was opened, or now has another schema.

        Reads the brake too: whoever sets it waits for the lock that is taken here.
        """
        self.database.require_in_place()
        query = f"SELECT id, schema, brake FROM ledger{self.database.share_suffix}"
        for identity, schema, brake in self.database.rows(query):
            if (identity, schema) == (self.identity, self.schema):
                self.brake.look(brake)
                return
            if identity == self.identity:
                raise LedgerError(
                    f"The ledger in {self.database.place} was brought from schema {self.schema} to {schema} while it "
                    "was in use: this process is of another version, and buys nothing more.",
                    code="ledger_schema",
                    remedy="Update patternmill here, then run the same command again.",
                )
        raise not_in_place(self.database.name)

    def close(self, *error: object) -> None:
        """Close its connection."""
        self.database.close()

    def __enter__(self) -> Self:
        return self

    __exit__ = close


def open_database(url: str, *, may_upgrade: bool = False) -> Database:
    """Open the ledger's database, and make its tables where there are none.

    `may_upgrade`: a person has copied an older one in PostgreSQL. Raises LedgerError, and ConfigurationError for a
    ledger that this version cannot read.
    """
    if url.startswith(_FILE):
        return SqliteDatabase(Path(url.removeprefix(_FILE)))
    from patternmill.ledger.postgres import PostgresDatabase  # loads psycopg

    return PostgresDatabase(url, may_upgrade=may_upgrade)


def open_ledger(settings: Settings, *, must_exist: bool = False) -> Ledger:
    """Open the ledger that the settings name, and bring it up to this version: `with open_ledger(settings) as ledger`.

    If none exists, makes one, or with `must_exist` raises ConfigurationError.
    """
    if must_exist and not has_ledger(settings):
        raise ConfigurationError(
            f"There is no ledger in {settings.home}: nothing was imported from here yet.",
            remedy="Go to the folder of the import, or set PATTERNMILL_HOME or PATTERNMILL_LEDGER_URL.",
        )
    return Ledger(open_database(ledger_url(settings), may_upgrade=settings.confirms(UPGRADE)))


def ledger_to_read(settings: Settings) -> Ledger:
    """Open the ledger that the settings name, or an empty one where none exists: a reader makes none."""
    return open_ledger(settings) if has_ledger(settings) else Ledger(EmptyDatabase())


def every_ledger(settings: Settings) -> Iterator[Ledger]:
    """Yield each ledger of the home that exists, the embedded studio's too; each is closed when the next is read."""
    files = (folder / LEDGER_FILE for folder in (settings.home, settings.home / "embedded"))
    urls = [ledger_url(settings)] if settings.ledger_url is not None else []
    for url in dict.fromkeys([*urls, *(f"{_FILE}{file.absolute()}" for file in files if file.exists())]):
        with Ledger(open_database(url, may_upgrade=settings.confirms(UPGRADE))) as ledger:
            yield ledger


def ledger_url(settings: Settings) -> str:
    """Return the address of the ledger, which may contain a password."""
    if settings.ledger_url is not None:
        return settings.ledger_url.get_secret_value()
    return f"{_FILE}{(ledger_folder(settings) / LEDGER_FILE).absolute()}"


def ledger_place(settings: Settings) -> str:
    """Return where the ledger is, for people: its file, or its database without the parts that may be secret."""
    return shown_address(ledger_url(settings).removeprefix(_FILE))


def has_ledger(settings: Settings) -> bool:
    """Return whether a ledger exists; opening one would make it."""
    return settings.ledger_url is not None or (ledger_folder(settings) / LEDGER_FILE).exists()


def ledger_folder(settings: Settings) -> Path:
    """Return the folder of SQLite's file. The embedded studio has its own: no real service made its products."""
    embedded = settings.home / "embedded"
    if settings.embedded:
        return embedded
    is_read_only = settings.studio_url is None and (embedded / LEDGER_FILE).exists()
    return embedded if is_read_only else settings.home


T = TypeVar("T")
Change = Callable[[Ledger], T]
logger = logging.getLogger(__name__)

#: The seconds between tries while the ledger's database is unavailable, and those after which the run gives up; a try
#: that has begun by then is still waited for.
_PAUSES = (0.2, 0.5, 1.0, 2.0, 3.0, 5.0)
_PATIENCE = 60.0
#: The seconds after which a run that a person has stopped gives up.
_PATIENCE_STOPPED = 10.0
#: How long a commit proves that the lease is held: longer than between two heartbeats, shorter than a takeover waits.
CONFIRMED_FOR = timedelta(seconds=6)
#: Seconds after which a write is shown as waiting.
_SHOWN_AFTER = 3.0


class LedgerWriter:
    """Runs changes on a thread of its own; a change is durable when its `write` returns.

    A change that raises a PatternmillError must have written nothing before; it alone is refused. Any other
    error rolls the whole group back, and each of its writes raises LedgerError, as does every later write.
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
        #: When the last commit began. A commit proves that the lease is held.
        self._committed_at = uptime()
        #: When the current write began.
        self._writing_since: float | None = None
        #: When the database became unavailable; reset once it answers.
        self._unavailable_since: float | None = None
        self._patience = _PATIENCE
        self.lease = lease
        self._linger = linger.total_seconds()
        #: Changes that are not durable yet, each with the future that its caller awaits.
        self._pending: list[tuple[Change[Any], asyncio.Future[Any]]] = []
        self._flusher: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="ledger")
        #: Why nothing can be written any more.
        self.broken: PatternmillError | None = None
        #: What has paused the holder's catalog, as of the last commit.
        self.paused: Pause | None = None
        self._on_pause: Callable[[Pause], None] = lambda pause: None
        self._is_quiet: Callable[[], bool] = lambda: True
        #: The last count of the brake that was obeyed, and the last one with no create in flight from before it.
        self._obeyed = self._acknowledged = 0

    async def write(self, change: Change[T]) -> T:
        """Make a change durable, in one commit with the other changes of the next few milliseconds."""
        if self.broken is not None:
            raise self.broken
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._pending.append((change, done))
        if self._flusher is None or self._flusher.done():
            self._flusher = asyncio.create_task(self._flush())
        # A cancelled caller does not take its change back: it may be in the commit already.
        return await asyncio.shield(done)

    async def confirm_lease(self) -> None:
        """Make sure that no other run has taken the lease over.

        A process, or a machine, that was suspended for a while continues as if nothing had happened. Returns at once
        while recent commits, such as heartbeats, show it. Raises LeaseLost, or why nothing can be written.
        """
        while self._uptime() - self._committed_at > CONFIRMED_FOR.total_seconds():
            await self.write(lambda ledger: None)

    def heed(self, on_pause: Callable[[Pause], None], is_quiet: Callable[[], bool]) -> None:
        """Call `on_pause` with any pause of the holder's catalog, now or later, so that no further create is sent.

        The call comes before anybody learns of the commit that found the pause. The first beat after `is_quiet` says
        that no create from before is in flight acknowledges the pause.
        """
        self._on_pause, self._is_quiet = on_pause, is_quiet
        if self.paused is not None:
            on_pause(self.paused)

    async def write_beat(self, beat: Callable[[Ledger, int], T]) -> T:
        """Write a heartbeat with the last count of the brake for which no paused create is in flight."""
        if self._is_quiet():
            self._acknowledged = self._obeyed
        count = self._acknowledged
        return await self.write(lambda ledger: beat(ledger, count))

    @property
    def is_awaited(self) -> bool:
        """Return whether somebody who has set the brake waits for another beat."""
        return self.paused is not None and self._acknowledged != self._obeyed

    def _obey(self) -> None:
        """Obey the brake as the last commit read it, before any caller of that commit continues."""
        count = self._ledger.brake.count
        if self.lease is None or count == self._obeyed:
            return
        self.paused = self._ledger.brake.pause_of(self.lease.environment, self.lease.catalog)
        if self.paused is not None:
            self._on_pause(self.paused)
        self._obeyed = count

    def now(self) -> float:
        """Return the ledger's time, in Unix seconds: it never goes back."""
        return self._ledger.now()

    @property
    def waiting(self) -> str:
        """Return, for people, how long the database has been unavailable; empty while it is not."""
        since = self._writing_since
        seconds = 0.0 if since is None else self._clock() - since
        if seconds < _SHOWN_AFTER:
            return ""
        return f"waiting for the ledger's {self._ledger.database.name} since {duration(seconds)}"

    def shorten_wait(self) -> None:
        """Shorten the wait for an unavailable database, because a person has stopped the run."""
        self._patience = _PATIENCE_STOPPED

    async def run_patiently(self, work: Callable[[Ledger], T]) -> T:
        """Run work as `run` does, and wait for an unavailable database; the work may be done twice."""
        return await self.run(partial(self._patiently, work))

    async def run(self, work: Callable[[Ledger], T]) -> T:
        """Run work, which makes its own transactions, on the writer's thread."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, self._ledger)

    async def close(self) -> None:
        """Write what is pending, then end the thread and close the ledger, which the writer owns."""
        while self._flusher is not None and not self._flusher.done():
            await asyncio.wait([self._flusher])
        await asyncio.to_thread(self._thread.shutdown)
        self._ledger.close()

    async def _flush(self) -> None:
        while self._pending:
            await asyncio.sleep(self._linger)
            group, self._pending = self._pending, []
            try:
                results = await self.run_patiently(partial(self._commit, [change for change, _ in group]))
                self._obey()
            except Exception as error:
                self.broken = error if isinstance(error, PatternmillError) else _unwritable(error)
                group, self._pending = [*group, *self._pending], []
                results = [self.broken] * len(group)
            for (_, done), result in zip(group, results, strict=True):
                _resolve(done, result)

    def _patiently(self, work: Callable[[Ledger], T], ledger: Ledger) -> T:
        """Repeat work while the database is unavailable, even if the commit was made and only word of it was lost.

        Each change recognizes that it was made: an intent on record is returned, and a state already reached stays.
        Past the deadline, the database is tried only once for each write.
        """
        self._writing_since = began = self._clock()
        try:
            for pause in chain(_PAUSES, repeat(_PAUSES[-1])):
                try:
                    result = work(ledger)
                    break
                except LedgerUnavailable as error:
                    if self._unavailable_since is None:
                        self._unavailable_since = began
                        logger.warning(
                            "%s It is waited for, for %.0f s at most.", error.message, self._patience
                        )
                    if self._clock() >= self._unavailable_since + self._patience:
                        raise
                    self._sleep(pause)
        finally:
            self._writing_since = None
        if self._unavailable_since is not None:
            name, seconds = self._ledger.database.name, self._clock() - self._unavailable_since
            logger.warning("The ledger's %s answers again, after %.0f s.", name, seconds)
            self._unavailable_since = None
        return result

    def _commit(self, changes: list[Change[Any]], ledger: Ledger) -> list[Any]:
        """Make changes in one transaction; return what each returned, or why it was refused."""
        began = self._uptime()
        with ledger.transaction(self.lease):
            results = [_result_of(change, ledger) for change in changes]
        self._committed_at = began
        return results


def _result_of(change: Change[Any], ledger: Ledger) -> Any:
    try:
        return change(ledger)
    except LedgerError:
        raise
    except PatternmillError as refusal:
        return refusal


def _resolve(done: asyncio.Future[Any], result: Any) -> None:
    """Pass a result on to its caller, who may have been cancelled since."""
    if done.done():
        return
    if isinstance(result, PatternmillError):
        done.set_exception(result)
        done.exception()
    else:
        done.set_result(result)


def _unwritable(error: Exception) -> LedgerError:
    return LedgerError(
        f"The ledger could not be written: {type(error).__name__}: {error}.",
        remedy="Nothing that it acknowledged is lost. Mend the cause, then run the same command again.",
    )
