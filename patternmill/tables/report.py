"""The report of a check for the person who corrects the sheet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from patternmill.planning.problems import OF_A_WORD, Problem, rows_named
from patternmill.tables.checks import Checked
from patternmill.text import plain, plural

_MOST_CAUSES = 30
_EXAMPLES = 2
_LONGEST = 400
#: Of a problem, for programs, as they are.
_FIELDS = ("sku", "column", "code", "message", "remedy", "value", "suggestion")


def report_lines(checked: Checked, *, everything: bool = False) -> list[str]:
    """Return the report as plain lines, safe on any terminal: the causes, and last the summary.

    `everything`: before them each problem.
    """
    lines = [f"Note: {plain(note, _LONGEST)}" for note in checked.notes]
    if not checked.problems:
        return [*lines, summary(checked)]
    if everything:
        lines += ["Problems:", *_problem_lines(checked.problems), ""]
    return [*lines, *cause_lines(checked, None if everything else _MOST_CAUSES), "", summary(checked)]


def cause_lines(checked: Checked, most: int | None = _MOST_CAUSES) -> list[str]:
    """Return what is wrong with the refused rows, each cause once with its rows."""
    return ["Causes:", *_cause_lines(checked.problems, most)]


def report_json(checked: Checked) -> dict[str, Any]:
    """Return the same for programs; docs/commands.md states the fields, of which none changes its meaning."""
    sheet, header = checked.catalog.sheet, checked.catalog.sheet.header
    usual = {"format": "CSV", "encoding": sheet.layout.encoding}
    layout = usual if sheet.layout.is_usual else sheet.layout.on_record()
    cells = dict(sheet.records()) if checked.problems else {}
    places = {name: at for at, name in reversed(list(enumerate(header)))}
    problems = []
    for problem in checked.problems:
        cell = cells[problem.line][places[problem.column]] if problem.column is not None else None
        fields = {name: getattr(problem, name) for name in _FIELDS}
        problems.append({"row": problem.line, **fields, "offered": list(problem.offered), "cell": cell})
    return {
        "schema_version": 1,
        "file": {"name": sheet.name, "sha256": sheet.layout.sha256},
        "layout": layout,
        "columns": dict(zip(header, checked.catalog.mapping.applied(header), strict=True)),
        "rows": len(sheet.rows),
        "accepted": len(checked.rows),
        "refused": checked.refused_count,
        "blank_rows": sheet.blank_rows,
        "notes": list(checked.notes),
        "problems": problems,
    }


def summary(checked: Checked) -> str:
    """Return how many rows are accepted and refused, in one sentence."""
    sheet = checked.catalog.sheet
    rows, refused = plural(len(sheet.rows), "row"), checked.refused_count
    blank = f", {plural(sheet.blank_rows, 'blank row')} skipped" if sheet.blank_rows else ""
    name = plain(sheet.name)
    if not refused:
        return f"{name}: {rows}, all accepted{blank}."
    return f"{name}: {rows}, {len(checked.rows):,} accepted, {refused:,} refused{blank}."


def _cause_lines(problems: Sequence[Problem], limit: int | None) -> Iterator[str]:
    """Yield each cause with its rows: by code and column, faults of a word by the word too.

    Where its rows have different things to say, two of them follow as examples.
    """
    by_cause: dict[tuple[str | None, ...], list[Problem]] = {}
    for problem in problems:
        word = (problem.value, problem.suggestion) if problem.code in OF_A_WORD else ()
        by_cause.setdefault((problem.code, problem.column, *word), []).append(problem)
    causes = sorted(by_cause.values(), key=len, reverse=True)
    for cause in causes[:limit]:
        rows, first = rows_named(problem.line for problem in cause), cause[0]
        different: dict[str, Problem] = {}
        for problem in cause:
            different.setdefault(str(problem), problem)
        if len(different) == 1:
            yield _problem_line(first, rows, sku=None)
            continue
        column = f", {plain(first.column)}" if first.column else ""
        yield f"  {rows}{column}: {first.code}, as in"
        yield from (f"  {line}" for line in _problem_lines(list(different.values())[:_EXAMPLES]))
    if limit is not None and len(causes) > limit:
        yield f"  and {plural(len(causes) - limit, 'more cause')}; `patternmill check --all` lists them"


def _problem_lines(problems: Sequence[Problem]) -> Iterator[str]:
    return (_problem_line(problem, f"row {problem.line}", problem.sku) for problem in problems)


def _problem_line(problem: Problem, rows: str, sku: str | None) -> str:
    place = f", {plain(problem.column)}" if problem.column else ""
    named = f" ({plain(sku)})" if sku else ""
    return f"  {rows}{named}{place}: {plain(str(problem), _LONGEST)} [{problem.code}]"
