"""Jobs are read tolerantly, and text of the service is made fit for people."""

from __future__ import annotations

import pytest

from patternmill.service.jobs import read_created, read_job
from patternmill.service.redaction import MASK, clean, mask_deeply, reason_in
from patternmill.states import Stage


def test_unknown_fields_are_carried_and_unknown_kinds_accepted() -> None:
    """The interface names one kind and says that there are more."""
    body = {"jobId": "j", "kind": "product", "status": "running", "result": None, "eta": 5}
    job = read_job(body)
    assert job is not None
    assert (job.kind, job.status, job.result_id(Stage.PRODUCT), job.raw["eta"]) == (
        "product",
        "running",
        None,
        5,
    )


@pytest.mark.parametrize(
    ("result", "pattern_id", "product_id"),
    [
        ({"patternId": "p"}, "p", None),
        ({"productId": "q"}, None, "q"),
        ({"patternId": "p", "productId": "q"}, "p", "q"),
        ({"patternId": None, "productId": "q"}, None, "q"),
        ({"patternId": 7}, None, None),
        ("p", None, None),
    ],
)
def test_result_is_read_by_the_requested_kind(
    result: object, pattern_id: str | None, product_id: str | None
) -> None:
    """A product's job may name its pattern as well; anything but text is not guessed at."""
    job = read_job({"jobId": "j", "status": "succeeded", "result": result})
    assert job is not None
    assert (job.result_id(Stage.PATTERN), job.result_id(Stage.PRODUCT)) == (pattern_id, product_id)


def test_picture_is_of_the_requested_kind() -> None:
    """A product's result may show its pattern as well."""
    result = {"patternUrl": "https://pics.example/p.png", "mockupUrl": "https://pics.example/m.png"}
    job = read_job({"jobId": "j", "status": "succeeded", "result": result})
    assert job is not None
    assert job.picture_url(Stage.PRODUCT) == "https://pics.example/m.png"
    assert job.picture_url(Stage.PATTERN) == "https://pics.example/p.png"


@pytest.mark.parametrize(
    ("url", "taken"),
    [
        ("https://pics.example/a.png?x=1", True),
        ("http://127.0.0.1/a.png", True),
        ("javascript:alert(1)", False),
        ("data:image/png;base64,AAAA", False),
        ('https://pics.example/"onload="x', False),
        (7, False),
    ],
)
def test_picture_address_is_a_plain_web_address(url: object, taken: bool) -> None:
    """It ends up in a page."""
    job = read_job({"jobId": "j", "status": "succeeded", "result": {"patternId": "p", "previewUrl": url}})
    assert job is not None
    assert (job.picture_url(Stage.PATTERN) == url) == taken


def test_text_is_one_short_printable_line_without_the_key() -> None:
    """Control characters, bidi marks and echoes of the key do not reach a log."""
    text = clean("a\x1b[31m\r\nb\u202e sekret-key " + "x" * 900, secret="sekret-key")
    assert text.startswith(f"a [31m b {MASK} x")
    assert text.isprintable()
    assert len(text) == 500


def test_key_is_masked_in_names_and_values_but_a_short_one_is_not() -> None:
    """A key of a few letters would be found in ordinary words."""
    assert mask_deeply({"sekret-key": ["my sekret-key", 1]}, "sekret-key") == {MASK: [f"my {MASK}", 1]}
    assert mask_deeply(["keyboard"], "key") == ["keyboard"]


def test_search_for_a_reason_is_bounded() -> None:
    """Deep nesting is harmless."""
    nested: object = "deep"
    for _ in range(2000):
        nested = {"error": nested}
    assert reason_in(nested) == ""


@pytest.mark.parametrize(
    ("stage", "body", "made"),
    [
        (Stage.REFERENCE, {"referenceId": "ref_1", "jobId": "job_1"}, "ref_1"),
        (Stage.CHECKOUT, {"checkoutId": "c_1", "checkoutUrl": "https://pay.example/c_1"}, "c_1"),
    ],
)
def test_create_without_a_job_names_what_was_made(stage: Stage, body: dict[str, str], made: str) -> None:
    created = read_created(body, stage)
    assert created is not None
    assert (created.job_id, created.is_immediate, created.status) == (made, True, "succeeded")
    assert created.result_id(stage) == made


def test_create_may_answer_with_a_job_where_others_name_what_was_made() -> None:
    created = read_created({"jobId": "job_1", "status": "running"}, Stage.REFERENCE)
    assert created is not None and not created.is_immediate and created.job_id == "job_1"
    assert read_created({"checkoutUrl": "https://pay.example"}, Stage.CHECKOUT) is None
    assert read_created({"patternId": "pat_1"}, Stage.PATTERN) is None
