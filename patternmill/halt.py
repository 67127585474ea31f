"""Decides whether more is begun: of a stage, by how it stands; of a run; in a process that is to end."""

import asyncio
import contextlib
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from patternmill.errors import Halted, LeaseLost, Refusal
from patternmill.states import Attempt, Outcome, State

#: How long what is in flight is followed after a person's stop, in seconds; after others, to its end.
DRAIN = 20.0
_ALIKE, _IN_A_ROW, _PROBES = 3, 5, 4
_ENDS = frozenset({"failed", "rejected", "held", "given_up"})
REMEDY = (
    "If that is about these rows, correct them; if it is about the account or the service, mend that. "
    "Then run the same command again: it begins with four, and goes on once one has ended well."
)


class Event(NamedTuple):
    """A change of an item on record. `counts` is false where it ended as it had before."""

    item_id: str
    state: str
    code: str = ""
    counts: int = 1


@dataclass(frozen=True)
class Standing:
    """Says whether more of a stage may be begun: `room` items (None: any number), unless there is a `problem`."""

    room: int | None = None
    problem: str = ""


def standing(tail: Sequence[Event], is_open: bool, accepted_here: bool) -> Standing:
    """Return how a stage stands after the events since its last good end, or its last halt if that is later.

    `is_open`: there was a good end, and no halt since; else the stage begins with four items, and four bad ends halt
    it. An open stage is halted by three refused alike without an acceptance between, or by five items in a row that
    ended without a usable result. An item counts once. `accepted_here`: the running run has had a request accepted, so
    that refusals that name their row are about the row.
    """
    begun = set[str]()
    for event in tail:
        if event.state == "intended":
            begun.add(event.item_id)
    bad: dict[str, str] = {}
    ended, refused = set[str](), dict[str, str]()
    for event in tail:
        if event.state == "accepted":
            refused.clear()
        if event.state not in _ENDS:
            continue
        ended.add(event.item_id)
        is_row = event.code == "invalid_request" and accepted_here
        if event.counts and not is_row and (is_open or event.item_id in begun):
            bad[event.item_id] = event.state
            if event.state == "rejected":
                refused[event.item_id] = event.code
    alike = max(Counter(refused.values()).values(), default=0)
    if is_open and alike >= _ALIKE:
        return Standing(0, f"{alike} were refused alike, and none was accepted between")
    if len(bad) >= (_IN_A_ROW if is_open else _PROBES):
        return Standing(0, f"{len(bad)} in a row ended without a usable result")
    return Standing(None if is_open else max(_PROBES - len(bad) - len(begun - ended), 0))


@dataclass(eq=False)
class Halt:
    """Whether nothing more is begun. A person's stop overrides other reasons, and a lost lease that."""

    reason: Refusal | None = None
    #: Why nothing more of a stage is begun, while all else goes on.
    stages: dict[str, Halted] = field(default_factory=dict)
    #: Set, and replaced by another, whenever those who wait are to look again.
    news: asyncio.Event = field(default_factory=asyncio.Event)
    _until: float | None = None

    def __bool__(self) -> bool:
        return self.reason is not None

    @property
    def first_reason(self) -> Refusal | None:
        """Return why the run did not do all that it was to do, or None."""
        return self.reason or next(iter(self.stages.values()), None)

    def set(self, reason: Refusal) -> None:
        """Begin nothing more, for the weightiest of the reasons so far."""
        if _weight(reason) > _weight(self.reason):
            self.reason = reason
            patience = {2: DRAIN, 3: 0.0}.get(_weight(reason))
            self._until = None if patience is None else time.monotonic() + patience
            self.wake()

    def wake(self) -> None:
        """Let everybody who waits look again."""
        self.news.set()
        self.news = asyncio.Event()

    def stop(self) -> None:
        """Halt as a person asks for."""
        message = "It was stopped; what was in flight was followed for a while."
        self.set(Halted(Outcome.CANCELLED, "stopped", message, "Run the same command again."))

    async def until_over(self, work: "asyncio.Task[None]") -> None:
        """Wait for the work, and after a halt for as long as it allows; what is left then is cancelled.

        Being cancelled, as the run of a parent is, is a person's stop too.
        """
        while not work.done():
            left = None if self._until is None else self._until - time.monotonic()
            if left is not None and left < 0.001:
                work.cancel()
                await asyncio.wait({work})
                break
            changed = asyncio.create_task(self.news.wait())
            try:
                await asyncio.wait({work, changed}, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            except asyncio.CancelledError:
                self.stop()
            finally:
                changed.cancel()
        if not work.cancelled():
            work.result()


def _weight(reason: Refusal | None) -> int:
    if isinstance(reason, LeaseLost):
        return 3
    return 0 if reason is None else 2 if getattr(reason, "outcome", "") == Outcome.CANCELLED else 1


@dataclass(eq=False)
class Admission:
    """Lets items of a stage begin as the stage's standing allows, and next attempts once another has ended well."""

    halt: Halt
    standings: Mapping[str, Standing]
    _in_flight: Counter[str] = field(default_factory=Counter)
    #: Items that were let in, and whose intent is not on record yet.
    _coming: Counter[str] = field(default_factory=Counter)
    #: The good ends of each stage so far, and how many there were as an attempt failed.
    _good: Counter[str] = field(default_factory=Counter)
    _good_before: dict[str, int] = field(default_factory=dict)
    _waiting: Counter[str] = field(default_factory=Counter)
    _watchers: int = 0

    def may_begin(self, stage: str) -> bool:
        """Return whether items of the stage are begun at all."""
        return not self.halt and stage not in self.halt.stages

    async def admit(self, stage: str) -> bool:
        """Wait until an item of the stage may be begun, and count it; False where the run or the stage is halted."""
        while self.may_begin(stage):
            room = self.standings.get(stage, Standing()).room
            if room is None or room > self._coming[stage] or not self._in_flight[stage] + self._coming[stage]:
                self._coming[stage] += 1
                return True
            await self._news()
        return False

    def enter(self, stage: str) -> None:
        """Count an item that is being made."""
        self._in_flight[stage] += 1

    def begun(self, stage: str) -> None:
        """Take note that the intent of an item that was let in is on record, or will never be."""
        self._coming[stage] -= 1
        self._wake()

    def leave(self, stage: str) -> None:
        """Count an item that is no longer being made."""
        self._in_flight[stage] -= 1
        self._wake()

    def note(self, attempt: Attempt) -> str:
        """Take note of what became of an attempt; return why nothing more of its stage is begun, if that is new."""
        if attempt.state is State.FAILED:
            self._good_before[attempt.request_id] = self._good[attempt.stage]
        if attempt.result_id:
            self._good[attempt.stage] += 1
        self._wake()
        problem = self.standings.get(attempt.stage, Standing()).problem
        return "" if attempt.stage in self.halt.stages else problem

    def halt_stage(self, stage: str, problem: str, last: str) -> None:
        """Begin nothing more of a stage."""
        text, words = f"Of {stage}s, {problem}.", f"The last: {last.removesuffix('.')}."
        self.halt.stages[stage] = Halted(Outcome.FAILED, "no_good_end", text, f"{words} {REMEDY}")
        self._wake()

    async def another_ends_well(self, failed: Attempt) -> bool:
        """Wait until another item of a failed one's stage has ended well since; False where none can any more."""
        stage = failed.stage
        before = self._good_before.get(failed.request_id, self._good[stage])
        self._waiting[stage] += 1
        self._wake()
        try:
            while self._good[stage] == before:
                if not self.may_begin(stage) or self._waiting[stage] >= self._in_flight[stage]:
                    return False
                await self._news()
            return True
        finally:
            self._waiting[stage] -= 1

    async def _news(self) -> None:
        self._watchers += 1
        try:
            await self.halt.news.wait()
        finally:
            self._watchers -= 1

    def _wake(self) -> None:
        if self._watchers:
            self.halt.wake()


@dataclass(eq=False)
class Stops:
    """The signals that end this process, passed on to the runs in it and then to who handled them before."""

    #: Whether the process is to end: no run begins any more.
    is_stopped: bool = False
    #: Whether the process is a command of ours, which ends by itself.
    is_command: bool = False
    #: The signal that came.
    number: int = 0
    _halts: list[Callable[[], Any]] = field(default_factory=list)
    _before: dict[int, Any] = field(default_factory=dict)

    @contextlib.contextmanager
    def watched(self, halt: Halt) -> Iterator[None]:
        """Let a first Ctrl-C or SIGTERM halt the run, and a second one end the process."""
        loop = asyncio.get_running_loop()
        stop: Callable[[], Any] = lambda: loop.call_soon_threadsafe(halt.stop)  # noqa: E731
        self._halts.append(stop)
        if len(self._halts) == 1 and threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._stop)
        try:
            yield
        finally:
            self._halts.remove(stop)
            if not self._halts:
                for before, handler in self._before.items():
                    signal.signal(before, handler)

    def _stop(self, number: int, frame: Any) -> None:
        if self.is_stopped:
            os._exit(128 + number)
        self.is_stopped = True
        self.number = number
        for stop in self._halts:
            stop()

    def pass_on(self) -> None:
        """Tell who handled the signal before: a parent flow, a worker. A command of ours has nobody else."""
        handler = self._before.get(self.number) if self.is_stopped and not self._halts else None
        self._before = {}
        if callable(handler) and not self.is_command:
            handler(self.number, None)


stops = Stops()
