"""Reads the columns `refine:<operation>`, whose cells have a short form or the JSON object that is sent."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from patternmill.planning.normal_text import normalised
from patternmill.planning.problems import Problem, RowCode
from patternmill.text import UNSAFE, shown

#: The fields that every request sets itself.
_OWN_FIELDS = frozenset({"requestId", "patternId"})


@dataclass(frozen=True, slots=True)
class Refinement:
    """One change of a pattern: the operation, and its parameters as they are sent."""

    operation: str
    parameters: Mapping[str, Any]

    def __str__(self) -> str:
        """Return `recolor #1f3a5f #f2e8cf`."""
        values = (value if isinstance(value, list) else [value] for value in self.parameters.values())
        return " ".join([self.operation, *(str(part) for value in values for part in value)])


class _Malformed(Exception):
    """A cell asks for nothing that any service could make; the text says what is wrong."""


_COLOUR = re.compile(r"#?([0-9a-f]{6}|[0-9a-f]{3})", re.IGNORECASE)


def _recolor(cell: str) -> dict[str, Any]:
    colours = [part for part in re.split(r"[\s,;]+", cell) if part]
    if not colours:
        raise _Malformed("there is no colour")
    for colour in colours:
        if not _COLOUR.fullmatch(colour):
            raise _Malformed(f"{shown(colour)} is no colour")
    return {"palette": [_one_colour(colour) for colour in colours]}


def _one_colour(text: str) -> str:
    """Return the one spelling of a colour: `ABC` is `#aabbcc`."""
    digits = text.lstrip("#").lower()
    return f"#{digits if len(digits) == 6 else ''.join(digit * 2 for digit in digits)}"


def _crop(cell: str) -> dict[str, Any]:
    try:
        x, y, width, height = map(_number, re.split(r"\s*[,;]\s*|\s+", cell))
    except ValueError:
        raise _Malformed(f"{shown(cell)} is not four numbers") from None
    if min(x, y) < 0 or min(width, height) <= 0:
        raise _Malformed(f"{shown(cell)} has a negative place, or no width or height")
    return {"x": x, "y": y, "width": width, "height": height}


def _number(text: str) -> int | float:
    """Return the one spelling of a number: 0.50 is 0.5, and 2.0 is 2."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return int(number) if number.is_integer() else number


def _extend(cell: str) -> dict[str, Any]:
    written = re.fullmatch(r"(\d{1,6})\s*[x×*]\s*(\d{1,6})", cell, re.IGNORECASE)
    columns, rows = (int(part) for part in written.groups()) if written else (0, 0)
    if not columns or not rows:
        raise _Malformed(f"{shown(cell)} is no number of columns and rows")
    return {"columns": columns, "rows": rows}


#: The reader of each operation's cells, and an example for people.
_FORMS: Mapping[str, tuple[Callable[[str], dict[str, Any]], str]] = {
    "recolor": (_recolor, "write colours: #1f3a5f #f2e8cf"),
    "crop": (_crop, "write x,y,width,height: 0,0,0.5,0.5"),
    "extend": (_extend, "write columns and rows: 2x3"),
    "edit": (lambda cell: {"prompt": normalised(cell)}, "write what is to be changed"),
}
#: The operations of the group Refine.
REFINEMENTS = tuple(_FORMS)


def read_refinement(operation: str, text: str, column: str) -> Refinement | Problem:
    """Return what a tidy, non-blank cell asks for, or its fault. JSON is spelled as the short form would be."""
    read, example = _FORMS[operation]
    try:
        if operation != "edit" and UNSAFE.search(text):
            raise _Malformed(f"invisible or control characters in {shown(text)}")
        parameters = _json_object(text) if text.startswith("{") else read(text)
    except _Malformed as fault:
        remedy = f"{example}, or a JSON object"
        return Problem(column, RowCode.MALFORMED_REFINEMENT, str(fault), remedy)
    return Refinement(operation, parameters)


def _json_object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text, parse_float=_number, parse_constant=_number)
        json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        raise _Malformed(f"{shown(text)} is no JSON object that can be sent") from None
    if not value or not isinstance(value, dict):
        raise _Malformed("the object is empty")
    if own := sorted(_OWN_FIELDS & value.keys()):
        raise _Malformed(f"{own[0]} is set by the request itself")
    return {name: _one_spelling(part) for name, part in value.items()}


def _one_spelling(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _one_spelling(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_one_spelling(part) for part in value]
    if not isinstance(value, str):
        return value
    text = normalised(value)
    return _one_colour(text) if text.startswith("#") and _COLOUR.fullmatch(text) else text
