"""The subject of a refusal: an ID that the service has already, the row, or nobody can say. Advice follows from it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import orjson
import pytest

from patternmill.service.outcomes import Refusal
from patternmill.service.redaction import reason_in
from patternmill.service.refusals import shape_of
from patternmill.service.resend import CreateRequest, ResendAfter, ResendPolicy, Situation, decide_create
from patternmill.states import AttemptState, Stage
from tests.dialects import DIALECTS
from tests.unit.service.answers import answered

SENT = {
    "requestId": "0a1b2c3d-0000-5000-8000-000000000001",
    "patternId": "pat_77",
    "categoryId": "cat_mug",
    "selections": {"Size": "11oz", "order": "first"},
}
FIRST = Situation(CreateRequest(Stage.PRODUCT, orjson.dumps(SENT)), works=True)
PATTERN = {"requestId": SENT["requestId"], "prompt": "herons no. 1, ink", "model": "loom-2"}


def decided(status: int, body: Any, now: Situation = FIRST) -> Any:
    answer = answered(status, body, detail=reason_in(body))
    return decide_create(answer, now, ResendPolicy(jitter=lambda: 0.0))


@pytest.mark.parametrize("in_doubt", [False, True])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_known_request_is_held_with_the_words_of_the_service(dialect: str, in_doubt: bool) -> None:
    """It is held on this machine's first send as after a lost answer: another machine may have sent it."""
    status, body = DIALECTS[dialect]
    now = replace(FIRST, in_doubt=in_doubt)
    refusal = decided(status, body, now)
    assert isinstance(refusal, Refusal) and (refusal.state, refusal.code) == (
        AttemptState.HELD,
        "repeated_request",
    )
    assert reason_in(body).removesuffix(".") in refusal.message


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (422, {"errors": {"request_id": ["has already been taken"]}}),
        (400, {"errors": [{"source": {"pointer": "/data/requestId"}, "title": "must be unique"}]}),
        (400, {"error": {"type": "idempotency_error", "message": "Keys can only be used once."}}),
        (400, {"message": "Order for prompt and Size exists: AlreadyExists"}),
        (422, {"message": "We have seen this request before"}),
        (400, {"error": "E11000 duplicate key", "input": SENT}),
    ],
)
def test_more_wordings_of_the_same(status: int, body: Any) -> None:
    assert decided(status, body).code == "repeated_request"


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (422, {"detail": [{"loc": ["body", "categoryId"], "msg": "unknown"}]}),
        (422, {"errors": {"selections": ["must be an object"]}}),
        (400, {"error": {"message": "not offered: Size"}}),
        (400, {"error": {"message": "11oz cannot be had"}}),
        (400, {"error": {"param": "order", "message": "unknown option"}}),
        (400, {"error": {"message": "There is no category cat_mug."}}),
        (404, {"error": {"message": "Category ID not found"}}),
        (200, {"success": False, "error": "categoryId is unknown"}),
    ],
)
def test_refusal_that_names_the_row_says_correct_it(status: int, body: Any) -> None:
    refusal = decided(status, body)
    assert (refusal.state, refusal.code) == (AttemptState.REJECTED, "invalid_request")


@pytest.mark.parametrize("reason", ["prompt is too long", "no model loom-2", {"prompt": "too long"}])
def test_pattern_is_named_by_its_prompt_and_model(reason: Any) -> None:
    now = Situation(CreateRequest(body=orjson.dumps(PATTERN)))
    assert decided(422, {"error": reason}, now).code == "invalid_request"


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, None),
        (422, {"error": {"code": "E-1138", "message": "Nope."}}),
        (400, {"error": "The order was not taken."}),
        (422, {"detail": [{"loc": ["body", "patternId"], "msg": "unknown"}]}),
        (422, {"detail": [{"loc": ["body", "requestId"], "msg": "must have at most 12 characters"}]}),
        (422, {"detail": [{"loc": ["body"], "msg": "Nope.", "input": SENT}]}),
        (400, {"error": "Nope.", **SENT}),
        (400, {"message": "Idempotency-Key header is missing"}),
        (404, None),
        (413, None),
    ],
)
def test_refusal_that_names_nothing_of_the_row_never_says_correct_it(status: int, body: Any) -> None:
    """Unknown words may mean that it exists: whoever changes the row then buys again."""
    refusal = decided(status, body)
    assert (refusal.state, refusal.code) == (AttemptState.REJECTED, "unclear_refusal")


def test_success_that_is_none_without_a_clear_word_stays_in_doubt() -> None:
    assert isinstance(decided(200, {"success": False, "error": "try later"}), ResendAfter)


def alike(body: Any, **sent: Any) -> str:
    return shape_of(answered(422, body, detail=reason_in(body)), orjson.dumps(SENT | sent))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"error": "no category cat_mug (ref 12-ab)"}, {"error": "no category cat_bag (ref 99-cd)"}),
        (
            {"error": {"code": "limit", "message": "1 of 9"}},
            {"error": {"code": "limit", "message": "see us"}},
        ),
        ({"error": "'herons' is not good"}, {"error": "'owls' is not good"}),
    ],
)
def test_refusals_are_alike_but_for_numbers_and_the_values_of_their_rows(first: Any, second: Any) -> None:
    assert alike(first) == alike(second, categoryId="cat_bag")
    assert alike(first) != alike({"error": "the prompt is too long"})
