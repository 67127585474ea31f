"""Shards: the rows of a plan that need work, cut into what is driven, and shown, together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from patternmill.catalog.problems import plain
from patternmill.identifiers import ItemKey
from patternmill.planning.plan import Plan, PlannedRow, Reason


@dataclass(frozen=True)
class Shard:
    """Rows of one plan that are driven together; `number` counts from 1."""

    number: int
    rows: tuple[PlannedRow, ...]

    def describe(self) -> str:
        return rows_named(self.rows)


def rows_named(rows: Sequence[PlannedRow]) -> str:
    first = min(rows, key=lambda row: row.position)
    last = max(rows, key=lambda row: row.position)
    skus = plain(first.sku) if len(rows) == 1 else f"{plain(first.sku)} … {plain(last.sku)}"
    return f"rows {first.entry.record.line}-{last.entry.record.line} · {skus}"


def cut_into_shards(plan: Plan, size: int) -> list[Shard]:
    """The rows that need work, in order, `size` a shard.

    But rows of one pattern stay together, and those whose pattern exists already go first: so that a stop finds few
    patterns without their products.
    """
    groups: dict[ItemKey | None, list[PlannedRow]] = {}
    for row in plan.to_do():
        groups.setdefault(row.pattern, []).append(row)
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
    assert row.pattern is not None and row.product is not None, "a row to do has items"
    reasons = (plan.patterns[row.pattern].reason, plan.products[row.product].reason)
    if Reason.TRIED_AGAIN in reasons:
        return 2
    return 0 if reasons[0] is Reason.DONE else 1
