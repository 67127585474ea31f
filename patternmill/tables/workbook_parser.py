"""Parses the workbook on standard input into JSON on standard output. A program of its own, within limits."""

import io
import json
import resource
import sys
from datetime import date, datetime, time, timedelta
from typing import Any

_MEMORY, _SECONDS, _MOST_CELLS = 2 << 30, 60, 20_000_000


def main() -> None:
    """Write the visible worksheets; exit with another code than 0 where that takes too much, or is impossible."""
    from python_calamine import CalamineWorkbook, SheetVisibleEnum

    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (_SECONDS, _SECONDS))
    book, sheets = CalamineWorkbook.from_filelike(io.BytesIO(sys.stdin.buffer.read())), []
    for one in book.sheets_metadata:
        sheet = book.get_sheet_by_name(one.name) if one.visible == SheetVisibleEnum.Visible else None
        if sheet is None or not sheet.total_height:
            continue
        if sheet.total_height * sheet.total_width > _MOST_CELLS:
            raise SystemExit(1)
        rows: list[list[Any]] = sheet.to_python(skip_empty_area=False)
        for (top, left), (bottom, _) in sheet.merged_cell_ranges or ():
            for row in rows[top + 1 : bottom + 1]:
                row[left] = rows[top][left]
        odd: list[tuple[int, int, str]] = []
        for number, row in enumerate(rows, 1):
            for at, cell in enumerate(row):
                row[at], kind = _text(cell)
                odd += [(number, at, kind)] if kind else []
        sheets.append({"name": one.name, "rows": rows, "odd": odd})
    json.dump(sheets, sys.stdout)


def _text(cell: Any) -> tuple[str, str]:
    """Return a cell as text, and what it is if it is none."""
    if isinstance(cell, str):
        return cell, ""
    if isinstance(cell, float | int) and not isinstance(cell, bool):
        return f"{cell:.15g}", "a number"
    if isinstance(cell, datetime) and cell.time() == time():
        cell = cell.date()
    nouns = {bool: "truth value", time: "time", timedelta: "duration", date: "date", datetime: "date"}
    text = str(cell).upper() if isinstance(cell, bool) else str(cell)
    return text, f"the {nouns.get(type(cell), 'value')} {text}"


if __name__ == "__main__":
    main()
