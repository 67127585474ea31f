"""Depth first: bounds the rows that own a pattern and wait for their product, so that a stop strands few."""

from __future__ import annotations

import asyncio
from collections import deque

from patternmill.identifiers import ItemKey

#: Rows of one shard that share a pattern: the shard's number, the pattern, and how many rows they are.
Group = tuple[int, ItemKey | None, int]


class Depth:
    """At most `most` rows are between the beginning of their pattern and the end of their product.

    A group with more rows than that goes alone. Only the rows of a shard that is open are counted: those of
    a later one could not end before it opens, and all would wait for one another.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._free = most
        self._rows: dict[Group, int] = {}
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    async def enter(self, group: Group) -> None:
        """Wait for room for all rows of a group, first come, first served."""
        needed = min(group[2], self._most)
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
        self._rows[group] = group[2]

    def enter_at_once(self, group: Group) -> None:
        """Count a group whose pattern exists; it does not wait, so that there may be more than `most`."""
        self._rows[group] = group[2]
        self._free -= min(group[2], self._most)

    def leave(self, group: Group) -> None:
        """One row of a group has ended; a group that never entered does not count."""
        rows = self._rows.get(group)
        if rows is None:
            return
        if rows <= self._most:
            self._free += 1
        if rows == 1:
            del self._rows[group]
        else:
            self._rows[group] = rows - 1
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
