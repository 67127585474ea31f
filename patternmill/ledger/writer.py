"""The one writer of a ledger: groups the changes of many tasks into one commit, because a commit is what costs."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from itertools import chain, repeat
from typing import Any, TypeVar, cast

from patternmill.errors import LedgerUnavailable, LedgerError, PatternmillError
from patternmill.ledger.ledger import Lease, Ledger

T = TypeVar("T")
Change = Callable[[Ledger], T]
logger = logging.getLogger(__name__)

#: Seconds between tries while the ledger's database does not answer, and after how many it is given up; what is tried
#: by then may take as long as one answer.
_PAUSES = (0.2, 0.5, 1.0, 2.0, 3.0, 5.0)
_PATIENCE = 60.0
#: The same from when a person has stopped the run.
_PATIENCE_STOPPED = 10.0
#: A write that takes longer is shown as one that is waited for.
_UNREMARKABLE = 3.0


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
        hold: Lease | None = None,
        *,
        linger: timedelta = timedelta(milliseconds=4),
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ledger = ledger
        self._sleep, self._clock = sleep, clock
        #: Since when a write is under way, which a database that is away may make long.
        self._writing_since: float | None = None
        #: Since when its database is away; one that was given up is away until it answers.
        self._away_since: float | None = None
        self._hurried_at: float | None = None
        self.hold = hold
        self._linger = linger.total_seconds()
        self._waiting: list[_Waiting] = []
        self._flusher: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="ledger")
        #: Why nothing can be written any more, once that is so.
        self.broken: PatternmillError | None = None

    async def write(self, change: Change[T]) -> T:
        """Make a change durable, together with what others want written within the next few milliseconds."""
        if self.broken is not None:
            raise self.broken
        waiting = _Waiting(change, asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        if self._flusher is None or self._flusher.done():
            self._flusher = asyncio.create_task(self._flush())
        # A cancelled caller does not take its change back: it may be in the commit already.
        return cast(T, await asyncio.shield(waiting.done))

    def now(self) -> float:
        """The ledger's time, in Unix seconds: never earlier than the last one given."""
        return self._ledger.now()

    @property
    def waiting(self) -> str:
        """What is waited for just now, and since when; empty while all goes well."""
        since = self._writing_since
        seconds = 0.0 if since is None else self._clock() - since
        if seconds < _UNREMARKABLE:
            return ""
        return f"waiting for the ledger's {self._ledger.database.name} since {seconds:.0f} s"

    def hurry(self) -> None:
        """A person has stopped the run: a database that is away is not waited for much longer."""
        if self._hurried_at is None:
            self._hurried_at = self._clock()

    async def replayable(self, work: Callable[[Ledger], T]) -> T:
        """Like `aside`, for work that may be done twice: a database that went away is waited for."""
        return await self.aside(lambda ledger: self._patiently(lambda: work(ledger)))

    async def aside(self, work: Callable[[Ledger], T]) -> T:
        """Run something on the writer's thread that keeps its own transactions."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, self._ledger)

    async def close(self) -> None:
        """Write what waits, then end the thread and the ledger's connection, which is the writer's own."""
        while self._flusher is not None and not self._flusher.done():
            await asyncio.wait([self._flusher])
        await asyncio.to_thread(self._thread.shutdown)
        self._ledger.database.close()

    async def _flush(self) -> None:
        while self._waiting:
            await asyncio.sleep(self._linger)
            group, self._waiting = self._waiting, []
            loop = asyncio.get_running_loop()
            try:
                await loop.run_in_executor(self._thread, self._commit, group)
            except Exception as error:
                self.broken = _broken(error)
                _refuse(group + self._waiting, self.broken)
                self._waiting = []
                return
            for waiting in group:
                _answer(waiting)

    def _commit(self, group: list[_Waiting]) -> None:
        self._patiently(lambda: self._commit_once(group))

    def _patiently(self, work: Callable[[], T]) -> T:
        """Do work again whose database went away under it, also when its commit was done and only unheard.

        Every change is one that finds itself done: an intent that is known is returned, a state that is reached
        stays. A database that was given up once is tried only once from then on.
        """
        self._writing_since = began = self._clock()
        try:
            for pause in chain(_PAUSES, repeat(_PAUSES[-1])):
                try:
                    answer = work()
                except LedgerUnavailable as away:
                    self._is_away(began, away)
                    if self._clock() >= self._given_up_at():
                        raise
                    self._sleep(pause)
                else:
                    self._is_back()
                    return answer
            raise AssertionError("there is always another pause")
        finally:
            self._writing_since = None

    def _is_away(self, since: float, away: LedgerUnavailable) -> None:
        if self._away_since is None:
            self._away_since = since
            logger.warning("%s It is waited for, for %.0f s at most.", away.message, _PATIENCE)

    def _is_back(self) -> None:
        if self._away_since is not None:
            away = self._clock() - self._away_since
            logger.warning("The ledger's %s answers again, after %.0f s.", self._ledger.database.name, away)
            self._away_since = None

    def _given_up_at(self) -> float:
        assert self._away_since is not None, "it is away"
        until = self._away_since + _PATIENCE
        if self._hurried_at is None:
            return until
        return min(until, max(self._away_since, self._hurried_at) + _PATIENCE_STOPPED)

    def _commit_once(self, group: list[_Waiting]) -> None:
        with self._ledger.transaction(self.hold):
            for waiting in group:
                waiting.refusal = None
                try:
                    waiting.answer = waiting.change(self._ledger)
                except LedgerError:
                    raise
                except PatternmillError as refusal:
                    waiting.refusal = refusal


def _answer(waiting: _Waiting) -> None:
    if waiting.done.done():
        return
    if waiting.refusal is not None:
        waiting.done.set_exception(waiting.refusal)
        # Whoever asked may have been cancelled since.
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
