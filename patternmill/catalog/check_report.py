"""The report of a check for the person who corrects the file: the causes first, then every problem."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from patternmill.catalog.problems import Problem, RowCode
from patternmill.catalog.row_checks import CheckedCatalog
from patternmill.text import plain, plural, shown

_MOST_RANGES = 6
_MOST_CAUSES = 30
_LONGEST = 400

Cause = tuple[RowCode, str]


def report_lines(checked: CheckedCatalog, *, limit: int = 40) -> list[str]:
    """The report as plain lines, safe on any terminal; `limit` is how many problems are listed one by one."""
    lines = [summary(checked), *(f"Note: {plain(note, _LONGEST)}" for note in checked.notes)]
    if checked.problems:
        lines += ["", "Causes:", *_cause_lines(checked.problems)]
        lines += ["", "Problems:", *_problem_lines(checked.problems, limit)]
    return lines


def summary(checked: CheckedCatalog) -> str:
    rows = plural(len(checked.entries), "row")
    blank = f", {plural(checked.file.blank_rows, 'blank row')} skipped" if checked.file.blank_rows else ""
    name = plain(checked.file.name)
    if not checked.refused_count:
        return f"{name}: {rows}, all accepted{blank}."
    return f"{name}: {rows}, {checked.accepted_count:,} accepted, {checked.refused_count:,} refused{blank}."


def line_ranges(lines: Iterable[int], most: int = _MOST_RANGES) -> str:
    """Row numbers in short: `2-5, 9 and 3 more rows`."""
    ranges = _ranges(sorted(set(lines)))
    named = ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges[:most])
    more = sum(last - first + 1 for first, last in ranges[most:])
    return named + (f" and {plural(more, 'more row')}" if more else "")


def _ranges(lines: Sequence[int]) -> list[tuple[int, int]]:
    ranges: list[tuple[int, int]] = []
    for line in lines:
        if ranges and ranges[-1][1] == line - 1:
            ranges[-1] = (ranges[-1][0], line)
        else:
            ranges.append((line, line))
    return ranges


def _cause_lines(problems: Sequence[Problem]) -> Iterator[str]:
    causes: dict[Cause, list[Problem]] = defaultdict(list)
    for problem in problems:
        causes[problem.code, problem.column or ""].append(problem)
    ordered = sorted(causes.items(), key=lambda cause: -len(cause[1]))
    for (code, column), found in ordered[:_MOST_CAUSES]:
        place = f" in {shown(column)}" if column else ""
        lines = {problem.line for problem in found}
        yield f"  {code}{place}: {plural(len(lines), 'row')} ({line_ranges(lines)})"
    if len(ordered) > _MOST_CAUSES:
        yield f"  and {plural(len(ordered) - _MOST_CAUSES, 'more cause')}"


def _problem_lines(problems: Sequence[Problem], limit: int) -> Iterator[str]:
    for problem in problems[:limit]:
        place = f", {plain(problem.column)}" if problem.column else ""
        sku = f" ({plain(problem.sku)})" if problem.sku else ""
        yield f"  row {problem.line}{sku}{place}: {plain(str(problem), _LONGEST)} [{problem.code}]"
    if len(problems) > limit:
        yield f"  and {plural(len(problems) - limit, 'more problem')}"
