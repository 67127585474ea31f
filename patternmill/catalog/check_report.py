"""The report of a check for the person who corrects the file."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from patternmill.catalog.problems import OF_A_WORD, Problem, RowCode, rows_named
from patternmill.catalog.row_checks import CheckedCatalog
from patternmill.text import plain, plural, shown

_MOST_CAUSES = 30
_EXAMPLES = 2
_LONGEST = 400

#: Code, column, and the word that is wrong with the one that was probably meant; empty where there is none.
Cause = tuple[RowCode, str, str, str]


def report_lines(checked: CheckedCatalog, *, everything: bool = False) -> list[str]:
    """The report as plain lines, safe on any terminal: the causes, and last the summary.

    `everything`: before them each problem.
    """
    lines = [f"Note: {plain(note, _LONGEST)}" for note in checked.notes]
    if checked.problems and everything:
        lines += ["Problems:", *map(_problem_line, checked.problems), ""]
    if checked.problems:
        lines += ["Causes:", *_cause_lines(checked.problems, None if everything else _MOST_CAUSES), ""]
    return [*lines, summary(checked)]


def report_json(checked: CheckedCatalog) -> dict[str, Any]:
    """The same for programs; docs/operations.md states the fields. A field may be added, none changes its meaning."""
    file = checked.file
    return {
        "schema_version": 1,
        "file": {"name": file.name, "sha256": file.layout.sha256 if file.layout else file.sha256},
        "layout": file.layout.on_record() if file.layout else {"format": "CSV", "encoding": file.encoding},
        "columns": dict(zip(file.header, file.mapping.applied(file.header), strict=True)),
        "rows": len(checked.entries),
        "accepted": checked.accepted_count,
        "refused": checked.refused_count,
        "blank_rows": file.blank_rows,
        "notes": list(checked.notes),
        "problems": [
            _problem_json(problem, entry.record.cells, file.header)
            for entry in checked.entries
            for problem in entry.problems
        ],
    }


def _problem_json(problem: Problem, cells: Sequence[str], header: Sequence[str]) -> dict[str, Any]:
    index = header.index(problem.column) if problem.column in header else None
    return {
        "row": problem.line,
        "column": problem.column,
        "cell": None if index is None or index >= len(cells) else cells[index],
        "sku": problem.sku,
        "code": problem.code.value,
        "message": problem.message,
        "remedy": problem.remedy,
        "value": problem.value,
        "suggestion": problem.suggestion,
        "offered": list(problem.offered),
    }


def summary(checked: CheckedCatalog) -> str:
    rows = plural(len(checked.entries), "row")
    blank = f", {plural(checked.file.blank_rows, 'blank row')} skipped" if checked.file.blank_rows else ""
    name = plain(checked.file.name)
    if not checked.refused_count:
        return f"{name}: {rows}, all accepted{blank}."
    return f"{name}: {rows}, {checked.accepted_count:,} accepted, {checked.refused_count:,} refused{blank}."


def _cause_lines(problems: Sequence[Problem], limit: int | None) -> Iterator[str]:
    causes: dict[Cause, list[Problem]] = defaultdict(list)
    for problem in problems:
        word = (problem.value if problem.code in OF_A_WORD else None) or ""
        meant = (problem.suggestion if word else None) or ""
        causes[problem.code, problem.column or "", word, meant].append(problem)
    ordered = sorted(causes.items(), key=lambda cause: -len(cause[1]))
    for (code, column, word, meant), found in ordered[:limit]:
        what = f"{code} {shown(word)}" if word else code
        place = f" in {shown(column)}" if column else ""
        rows = rows_named(problem.line for problem in found)
        hint = f", did you mean {shown(meant)}?" if meant else ""
        yield f"  {what}{place}: {rows}{hint}"
        # Of one word, or one sku, each row has the same to say.
        different: dict[str, Problem] = {}
        for problem in found:
            different.setdefault(str(problem), problem)
        yield from (f"  {_problem_line(one)}" for one in list(different.values())[:_EXAMPLES])
    if limit is not None and len(ordered) > limit:
        yield f"  and {plural(len(ordered) - limit, 'more cause')}; `patternmill check --all` lists them"


def _problem_line(problem: Problem) -> str:
    place = f", {plain(problem.column)}" if problem.column else ""
    sku = f" ({plain(problem.sku)})" if problem.sku else ""
    return f"  row {problem.line}{sku}{place}: {plain(str(problem), _LONGEST)} [{problem.code}]"
