"""The shape of an answer: its keys and types, and never a value."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import reduce
from typing import Any, TypeAlias

#: A type's name, `[shape of the items]`, or `{key: shape}`. A key that not every item of a list has ends with `?`.
Shape: TypeAlias = "str | list[Shape] | dict[str, Shape]"

NULL = "null"
#: Stands for the keys of an object that maps identifiers, which are values.
ANY_KEY = "*"
DEEPER = "..."
_DEEPEST = 12
_MOST_ITEMS = 200
_MOST_KEYS = 60
#: How fields are named; any other key is an identifier.
_FIELD = re.compile(r"[A-Za-z_$][A-Za-z_$]{0,39}[0-9]?", re.ASCII)


def shape_of(value: Any, depth: int = _DEEPEST) -> Shape:
    """The shape of parsed JSON; below some depth it is `...`."""
    if isinstance(value, dict):
        return _object_shape(value, depth) if depth else DEEPER
    if isinstance(value, list):
        return _items([shape_of(one, depth - 1) for one in value[:_MOST_ITEMS]]) if depth else DEEPER
    if isinstance(value, bool):
        return "boolean"
    if value is None:
        return NULL
    return "string" if isinstance(value, str) else "number"


def shape_text(shape: Shape) -> str:
    """On one line: `{categories: [{categoryId: string, name: string}]}`."""
    if isinstance(shape, dict):
        return "{" + ", ".join(f"{name}: {shape_text(one)}" for name, one in shape.items()) + "}"
    if isinstance(shape, list):
        return "[" + ", ".join(map(shape_text, shape)) + "]"
    return shape


def is_same_shape(one: Shape, other: Shape) -> bool:
    """Whether two answers can have the same definition: null, an empty list and an absent `key?` say nothing."""
    if NULL in (one, other) or one == other:
        return True
    if isinstance(one, list) and isinstance(other, list):
        return not one or not other or is_same_shape(one[0], other[0])
    if isinstance(one, dict) and isinstance(other, dict):
        return _same_fields(one, other)
    return False


def _same_fields(one: dict[str, Shape], other: dict[str, Shape]) -> bool:
    first, second = _named(one), _named(other)
    if any(_is_required(name, one) for name in first.keys() - second.keys()):
        return False
    if any(_is_required(name, other) for name in second.keys() - first.keys()):
        return False
    return all(is_same_shape(first[name], second[name]) for name in first.keys() & second.keys())


def _object_shape(value: dict[str, Any], depth: int) -> Shape:
    names = sorted(value)[:_MOST_KEYS]
    shapes = {name: shape_of(value[name], depth - 1) for name in names}
    if _is_mapping(shapes):
        return {ANY_KEY: reduce(_merged, shapes.values())}
    fields = {name: shape for name, shape in shapes.items() if _FIELD.fullmatch(name)}
    others = [shape for name, shape in shapes.items() if name not in fields]
    rest: dict[str, Shape] = {ANY_KEY: reduce(_merged, others)} if others else {}
    return {**fields, **rest, **({DEEPER: NULL} if len(value) > len(names) else {})}


def _is_mapping(shapes: dict[str, Shape]) -> bool:
    """Whether the keys are identifiers: by their look, or because all of several values are alike and no scalars."""
    strange = sum(not _FIELD.fullmatch(name) for name in shapes)
    if strange and 2 * strange >= len(shapes):
        return True
    values = list(shapes.values())
    return len(values) > 1 and not isinstance(values[0], str) and all(one == values[0] for one in values)


def _items(shapes: Iterable[Shape]) -> Shape:
    found = list(shapes)
    return [reduce(_merged, found)] if found else []


def _merged(one: Shape, other: Shape) -> Shape:
    """What both shapes are examples of."""
    if one == other:
        return one
    if isinstance(one, dict) and isinstance(other, dict):
        return _merged_fields(one, other)
    if isinstance(one, list) and isinstance(other, list):
        return _items([*one, *other])
    names = {name for shape in (one, other) for name in shape_text(shape).split(" | ")}
    return " | ".join(sorted(names))


def _merged_fields(one: dict[str, Shape], other: dict[str, Shape]) -> Shape:
    first, second = _named(one), _named(other)
    fields: dict[str, Shape] = {}
    for name in sorted(first.keys() | second.keys()):
        found = [shape[name] for shape in (first, second) if name in shape]
        certain = name in one and name in other
        fields[name if certain else f"{name}?"] = reduce(_merged, found)
    return fields


def _named(fields: dict[str, Shape]) -> dict[str, Shape]:
    return {name.removesuffix("?"): shape for name, shape in fields.items()}


def _is_required(name: str, fields: dict[str, Shape]) -> bool:
    return name in fields and name != ANY_KEY
