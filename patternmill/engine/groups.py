"""Groups of the rows that a run drives, with each item in only one group; and the window of rows under way."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import ceil

from patternmill.identifiers import ItemKey
from patternmill.planning.plan import Plan, PlannedRow
from patternmill.states import Stage
from patternmill.text import plain

#: The most groups of a run, so that its page in the Prefect UI stays usable, and the fewest rows of a group.
MOST_GROUPS, LEAST_ROWS = 500, 20


@dataclass(frozen=True)
class Group:
    """Rows of one plan that are driven together, in the order of the file; `number` counts from 1."""

    number: int
    rows: tuple[PlannedRow, ...]

    def describe(self) -> str:
        """Name a group: `rows 21-40 · SPR-021 … SPR-040`, or `20 rows of 21-400 · …` where others are between."""
        first, last = self.rows[0], self.rows[-1]
        low, high = first.entry.line, last.entry.line
        if len(self.rows) == 1:
            return f"row {low} · {plain(first.sku)}"
        is_whole = last.position - first.position + 1 == len(self.rows)
        lines = f"rows {low}-{high}" if is_whole else f"{len(self.rows):,} rows of {low}-{high}"
        return f"{lines} · {plain(first.sku)} … {plain(last.sku)}"


class Window:
    """The slots of the rows that may be under way at once; only one task may take them."""

    def __init__(self, slots: int) -> None:
        self._slots, self._taken = slots, 0
        self._changed = asyncio.Event()

    async def take_slot(self) -> None:
        while self._taken >= self._slots:
            await self._change()
        self._taken += 1

    def free_slot(self) -> None:
        self._taken -= 1
        self._changed.set()

    def widen(self, slots: int) -> None:
        self._slots = max(self._slots, slots)
        self._changed.set()

    async def emptied(self) -> None:
        """Wait until no slot is taken."""
        while self._taken:
            await self._change()

    async def _change(self) -> None:
        self._changed.clear()
        await self._changed.wait()


def groups_of(plan: Plan) -> list[Group]:
    """Return the rows that need work, in groups. Rows of one pattern are together; groups may share a reference."""
    rows, references = list(plan.to_do()), plan.of_stage(Stage.REFERENCE)
    parts = partition([[key for key in row.keys if key not in references] for row in rows])
    return [Group(number, tuple(rows[row] for row in part)) for number, part in enumerate(parts, start=1)]


def partition(rows: Sequence[Collection[ItemKey]]) -> list[list[int]]:
    """Return the indexes of rows in groups, which depend on the keys of their items alone, on every machine.

    Rows that share an item are in one group, however large it is; else groups are filled in the order of the rows.
    """
    enough = max(LEAST_ROWS, ceil(len(rows) / MOST_GROUPS))
    groups: list[list[int]] = []
    for sharing in _sharing(rows):
        if not groups or len(groups[-1]) >= enough:
            groups.append([])
        groups[-1] += sharing
    return [sorted(group) for group in groups]


def _sharing(rows: Sequence[Collection[ItemKey]]) -> list[list[int]]:
    """Return the sets of rows that share items, directly or through other rows, in the order of their first rows."""
    parents = list(range(len(rows)))
    first_with: dict[ItemKey, int] = {}

    def root(row: int) -> int:
        while parents[row] != row:
            parents[row] = parents[parents[row]]
            row = parents[row]
        return row

    for row, keys in enumerate(rows):
        for key in keys:
            earlier, later = sorted((root(row), root(first_with.setdefault(key, row))))
            parents[later] = earlier
    sharing: dict[int, list[int]] = {}
    for row in range(len(rows)):
        sharing.setdefault(root(row), []).append(row)
    return list(sharing.values())
