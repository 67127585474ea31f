"""Groups: how the rows that a run drives are parted, so that each item belongs to one group alone."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import ceil

from patternmill.identifiers import ItemKey
from patternmill.planning.plan import Plan, PlannedRow
from patternmill.states import Stage
from patternmill.text import plain

#: A run has at most so many groups, so that its page in the Prefect UI stays usable, and a group at least so many rows.
MOST_GROUPS, LEAST_ROWS = 500, 20


@dataclass(frozen=True)
class Group:
    """Rows of one plan that are driven together, in the order of the file; `number` counts from 1."""

    number: int
    rows: tuple[PlannedRow, ...]

    def describe(self) -> str:
        """`rows 21-40 · SPR-021 … SPR-040`; `20 rows of 21-400 · …` where others are between them."""
        first, last = self.rows[0], self.rows[-1]
        low, high = first.entry.record.line, last.entry.record.line
        if len(self.rows) == 1:
            return f"row {low} · {plain(first.sku)}"
        is_whole = last.position - first.position + 1 == len(self.rows)
        lines = f"rows {low}-{high}" if is_whole else f"{len(self.rows):,} rows of {low}-{high}"
        return f"{lines} · {plain(first.sku)} … {plain(last.sku)}"


def groups_of(plan: Plan) -> list[Group]:
    """Return the rows that need work, in groups: those of one pattern together, those of one reference not."""
    rows = list(plan.to_do())
    parts = partition([[key for key in row.keys if not _is_reference(plan, key)] for row in rows])
    return [Group(number, tuple(rows[row] for row in part)) for number, part in enumerate(parts, start=1)]


def _is_reference(plan: Plan, key: ItemKey) -> bool:
    return plan.items[key].item.stage is Stage.REFERENCE


def partition(rows: Sequence[Collection[ItemKey]]) -> list[list[int]]:
    """The indexes of rows in groups, by nothing but the keys of their items: the same wherever it is called.

    Rows that share an item are in one group, however large that is; else groups are filled in the order of the rows.
    """
    enough = max(LEAST_ROWS, ceil(len(rows) / MOST_GROUPS))
    groups: list[list[int]] = []
    for sharing in _sharing(rows):
        if not groups or len(groups[-1]) >= enough:
            groups.append([])
        groups[-1] += sharing
    return [sorted(group) for group in groups]


def _sharing(rows: Sequence[Collection[ItemKey]]) -> list[list[int]]:
    """The rows that share items, whether directly or through other rows; in the order of the first of them."""
    parents = list(range(len(rows)))
    first_with: dict[ItemKey, int] = {}

    def root(row: int) -> int:
        while parents[row] != row:
            parents[row] = parents[parents[row]]
            row = parents[row]
        return row

    for row, keys in enumerate(rows):
        for key in keys:
            one, other = sorted((root(row), root(first_with.setdefault(key, row))))
            parents[other] = one
    sharing: dict[int, list[int]] = {}
    for row in range(len(rows)):
        sharing.setdefault(root(row), []).append(row)
    return list(sharing.values())
