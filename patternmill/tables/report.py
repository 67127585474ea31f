"""The report of a check for the person who corrects the sheet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from patternmill.planning.problems import OF_A_WORD, rows_named
from patternmill.tables.checks import Checked
from patternmill.text import plain, plural

_MOST_CAUSES = 30
_EXAMPLES = 2
_LONGEST = 400


def report_lines(checked: Checked, *, everything: bool = False) -> list[str]:
    """Return the report as plain lines that are safe on any terminal: the causes, then the summary.

    `everything`: whether each problem is listed before them.
    """
    lines = [f"Note: {plain(note, _LONGEST)}" for note in checked.notes]
    if checked.problems.empty:
        return [*lines, summary(checked)]
    if everything:
        lines += ["Problems:", *_problem_lines(checked.problems), ""]
    return [*lines, *cause_lines(checked, None if everything else _MOST_CAUSES), "", summary(checked)]


def report_json(checked: Checked) -> dict[str, Any]:
    """Return the report for programs; docs/commands.md states the fields, none of which changes its meaning."""
    sheet, header = checked.catalog.sheet, checked.catalog.sheet.header
    usual = {"format": "CSV", "encoding": sheet.layout.encoding}
    layout = usual if sheet.layout.is_usual else sheet.layout.on_record()
    problems = checked.problems.assign(cell=None)
    for position, name in reversed(list(enumerate(header))):
        rows = problems.loc[problems["column"].eq(name), "row"]
        problems.loc[rows.index, "cell"] = sheet.column(position).reindex(rows).to_numpy()
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
        "problems": [
            {**record, "offered": list(record["offered"])} for record in problems.to_dict("records")
        ],
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


def cause_lines(checked: Checked, most: int | None = _MOST_CAUSES) -> Iterator[str]:
    """Yield the causes for which rows are refused, each with its rows, by code, column and any word that is wrong.

    Where the messages of its rows differ, two of them follow as examples.
    """
    yield "Causes:"
    problems = checked.problems
    is_of_word = problems["code"].isin(OF_A_WORD)
    causes = pd.DataFrame(
        {
            "code": problems["code"],
            "column": problems["column"].fillna(""),
            "word": problems["value"].where(is_of_word).fillna(""),
            "suggestion": problems["suggestion"].where(is_of_word).fillna(""),
        }
    )
    number = causes.groupby(list(causes), sort=False).ngroup()
    counts = number.value_counts(sort=False).sort_index().sort_values(ascending=False, kind="stable")
    for cause in counts.index[:most]:
        of_cause = problems[number.eq(cause)]
        rows, different = rows_named(of_cause["row"]), of_cause.drop_duplicates(["message", "remedy"])
        if len(different) == 1:
            yield _problem_line({**different.iloc[0], "sku": None}, rows)
            continue
        code, column = different[["code", "column"]].iloc[0]
        yield f"  {rows}{f', {plain(column)}' if column else ''}: {code}, as in"
        yield from (f"  {line}" for line in _problem_lines(different.head(_EXAMPLES)))
    if most is not None and len(counts) > most:
        yield f"  and {plural(len(counts) - most, 'more cause')}; `patternmill check --all` lists them"


def _problem_lines(problems: pd.DataFrame) -> Iterator[str]:
    for problem in problems.to_dict("records"):
        yield _problem_line(problem, f"row {problem['row']}")


def _problem_line(problem: Mapping[Any, Any], rows: str) -> str:
    place = f", {plain(problem['column'])}" if problem["column"] else ""
    sku = f" ({plain(problem['sku'])})" if problem["sku"] else ""
    text = f"{problem['message']}; {problem['remedy']}" if problem["remedy"] else problem["message"]
    return f"  {rows}{sku}{place}: {plain(text, _LONGEST)} [{problem['code']}]"
