"""Is it the items, or is it the service? After failures alone, new attempts at a stage are held back."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable

from patternmill.identifiers import ItemKey
from patternmill.planning.items import Item
from patternmill.states import AttemptState, Stage

#: So many different items of a stage that failed, with no success between, may be no failures.
ENOUGH = 5


class FailureBrake:
    """Counts what fails in one run, and holds new attempts at its stage back until something of it ends well."""

    def __init__(self, in_flight: Callable[[], int]) -> None:
        """`in_flight`: how many items are being made, those that are held back included."""
        self._in_flight = in_flight
        self._failed = defaultdict[Stage, set[ItemKey]](set)
        self._waiting = 0
        self._changed = asyncio.Event()

    def note(self, item: Item, state: AttemptState) -> None:
        """Take in how an attempt of this run ended."""
        if state is AttemptState.FAILED:
            self._failed[item.stage].add(item.key)
        elif state is AttemptState.SUCCEEDED:
            self._failed[item.stage].clear()
            self.wake()

    def holds(self, stage: Stage) -> bool:
        """Return whether new attempts at this stage are held back."""
        return len(self._failed[stage]) >= ENOUGH

    async def wait(self, stage: Stage, is_stopped: Callable[[], bool]) -> str:
        """Wait until new attempts are not held back; return why they are once nothing else is being made."""
        while self.holds(stage) and not is_stopped():
            if self._waiting + 1 >= self._in_flight():
                count = len(self._failed[stage])
                return f"{count} of {count} failed"
            self._waiting += 1
            await self._changed.wait()
            self._waiting -= 1
        return ""

    def wake(self) -> None:
        """Have those that are held back look again."""
        self._changed.set()
        self._changed = asyncio.Event()
