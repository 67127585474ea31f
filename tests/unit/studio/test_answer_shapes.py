"""Every shape of an answer has what the studio's own has, somewhere else."""

from __future__ import annotations

import json
from typing import Any, get_args

import pytest

from studio import offer
from studio.errors import FieldFault, invalid_fields
from studio.instruments.answer_shapes import (
    Repeated,
    Shapes,
    shape_categories,
    shape_error,
    shape_repeat,
)

LISTING = offer.categories_list("staging")
SHAPES = [name for name in get_args(Shapes.model_fields["categories"].annotation) if name != "native"]
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
