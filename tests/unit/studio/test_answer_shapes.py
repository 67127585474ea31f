"""Every shape of an answer has what the studio's own has, somewhere else."""

from __future__ import annotations

import json
from typing import Any, get_args

import pytest

from studio import offer
from studio.errors import FieldFault, Refusal, invalid_fields
from studio.instruments.answer_shapes import (
    CREATES,
    Repeated,
    Shapes,
    may_be_shaped,
    read_shape,
    shape_categories,
    shape_error,
    shape_repeat,
)
from studio.operations.table import OPERATIONS

LISTING = offer.categories_list("staging")
MUG = offer.categories_get("staging", "cat_stg_mug")
SHAPES = [name for name in get_args(Shapes.model_fields["categories"].annotation) if name != "native"]
NAMES_OF_OPERATIONS = [operation.name for operation in OPERATIONS]
NAMES = [category.name for category in offer.CATEGORIES]


def listing(shape: str, **body: str) -> Any:
    return shape_categories(shape, "categories/list", LISTING, body)


def texts(value: Any) -> list[str]:
    """Every text and key in it."""
    if isinstance(value, dict):
        return [text for key, one in value.items() for text in (key, *texts(one))]
    if isinstance(value, list | tuple):
        return [text for one in value for text in texts(one)]
    return [value] if isinstance(value, str) else []


@pytest.mark.parametrize("shape", [shape for shape in SHAPES if shape != "paged"])
def test_every_category_is_in_the_list(shape: str) -> None:
    found = texts(listing(shape))
    assert set(NAMES) <= set(found)
    assert {category.category_id("staging") for category in offer.CATEGORIES} <= set(found)


def test_no_two_shapes_are_alike() -> None:
    """Four at least, besides the studio's own."""
    lists = {json.dumps(listing(shape)) for shape in SHAPES}
    assert len(lists | {json.dumps(LISTING)}) == len(SHAPES) + 1 >= 5


def test_pages_lead_to_one_another() -> None:
    """To the end; a cursor that leads nowhere is refused."""
    names: list[str] = []
    body: dict[str, str] = {}
    while True:
        page = listing("paged", **body)
        names += [category["name"] for category in page["categories"]]
        if page["nextCursor"] is None:
            break
        body = {"cursor": page["nextCursor"]}

    assert names == NAMES
    with pytest.raises(Refusal) as refused:
        listing("paged", cursor="page-99")
    assert refused.value.code == "unknown_cursor"


@pytest.mark.parametrize("shape", SHAPES)
def test_every_option_and_value_is_in_the_record(shape: str) -> None:
    assert MUG is not None
    found = texts(shape_categories(shape, "categories/get", MUG, {}))
    mug = next(category for category in offer.CATEGORIES if category.key == "mug")
    assert {option.name for option in mug.options} <= set(found)
    assert {value for option in mug.options for value in option.values} <= set(found)


def test_repeated_request_gets_the_first_answer_or_a_conflict() -> None:
    job = {"jobId": "job_1", "kind": "pattern", "status": "succeeded", "result": {"patternId": "pat_1"}}
    assert shape_repeat("first", job) == {
        "jobId": "job_1",
        "kind": "pattern",
        "status": "running",
        "result": None,
    }
    assert shape_repeat("first", {"checkoutId": "c", "status": "paid"})["status"] == "open"
    with pytest.raises(Repeated) as refused:
        shape_repeat("conflict", job)
    assert refused.value.status == 409
    assert refused.value.body()["jobId"] == "job_1"


def test_errors_keep_their_reason() -> None:
    """Whatever their shape."""
    body = {**invalid_fields((FieldFault("prompt", "is <missing>"),)).body(), "jobId": "job_1"}

    kind, problem = shape_error("problem", 400, body)
    assert kind == "application/problem+json"
    read = json.loads(problem)
    assert (read["status"], read["title"], read["jobId"]) == (400, "invalid_fields", "job_1")
    assert read["errors"] == [{"field": "prompt", "message": "is <missing>"}]
    assert set(json.loads(shape_error("message", 400, body)[1])) == {"message", "jobId"}
    kind, page = shape_error("html", 400, body)
    assert kind.startswith("text/html")
    assert b"is &lt;missing&gt;" in page


@pytest.mark.parametrize(
    ("shape", "operations"),
    [
        ({}, set()),
        ({"categories": "bare"}, {"categories/get", "categories/list"}),
        (
            {"repeat": "first"},
            {name for name in NAMES_OF_OPERATIONS if name.startswith("refine/")} | set(CREATES),
        ),
        ({"errors": "html"}, set(NAMES_OF_OPERATIONS)),
    ],
)
def test_only_some_operations_are_shaped(shape: dict[str, Any], operations: set[str]) -> None:
    """All others are answered as without it."""
    shapes = Shapes(**shape)
    assert {name for name in NAMES_OF_OPERATIONS if may_be_shaped(shapes, name)} == operations


def test_shapes_are_read() -> None:
    assert read_shape("errors=html") == ("errors", "html")
    for text in ("errors", "errors=loud", "answers=html"):
        with pytest.raises(ValueError, match="cannot be used"):
            read_shape(text)
