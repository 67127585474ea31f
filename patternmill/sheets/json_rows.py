"""JSON lines: one object a line; numbers are the texts that are written."""

from __future__ import annotations

import json
from typing import Any

from patternmill.catalog.problems import FileCode, refusal
from patternmill.catalog.read_limits import Reading
from patternmill.errors import InputRefused
from patternmill.sheets.tables import Sheet, rectangular
from patternmill.text import shown


class _Written(float):
    """A number with a fraction or exponent, as it is written."""

    def __new__(cls, text: str) -> _Written:
        number = super().__new__(cls, text)
        number.text = text
        return number

    text: str


def json_sheet(text: str, name: str, reading: Reading) -> Sheet:
    """The rows, from row 2 on: the header, all keys in their order, is row 1. Raises InputRefused."""
    found: list[tuple[int, dict[str, Any]]] = []
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), 1):
        reading.check_rows(number)
        if line.strip():
            found.append((number + 1, _object(line, name, number)))
    header = dict.fromkeys(key for _, one in found for key in one)
    rows = [(number, [_cell(one.get(key)) for key in header]) for number, one in found]
    try:
        "".join([*header, *(cell for _, cells in rows for cell in cells)]).encode()
    except UnicodeEncodeError:
        half = f"{name} holds half a character: an escape like \\ud83d without its second half."
        raise refusal(FileCode.UNREADABLE_ENCODING, half, "Write the whole character.") from None
    return Sheet(rectangular([(1, [*header]), *rows], reading))


def _object(text: str, name: str, line: int) -> dict[str, Any]:
    try:
        value = json.loads(text, parse_float=_Written, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        why = "nested too deeply" if isinstance(error, RecursionError) else str(getattr(error, "msg", error))
        raise _malformed(f"{name} is not valid JSON in line {line}: {why}.") from None
    if not isinstance(value, dict):
        raise _malformed(f'{name}: line {line} is no object, as in {{"sku": "A1", "prompt": "..."}}.')
    return value


def _malformed(message: str) -> InputRefused:
    return refusal(FileCode.MALFORMED_JSON, message, "Write one object a line.")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"an object has the key {shown(next(k for k in keys if keys.count(k) > 1))} twice")
    return found


def _cell(value: Any) -> str:
    if isinstance(value, _Written):
        return value.text
    return value or "" if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False)
