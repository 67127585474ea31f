"""Generated requests, valid and invalid, against every operation: the studio answers as its OpenAPI document says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import Case, Config, GenerationMode
from schemathesis.openapi import from_asgi
from schemathesis.specs.openapi.schemas import OpenApiSchema

from studio.operations.table import OPERATIONS

from .in_process import AUTHORIZED, InProcess

#: 422: understood, and impossible in a way that a schema cannot say.
ACCEPTED = ["2xx", "401", "404", "409", "422"]
CONFIG = {
    "checks": {"positive_data_acceptance": {"expected-statuses": ACCEPTED}},
    # The links that the document names, not those that might be guessed.
    "phases": {"stateful": {"generation": {"mode": "positive"}, "inference": {"algorithms": []}}},
}
#: The same cases in each run.
SETTINGS = settings(deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
EVERY_OPERATION = pytest.mark.parametrize("operation", [one.name for one in OPERATIONS])


@pytest.fixture(scope="module")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcess]:
    with InProcess.open(tmp_path_factory.mktemp("contract")) as made:
        yield made


@pytest.fixture(scope="module")
def known(studio: InProcess) -> dict[str, str]:
    """By field, the ID of something that is there; generated ones are unknown."""
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
    """The body with IDs that are there, where it has any."""
    if isinstance(body, list):
        return [with_known(one, known) for one in body]
    if not isinstance(body, dict):
        return body
    ids = {name: known[name] for name, value in body.items() if name in known and isinstance(value, str)}
    return {**{name: with_known(value, known) for name, value in body.items()}, **ids}


def check(
    schema: OpenApiSchema, operation: str, mode: GenerationMode, known: dict[str, str], within: settings
) -> Counter[int]:
    """How often each status was answered."""
    answered: Counter[int] = Counter()
    cases = schema[f"/{operation}"]["POST"].as_strategy(generation_mode=mode)

    @settings(within)
    @given(cases, st.booleans())
    def send(case: Case, exists: bool) -> None:
        if exists and mode is GenerationMode.POSITIVE:
            case.body = with_known(case.body, known)
        answered[case.call_and_validate(headers=AUTHORIZED).status_code] += 1

    send()
    return answered


@EVERY_OPERATION
@pytest.mark.parametrize("examples", [2, pytest.param(30, marks=pytest.mark.soak)])
def test_every_operation_answers_as_documented(
    schema: OpenApiSchema, operation: str, known: dict[str, str], examples: int
) -> None:
    """Valid bodies are accepted and invalid ones refused, with a documented status and shape; never with a 5xx."""
    for mode in GenerationMode:
        answered = check(schema, operation, mode, known, settings(SETTINGS, max_examples=examples))
        assert answered, mode
        assert set(answered) <= {200, 400, 401, 404, 409, 413, 422}, mode


def walk(schema: OpenApiSchema, within: settings) -> Counter[tuple[str, int]]:
    """Follow the document's links; how often each operation was answered with each status."""
    followed: Counter[tuple[str, int]] = Counter()
    # With these, the walk would begin nowhere else: they need no requestId.
    started = schema.exclude(path=["/categories/list", "/models/list"])

    class Walk(started.as_state_machine()):  # type: ignore[misc]
        def get_call_kwargs(self, case: Case) -> dict[str, object]:
            return {"headers": AUTHORIZED}

        def validate_response(self, response: Any, case: Case, **kwargs: Any) -> None:
            followed[case.operation.path, response.status_code] += 1
            super().validate_response(response, case, **kwargs)

    Walk.run(settings=settings(within, stateful_step_count=8))
    return followed


@pytest.mark.soak
def test_generated_requests_follow_the_links(schema: OpenApiSchema) -> None:
    """They are answered as documented wherever they lead."""
    followed = walk(schema, settings(SETTINGS, max_examples=50))

    assert {status for _, status in followed} <= {200, 401, 404, 409, 422}
