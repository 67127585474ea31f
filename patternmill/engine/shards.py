"""Shards: how the rows of a plan are cut, and how many of them are begun at once, depth first."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass

from patternmill.identifiers import ItemKey
from patternmill.planning.plan import Plan, PlannedRow, Reason
from patternmill.text import plain


@dataclass(frozen=True)
class Shard:
    """Rows of one plan that are driven together; `number` counts from 1."""

    number: int
    rows: tuple[PlannedRow, ...]

    def describe(self) -> str:
        first = min(self.rows, key=lambda row: row.position)
        last = max(self.rows, key=lambda row: row.position)
        skus = plain(first.sku) if len(self.rows) == 1 else f"{plain(first.sku)} … {plain(last.sku)}"
        return f"rows {first.entry.record.line}-{last.entry.record.line} · {skus}"


def cut_into_shards(plan: Plan, size: int) -> list[Shard]:
    """The rows that need work, in order, `size` a shard.

    But rows of one first pattern stay together, and those whose pattern exists already go first: so that a stop finds
    few patterns without their products.
    """
    groups: dict[ItemKey, list[PlannedRow]] = {}
    for row in plan.to_do():
        groups.setdefault(plan.first_pattern(row), []).append(row)
    shards: list[list[PlannedRow]] = [[]]
    for group in sorted(groups.values(), key=lambda rows: _turn(plan, rows[0])):
        for first in range(0, len(group), size):
            part = group[first : first + size]
            if shards[-1] and len(shards[-1]) + len(part) > size:
                shards.append([])
            shards[-1] += part
    return [Shard(number, tuple(rows)) for number, rows in enumerate(shards, start=1) if rows]


def _turn(plan: Plan, row: PlannedRow) -> int:
    """What failed before comes last: by then others have shown whether it is the item's own fault."""
    if any(plan.items[key].reason is Reason.TRIED_AGAIN for key in row.keys):
        return 2
    return 0 if plan.items[plan.first_pattern(row)].reason is Reason.DONE else 1


#: Rows of one shard that share a first pattern: the shard's number, the pattern, and how many rows they are.
Group = tuple[int, ItemKey, int]


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
