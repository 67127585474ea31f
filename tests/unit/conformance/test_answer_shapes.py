"""Shapes: keys and types, never values; two answers of one definition have the same."""

from __future__ import annotations

import json
from typing import Any

import pytest

from patternmill.conformance.answer_shapes import is_same_shape, shape_of, shape_text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (True, "boolean"),
        (1.5, "number"),
        ("secret", "string"),
        ([], "[]"),
        ([1, "a"], "[number | string]"),
        ({"b": 1, "a": {"id": "x"}}, "{a: {id: string}, b: number}"),
        ([{"a": 1}, {"a": 2, "b": None}, {"a": 3}], "[{a: number, b?: null}]"),
        ({"stag_mug_01": {"name": "Mug"}, "stag_bag_02": {"name": "Bag"}}, "{*: {name: string}}"),
        ({"size": ["s"], "fabric": ["linen"]}, "{*: [string]}"),
        ({"sk_live_5f2a": 1}, "{*: number}"),
        ({"id": "x", "name": "y", "1": 1}, "{id: string, name: string, *: number}"),
        ({"id": "x", "name": "y"}, "{id: string, name: string}"),
    ],
)
def test_shape_has_keys_and_types(value: Any, text: str) -> None:
    assert shape_text(shape_of(value)) == text


def test_shape_of_a_deep_or_wide_answer_is_bounded() -> None:
    deep: Any = 1
    for _ in range(500):
        deep = {"a": [deep]}
    wide = {"".join(chr(97 + int(digit)) for digit in f"{n:04}"): n for n in range(5000)}
    assert len(shape_text(shape_of(deep))) < 200
    assert len(shape_text(shape_of([wide] * 5000))) < 2000


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"a": 1}, {"a": 2}),
        ({"items": []}, {"items": [{"id": "x"}]}),
        ({"a": None}, {"a": {"b": 1}}),
        ([{"a": 1}, {"a": 1, "b": 1}], [{"a": 1}]),
        ({"x1_2": {"n": 1}}, {"y9_9": {"n": 2}}),
    ],
)
def test_answers_of_one_definition_have_the_same_shape(one: Any, other: Any) -> None:
    kept = json.loads(json.dumps(shape_of(one)))
    assert is_same_shape(kept, shape_of(other))
    assert is_same_shape(shape_of(other), kept)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"a": 1}, {"a": "1"}),
        ({"a": 1}, {"a": 1, "b": 1}),
        ({"categories": [{"categoryId": "x"}]}, [{"categoryId": "x"}]),
        ([{"id": "x"}], [{"ID": "x"}]),
        ({"a": {"b": {"c": 1}}}, {"a": {"b": {"c": []}}}),
    ],
)
def test_other_definition_has_another_shape(one: Any, other: Any) -> None:
    assert not is_same_shape(shape_of(one), shape_of(other))
    assert not is_same_shape(shape_of(other), shape_of(one))
