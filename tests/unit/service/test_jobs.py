"""Jobs are read tolerantly, by what was asked for."""

from __future__ import annotations

from typing import Any

import pytest

from patternmill.service.jobs import Job, read_created, read_job
from patternmill.states import Stage


def succeeded(result: Any, **more: Any) -> Job:
    job = read_job({"jobId": "j", "status": "succeeded", "result": result, **more})
    assert job is not None
    return job


def test_unknown_fields_are_carried_and_unknown_kinds_accepted() -> None:
    """The interface names one kind and says that there are more."""
    job = succeeded(None, kind="product", eta=5)
    assert (job.kind, job.result_id(Stage.PRODUCT), job.has_ended, job.raw["eta"]) == (
        "product",
        None,
        False,
        5,
    )


@pytest.mark.parametrize(
    ("result", "pattern_id", "product_id"),
    [
        ({"patternId": "p"}, "p", None),
        ({"patternId": "p", "productId": "q"}, "p", "q"),
        ({"patternId": None, "productId": "q"}, None, "q"),
        ({"patternId": 7}, None, None),
        ("p", None, None),
    ],
)
def test_result_is_read_by_the_requested_kind(
    result: Any, pattern_id: str | None, product_id: str | None
) -> None:
    """A product's job may name its pattern as well; anything but text is not guessed at."""
    job = succeeded(result)
    assert (job.result_id(Stage.PATTERN), job.result_id(Stage.PRODUCT)) == (pattern_id, product_id)


def test_picture_is_of_the_requested_kind() -> None:
    """A product's result may show its pattern as well."""
    job = succeeded({"patternUrl": "https://pics.example/p.png", "mockupUrl": "https://pics.example/m.png"})
    assert job.picture_url(Stage.PRODUCT) == "https://pics.example/m.png"
    assert job.picture_url(Stage.PATTERN) == "https://pics.example/p.png"


@pytest.mark.parametrize(
    ("url", "is_taken"),
    [
        ("https://pics.example/a.png?x=1", True),
        ("http://127.0.0.1/a.png", True),
        ("javascript:alert(1)", False),
        ('https://pics.example/"onload="x', False),
        (7, False),
    ],
)
def test_picture_address_is_a_plain_web_address(url: Any, is_taken: bool) -> None:
    """It ends up in a page."""
    job = succeeded({"patternId": "p", "previewUrl": url})
    assert (job.picture_url(Stage.PATTERN) == url) == is_taken


@pytest.mark.parametrize(
    ("stage", "body", "job_id", "is_immediate"),
    [
        (Stage.REFERENCE, {"referenceId": "ref_1", "jobId": "job_1"}, "ref_1", True),
        (Stage.REFERENCE, {"jobId": "job_1", "status": "running"}, "job_1", False),
        (Stage.CHECKOUT, {"checkoutId": "c_1", "checkoutUrl": "https://pay.example/c_1"}, "c_1", True),
        (Stage.CHECKOUT, {"checkoutUrl": "https://pay.example"}, None, False),
        (Stage.PATTERN, {"patternId": "pat_1"}, None, False),
    ],
)
def test_create_may_name_what_was_made_in_place_of_a_job(
    stage: Stage, body: dict[str, str], job_id: str | None, is_immediate: bool
) -> None:
    job = read_created(body, stage)
    assert (job and job.job_id) == job_id
    if job is not None and is_immediate:
        assert (job.is_immediate, job.status, job.result_id(stage)) == (True, "succeeded", job_id)
