"""A plan cut into parts for several processes: rows that share an item stay together, parts are about as large."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from patternmill.identifiers import ItemKey
from patternmill.planning.plan import TO_DO, Plan, PlannedRow, Reason


def cut(plan: Plan, parts: int) -> list[list[PlannedRow]]:
    """The rows to do in at most `parts` parts, none of them empty; the same plan is always cut alike.

    What earlier runs have begun is divided evenly, because each part resumes that first: so all parts together
    stay within the window from their first second.
    """
    begun: list[list[PlannedRow]] = []
    fresh: list[list[PlannedRow]] = []
    for rows in _together(plan):
        (begun if any(is_begun(plan, row) for row in rows) else fresh).append(rows)
    both = zip(_slices(begun, parts), _slices(fresh, parts), strict=True)
    return [part for one, other in both if (part := one + other)]


def is_begun(plan: Plan, row: PlannedRow) -> bool:
    """Whether the service may have a job for it just now."""
    return any(plan.items[key].reason is Reason.CONTINUED for key in row.keys)


def shares(total: int, parts: int) -> list[int]:
    """`total` divided among `parts`; the first ones get one more where a remainder is left."""
    return [total // parts + (number < total % parts) for number in range(parts)]


def _together(plan: Plan) -> Iterable[list[PlannedRow]]:
    """Rows to do in groups that share nothing which is still to be made, in the order of the first row of each.

    Rows of one pattern stay together even if it exists.
    """
    groups: dict[int, list[PlannedRow]] = {}
    group_of: dict[ItemKey, int] = {}
    for number, row in enumerate(plan.to_do()):
        shared = [key for key in row.keys if plan.items[key].reason in TO_DO] + [plan.first_pattern(row)]
        known = sorted({group_of[key] for key in shared if key in group_of})
        first = known[0] if known else number
        groups.setdefault(first, []).append(row)
        for other in known[1:]:
            groups[first] += groups[other]
            group_of |= {key: first for one in groups.pop(other) for key in one.keys if key in group_of}
        group_of |= dict.fromkeys(shared, first)
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
