"""Generated requests, valid and invalid, against every operation: the studio answers as its OpenAPI document says."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import Case, Config, GenerationMode
from schemathesis.openapi import from_asgi
from schemathesis.specs.openapi.schemas import OpenApiSchema

from studio.operations.table import OPERATIONS

from .in_process import AUTHORIZED, InProcess

# Of schemathesis' own strategies.
pytestmark = pytest.mark.filterwarnings("ignore::hypothesis.errors.HypothesisDeprecationWarning")

#: The accepted statuses; 422 stands for a body that is impossible in a way that a schema cannot say.
ACCEPTED = ["2xx", "401", "404", "409", "422"]
CONFIG = {
    "checks": {"positive_data_acceptance": {"expected-statuses": ACCEPTED}},
}
#: The settings under which each run has the same cases.
SETTINGS = settings(deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module")
def known(studio: InProcess) -> dict[str, str]:
    """Return the ID of something that exists, by field; generated IDs are unknown."""
    pattern_id = studio.pattern("known-pattern")
    product_id = studio.product("known-product", pattern_id)
    checkout = studio.ask(
        "checkouts/create",
        requestId="known-checkout",
        lines=[{"productId": product_id, "quantity": 1}],
    )
    studio.pay(checkout)
    ids = {"patternId": pattern_id, "productId": product_id, "checkoutId": str(checkout["checkoutId"])}
    return {**ids, "modelId": "atelier", "model": "atelier", "categoryId": "cat_stg_mug"}


@pytest.fixture(scope="module")
def schema(studio: InProcess) -> OpenApiSchema:
    return from_asgi("/openapi.json", studio.app, config=Config.from_dict(CONFIG))


def with_known(body: Any, known: dict[str, str]) -> Any:
    """Return the body with its IDs replaced by some that exist."""
    if isinstance(body, list):
        return [with_known(one, known) for one in body]
    if not isinstance(body, dict):
        return body
    ids = {name: known[name] for name, value in body.items() if name in known and isinstance(value, str)}
    return {**{name: with_known(value, known) for name, value in body.items()}, **ids}


@pytest.mark.parametrize("mode", GenerationMode)
@pytest.mark.parametrize("examples", [2, pytest.param(30, marks=pytest.mark.soak)])
def test_every_operation_answers_as_documented(
    schema: OpenApiSchema, mode: GenerationMode, known: dict[str, str], examples: int
) -> None:
    """Valid bodies are accepted and invalid ones refused, with a documented status and shape; never with a 5xx."""
    for operation in OPERATIONS:
        answered = set[int]()
        cases = schema[f"/{operation.name}"]["POST"].as_strategy(generation_mode=mode)
        check(cases, known if mode is GenerationMode.POSITIVE else {}, examples, answered)
        assert answered and answered <= {200, 400, 401, 404, 409, 413, 422}, operation.name


def check(cases: Any, known: dict[str, str], examples: int, answered: set[int]) -> None:
    @settings(SETTINGS, max_examples=examples)
    @given(cases, st.booleans())
    def send(case: Case, exists: bool) -> None:
        case.body = with_known(case.body, known) if exists else case.body
        answered.add(case.call_and_validate(headers=AUTHORIZED).status_code)

    send()
