"""How many rows are begun at once: depth first, so that a stop finds few patterns without their products."""

from __future__ import annotations

import asyncio
from collections import deque

from patternmill.identifiers import ItemKey


class Depth:
    """At most `most` rows are between the beginning of their pattern and the end of their product.

    A pattern with more rows than that goes alone.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._free = most
        self._rows: dict[ItemKey, int] = {}
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    async def enter(self, pattern: ItemKey, rows: int) -> None:
        """Wait for room for all rows of a pattern, first come, first served."""
        needed = min(rows, self._most)
        if self._waiting or needed > self._free:
            turn = asyncio.get_running_loop().create_future()
            self._waiting.append((needed, turn))
            try:
                await turn
            except asyncio.CancelledError:
                self._withdraw(needed, turn)
                raise
        else:
            self._free -= needed
        self._rows[pattern] = rows

    def enter_at_once(self, pattern: ItemKey, rows: int) -> None:
        """Count the rows of a pattern that exists; they do not wait, so that there may be more than `most`."""
        self._rows[pattern] = rows
        self._free -= min(rows, self._most)

    def leave(self, pattern: ItemKey) -> None:
        """One row of a pattern has ended; a pattern that never entered does not count."""
        rows = self._rows.get(pattern)
        if rows is None:
            return
        if rows <= self._most:
            self._free += 1
        if rows == 1:
            del self._rows[pattern]
        else:
            self._rows[pattern] = rows - 1
        self._admit()

    def _admit(self) -> None:
        while self._waiting and self._waiting[0][0] <= self._free:
            needed, turn = self._waiting.popleft()
            if not turn.done():
                self._free -= needed
                turn.set_result(None)

    def _withdraw(self, needed: int, turn: asyncio.Future[None]) -> None:
        if turn.done() and not turn.cancelled():
            self._free += needed
        self._admit()
