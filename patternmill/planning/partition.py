"""A plan cut into parts for several processes: rows that share a pattern stay together, parts are about as large."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from patternmill.identifiers import ItemKey
from patternmill.planning.plan import Plan, PlannedRow, Reason


def cut(plan: Plan, parts: int) -> list[list[PlannedRow]]:
    """The rows to do in at most `parts` parts, none of them empty; the same plan is always cut alike.

    What earlier runs have begun is divided evenly, because each part resumes that first: so all parts together
    stay within the window from their first second.
    """
    begun: list[list[PlannedRow]] = []
    fresh: list[list[PlannedRow]] = []
    for rows in _by_pattern(plan):
        (begun if any(is_begun(plan, row) for row in rows) else fresh).append(rows)
    both = zip(_slices(begun, parts), _slices(fresh, parts), strict=True)
    return [part for one, other in both if (part := one + other)]


def is_begun(plan: Plan, row: PlannedRow) -> bool:
    """Whether the service may have a job for it just now."""
    assert row.pattern is not None and row.product is not None, "a row to do has items"
    reasons = (plan.patterns[row.pattern].reason, plan.products[row.product].reason)
    return Reason.CONTINUED in reasons


def shares(total: int, parts: int) -> list[int]:
    """`total` divided among `parts`; the first ones get one more where a remainder is left."""
    return [total // parts + (number < total % parts) for number in range(parts)]


def _by_pattern(plan: Plan) -> Iterable[list[PlannedRow]]:
    """Rows to do that share a pattern, in the order of the first of each."""
    groups: defaultdict[ItemKey | None, list[PlannedRow]] = defaultdict(list)
    for row in plan.to_do():
        groups[row.pattern].append(row)
    return groups.values()


def _slices(groups: Sequence[list[PlannedRow]], parts: int) -> list[list[PlannedRow]]:
    """Neighbouring groups in `parts` slices of about as many rows; a group goes where its middle falls."""
    total = sum(map(len, groups))
    slices: list[list[PlannedRow]] = [[] for _ in range(parts)]
    before = 0
    for group in groups:
        slices[min(parts - 1, int((before + len(group) / 2) * parts / total))].extend(group)
        before += len(group)
    return slices
