"""JSON lines: one object a line; numbers are the texts that are written."""

from __future__ import annotations

import json
from typing import Any

from patternmill.catalog.problems import FileCode, refusal
from patternmill.catalog.read_limits import Reading
from patternmill.sheets.tables import Sheet, rectangular
from patternmill.text import shown


def json_sheet(text: str, name: str, reading: Reading) -> Sheet:
    """The rows, from row 2 on: the header, all keys in their order, is row 1. Raises InputRefused."""
    found: list[tuple[int, dict[str, str]]] = []
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), 1):
        reading.check_rows(number)
        if line.strip():
            try:
                found.append((number + 1, _cells(line)))
            except (ValueError, RecursionError) as error:
                why = "nested too deeply" if isinstance(error, RecursionError) else str(error)
                message = f"{name} is no JSON object in line {number}: {why}."
                raise refusal(FileCode.MALFORMED_JSON, message, "Write one object a line.") from None
    header = dict.fromkeys(key for _, cells in found for key in cells)
    rows = [(number, [cells.get(key, "") for key in header]) for number, cells in found]
    return Sheet(rectangular([(1, [*header]), *rows], reading))


def _cells(line: str) -> dict[str, str]:
    """Raises ValueError, which says why there are none."""
    value = json.loads(line, parse_float=str, parse_int=str, object_pairs_hook=_unique)
    if not isinstance(value, dict):
        raise ValueError('it is not written like {"sku": "A1", "prompt": "..."}')
    cells = {key: _text(one) for key, one in value.items()}
    if any("\ud800" <= sign <= "\udfff" for sign in "".join([*cells, *cells.values()])):
        raise ValueError("it has half a character: an escape like \\ud83d without its second half")
    return cells


def _text(value: Any) -> str:
    return value or "" if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    keys = [key for key, _ in pairs]
    if twice := next((key for key in keys if keys.count(key) > 1), None):
        raise ValueError(f"it has the key {shown(twice)} twice")
    return dict(pairs)
