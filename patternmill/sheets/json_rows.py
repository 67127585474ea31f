"""JSON rows: one object a line, or one array of objects; numbers are the texts that are written."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from patternmill.catalog.problems import FileCode, refusal
from patternmill.catalog.read_limits import Reading
from patternmill.sheets.tables import Sheet, rectangular
from patternmill.text import shown


class _Written(float):
    """A number with a fraction or exponent, as it is written."""

    def __new__(cls, text: str) -> _Written:
        number = super().__new__(cls, text)
        number.text = text
        return number

    text: str


#: Python refuses to read longer ones, with advice for programmers.
_MOST_DIGITS = 4_000


def _whole(text: str) -> int:
    if len(text) > _MOST_DIGITS:
        raise ValueError(f"a number has more than {_MOST_DIGITS:,} digits")
    return int(text)


def json_sheet(text: str, name: str, reading: Reading) -> tuple[str, Sheet]:
    """The format's name and the rows, from row 2 on: the header, all keys in their order, is row 1."""
    text = text.removeprefix("\ufeff")
    if text.lstrip().startswith("["):
        kind, objects = "JSON array", _items(text, name)
    else:
        kind, objects = "JSON lines", _lines(text, name, reading)
    found = [(number, _object(value, name, number)) for number, value in objects]
    header = dict.fromkeys(key for _, one in found for key in one)
    reading.check_cells(max((number for number, _ in found), default=0), len(header))
    rows = [(number, [_cell(one.get(key)) for key in header]) for number, one in found]
    _refuse_halves([*header, *(cell for _, cells in rows for cell in cells)], name)
    return kind, Sheet(rectangular([(1, [*header]), *rows], reading))


def _items(text: str, name: str) -> Iterator[tuple[int, Any]]:
    yield from enumerate(_parsed(text, name, None), 2)


def _lines(text: str, name: str, reading: Reading) -> Iterator[tuple[int, Any]]:
    for number, line in enumerate(text.split("\n"), 1):
        if number % 1024 == 0:
            reading.check_time()
        if line.strip():
            yield number + 1, _parsed(line, name, number)


def _parsed(text: str, name: str, line: int | None) -> Any:
    try:
        return json.loads(text, parse_float=_Written, parse_int=_whole, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        at = line or getattr(error, "lineno", 1)
        why = "nested too deeply" if isinstance(error, RecursionError) else str(getattr(error, "msg", error))
        raise refusal(
            FileCode.MALFORMED_JSON,
            f"{name} is not valid JSON in line {at}: {why}.",
            "Write one object a line, or one array of objects.",
        ) from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"an object has the key {shown(next(k for k in keys if keys.count(k) > 1))} twice")
    return found


def _object(value: Any, name: str, number: int) -> Mapping[str, Any]:
    if isinstance(value, dict):
        return value
    raise refusal(
        FileCode.MALFORMED_JSON,
        f'{name}: item {number - 1} is no object, as in {{"sku": "A1", "prompt": "..."}}.',
        "Write one object a line, or one array of objects.",
    )


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, _Written):
        return value.text
    return json.dumps(value, ensure_ascii=False)


def _refuse_halves(texts: list[str], name: str) -> None:
    try:
        "".join(texts).encode()
    except UnicodeEncodeError:
        raise refusal(
            FileCode.UNREADABLE_ENCODING,
            f"{name} holds half a character: an escape like \\ud83d without its second half.",
            "Write the whole character.",
        ) from None
