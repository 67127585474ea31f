"""Answers about jobs, checkouts, orders and reports are read tolerantly, and nothing is guessed at."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from patternmill.errors import ServiceStopped
from patternmill.service.feedback_report import CUT, delivery_of, feedback_report
from patternmill.service.jobs import Job, read_created, read_job
from patternmill.service.orders import ShownOrder, checkout_address, read_order
from patternmill.service.outcomes import Answer, Trouble
from patternmill.states import Stage
from tests.unit.service.answers import answered, lost, not_sent


def succeeded(result: Any, **more: Any) -> Job:
    job = read_job({"jobId": "j", "status": "succeeded", "result": result, **more})
    assert job is not None
    return job


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
def test_result_is_read_by_what_was_asked_for(
    result: Any, pattern_id: str | None, product_id: str | None
) -> None:
    """A product's job may name its pattern as well; a kind and fields that the interface does not name are carried."""
    job = succeeded(result, kind="weaving", eta=5)
    assert (job.result_id(Stage.PATTERN), job.result_id(Stage.PRODUCT)) == (pattern_id, product_id)
    assert (job.kind, job.raw["eta"], job.has_ended) == ("weaving", 5, bool(pattern_id or product_id))


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
    """It ends up in a page; the address of a picture of what was asked for comes first."""
    job = succeeded({"patternUrl": "https://pics.example/p.png", "mockupUrl": url})
    assert job.picture_url(Stage.PRODUCT) == (url if is_taken else None)
    assert job.picture_url(Stage.PATTERN) == "https://pics.example/p.png"


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


NO_ORDER = [
    [],
    {"order": {}},
    {"error": {"message": "not paid yet"}},
    {"order": {"error": {"code": 404}}},
    {"checkoutId": "chk_1", "lines": [{"productId": "p", "quantity": 1}]},
]


@pytest.mark.parametrize(
    ("answer", "order"),
    [
        *((answered(200, body), None) for body in NO_ORDER),
        *((answered(status), None) for status in (402, 404, 410)),
        (answered(200, {"orderId": "o", "status": "Shipped"}), ShownOrder("o", "Shipped")),
        (answered(200, {"order": {"orderId": 7, "status": ["paid"]}}), ShownOrder("7", None)),
        (answered(200, {"checkoutId": "chk_1", "status": "processing"}), ShownOrder(None, "processing")),
        (answered(200, {"status": "see https://pay.example/secret"}), ShownOrder(None, "see [removed]")),
        (answered(200, {"status": "Cancelled"}), ShownOrder(None, "Cancelled", cancelled=True)),
        (answered(200, {"order": {"status": "canceled"}}), ShownOrder(None, "canceled", cancelled=True)),
        (answered(200, {"status": "cancelling"}), ShownOrder(None, "cancelling")),
        (answered(401), "unauthorized"),
        (answered(403), "forbidden"),
        (answered(503), "order_not_shown"),
        (answered(200, trouble=Trouble.HTML), "order_not_shown"),
        (lost(), "order_not_shown"),
        (answered(200, {"orderId": "o", "checkoutId": "chk_2"}), "other_order"),
    ],
)
def test_order_is_what_the_service_shows(answer: Answer, order: ShownOrder | str | None) -> None:
    """It is read bare or wrapped, and without addresses; no order yet is one thing, no readable answer another."""
    try:
        assert read_order(answer, "chk_1") == order
    except ServiceStopped as stopped:
        assert stopped.code == order


@pytest.mark.parametrize(
    ("shown", "is_paid"),
    [
        ({"paid": True}, True),
        ({"status": "Paid"}, True),
        ({"paymentStatus": "paid"}, True),
        ({"payment": {"status": "PAID"}}, True),
        ({"paid_at": "2027-01-15T08:00:00Z"}, True),
        ({"paidAt": 1_800_000_000}, True),
        ({"order": {"orderId": "ord_1", "paidAt": "2027-01-15"}}, True),
        ({}, False),
        ({"status": "confirmed"}, False),
        ({"number": 7, "receipt": "r-1", "invoice": {"total": 12}}, False),
        ({"status": "unpaid"}, False),
        ({"paid": False, "status": "paid"}, False),
        ({"paid": "yes"}, False),
        ({"paymentStatus": "pending", "paid": True}, False),
        ({"payment": {"status": "authorized"}}, False),
        ({"refunded": {"paid": True}}, False),
    ],
)
def test_paid_is_what_the_service_says_is_paid(shown: dict[str, Any], is_paid: bool) -> None:
    """An order alone is no payment, and contradictions are none."""
    order = read_order(answered(200, {"orderId": "ord_1"} | shown), "chk_1")
    assert order is not None and order.paid == is_paid


@pytest.mark.parametrize("url", [None, "javascript:alert(1)", "https://", "http://[", "https://a/\nb"])
def test_address_that_no_browser_can_open(url: Any) -> None:
    assert checkout_address({"checkoutUrl": url}) is None


@pytest.mark.parametrize(("field", "most", "letter"), [("text", 4000, "x"), ("procedure", 200, "🦢")])
def test_texts_of_a_report_are_cut_at_their_bounds(field: str, most: int, letter: str) -> None:
    """One that fits is as it was; a longer one ends with a mark, and fits in UTF-16 units too."""
    exact = letter * (most // (len(letter.encode("utf-16-le")) // 2))
    assert feedback_report({field: exact}, ())[field] == exact
    text = feedback_report({field: exact + letter}, ())[field]
    assert text.endswith(CUT) and most - 2 < len(text.encode("utf-16-le")) // 2 <= most
    assert text.removesuffix(CUT) == letter * len(text.removesuffix(CUT))


def test_secrets_are_removed_before_texts_are_cut() -> None:
    """No part of one is left at the end."""
    secret = "sk_live_0123456789abcdefghij"
    report = feedback_report({"text": "x" * 3975 + " " + secret, "agent": secret}, {secret})
    assert "sk_live" not in orjson.dumps(report).decode()


@pytest.mark.parametrize(
    ("answer", "state"),
    [
        (answered(200, {"requestId": "r-1"}), "sent"),
        (answered(200, {"requestId": "r-2"}), "in_doubt"),
        (answered(200, None, trouble=Trouble.HTML), "in_doubt"),
        *((answered(status), "in_doubt") for status in (303, 408, 500)),
        (lost(), "in_doubt"),
        *((answered(status), "not_sent") for status in (404, 429, 503)),
        (not_sent(), "not_sent"),
    ],
)
def test_what_became_of_a_report(answer: Answer, state: str) -> None:
    assert delivery_of(answer, "r-1")[0] == state
