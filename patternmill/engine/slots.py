"""The slots of one window that several machines share: who of this one asks the ledger for the next, and when."""

from __future__ import annotations

import asyncio
from bisect import insort
from collections.abc import Awaitable, Callable
from contextlib import suppress
from itertools import count
from typing import TypeVar

from patternmill.states import Stage

T = TypeVar("T")

#: Seconds after which a full window is asked again: another machine frees slots too, and nobody says so.
_ASK_EVERY = 0.2
#: So many of the line ask in one transaction: only one machine may at a time, and it takes what is free.
_TOGETHER = 8
#: What finishes something goes first.
_ORDER = {stage: order for order, stage in enumerate(reversed(Stage))}


class Slots:
    """The line of a group's items for the slots of the run's window.

    A slot is an attempt without an end, and is counted in the transaction of the intent: there is nothing to return.
    """

    def __init__(self, window: int) -> None:
        self.window = window
        self._line: list[tuple[int, int]] = []
        self._numbers = count()
        self._freed = asyncio.Event()

    @property
    def waiting(self) -> int:
        """Items of this machine that wait for a slot."""
        return len(self._line)

    async def enter(self, stage: Stage, intend: Callable[[], Awaitable[T | None]]) -> T:
        """What `intend` returns, tried until it is not None; but for the first time by the first of the line alone.

        For the first time by everybody: what was begun before has its slot already.
        """
        if (intended := await intend()) is not None:
            return intended
        place = _ORDER[stage], next(self._numbers)
        insort(self._line, place)
        try:
            while place not in self._line[:_TOGETHER] or (intended := await intend()) is None:
                freed = self._freed
                with suppress(TimeoutError):
                    async with asyncio.timeout(_ASK_EVERY):
                        await freed.wait()
            return intended
        finally:
            self._line.remove(place)
            self.wake()

    def wake(self) -> None:
        """An item of this machine ended, or left the line."""
        self._freed.set()
        self._freed = asyncio.Event()
