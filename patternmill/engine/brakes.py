"""Brakes for refusals and failures in a row, with no success in between."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from patternmill.engine.progress import Halt, HaltReason
from patternmill.identifiers import ItemKey, RequestId
from patternmill.planning.items import Item
from patternmill.service.jobs import CREATES
from patternmill.service.outcomes import Refusal
from patternmill.states import REFUSED_ALIKE, UNCLEAR_REFUSAL, AttemptState, Outcome, Stage
from patternmill.text import plural

#: When this many different items are refused in the same way, it may not be about their rows.
REFUSED_ENOUGH = 3
#: When this many different items of a stage fail, with no success in between, the service may be at fault.
FAILED_ENOUGH = 5
#: Seconds since its acceptance after which a failed job may get the attempt that tests the service.
TESTED_AFTER = 3600


class RefusedAlike:
    """A count of the refusals of one run, which halts the run where they may be about the account.

    From the third one on, nothing is begun. Creates that are out are still answered: an acceptance of the same kind
    ends the suspicion; without one, the run is halted.
    """

    def __init__(self, halt: Halt, to_make: Iterable[Item] = ()) -> None:
        """Take as `to_make` all items of the run: where there are few, fewer refusals are suspicious."""
        self._halt = halt
        self._to_make = Counter(map(kind_of, to_make))
        #: The requests refused since one of their kind was last accepted, by kind and by how they were refused.
        self._refused = defaultdict[str, defaultdict[str, dict[ItemKey, RequestId]]](
            lambda: defaultdict(dict)
        )
        self._unanswered = Counter[str]()
        #: By kind, why the run is halted unless one of the kind is accepted; and the number of suspicions so far.
        self._suspected: dict[str, HaltReason] = {}
        self.suspicions = 0
        #: Not set while nothing is begun and an acceptance may still end that.
        self.settled = asyncio.Event()
        self.settled.set()

    @contextmanager
    def sending(self, item: Item) -> Iterator[None]:
        """Count a create as unanswered from before it is sent until its answer is on record."""
        self._unanswered[kind_of(item)] += 1
        try:
            yield
        finally:
            self._unanswered[kind_of(item)] -= 1
            self._settle()

    def accepted(self, item: Item) -> None:
        self._refused.pop(kind_of(item), None)
        self._suspected.pop(kind_of(item), None)
        self._settle()

    def refused(self, item: Item, request_id: RequestId, refusal: Refusal) -> list[RequestId]:
        """Count a refusal; return all requests refused in the same way where it may not be about their rows."""
        kind = kind_of(item)
        alike = self._refused[kind][refusal.alike]
        alike[item.key] = request_id
        if len(alike) < min(REFUSED_ENOUGH, self._to_make[kind] or REFUSED_ENOUGH):
            return []
        if len(alike) >= REFUSED_ENOUGH and kind not in self._suspected:
            self._suspected[kind] = _reason(item, len(alike), refusal)
            self.suspicions += 1
            self.settled.clear()
            self._settle()
        return list(alike.values())

    def _settle(self) -> None:
        """Halt the run once no acceptance can end the suspicion."""
        if not any(self._unanswered[kind] for kind in self._suspected):
            for reason in self._suspected.values():
                self._halt.begin(reason)
            self.settled.set()


def kind_of(item: Item) -> str:
    """Return the operation that makes an item."""
    return item.operation or CREATES[item.stage]


def _reason(item: Item, count: int, refusal: Refusal) -> HaltReason:
    once = " once you know that nothing exists for them" if refusal.code == UNCLEAR_REFUSAL else ""
    message = (
        f"{plural(count, item.stage)} in a row were refused in the same way. {refusal.message} If that is about these "
        f"rows, correct them{once}; if it is about the account, run the same command again."
    )
    return HaltReason(Outcome.FAILED, REFUSED_ALIKE, message)


class FailureBrake:
    """A count of the failures of one run, which holds new attempts at a stage back until one of its items succeeds.

    Once nothing else is being made, one attempt per stage and run may test whether the service works again.
    """

    def __init__(self, in_flight: Callable[[], int]) -> None:
        """Take as `in_flight` a function that returns the number of items being made, including those held back."""
        self._in_flight = in_flight
        self._failed = defaultdict[Stage, set[ItemKey]](set)
        #: By stage, the item whose next attempt is the test; None once that has failed too.
        self._tests: dict[Stage, ItemKey | None] = {}
        self._waiting = 0
        self._changed = asyncio.Event()

    def note(self, item: Item, state: AttemptState) -> None:
        """Note how an attempt of this run ended."""
        if state is AttemptState.FAILED:
            self._failed[item.stage].add(item.key)
            if self._tests.get(item.stage) == item.key:
                self._tests[item.stage] = None
        elif state is AttemptState.SUCCEEDED:
            self._failed[item.stage].clear()
            self.wake()

    def holds(self, item: Item) -> bool:
        """Return whether a new attempt at this item is held back."""
        is_test = self._tests.get(item.stage) == item.key
        return len(self._failed[item.stage]) >= FAILED_ENOUGH and not is_test

    async def wait(self, item: Item, is_stopped: Callable[[], bool], *, may_test: bool) -> str:
        """Wait until a new attempt is no longer held back; return why it still is once nothing else is being made."""
        while self.holds(item) and not is_stopped():
            if self._waiting + 1 >= self._in_flight():
                if may_test and item.stage not in self._tests:
                    self._tests[item.stage] = item.key
                    break
                count = len(self._failed[item.stage])
                return f"{count} of {count} failed"
            self._waiting += 1
            try:
                await self._changed.wait()
            finally:
                self._waiting -= 1
        return ""

    def wake(self) -> None:
        """Let attempts that are held back look again."""
        self._changed.set()
        self._changed = asyncio.Event()
