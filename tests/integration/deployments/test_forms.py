"""The forms of the deployments: what a flow asks for is what its request is made of, and nothing else."""

from __future__ import annotations

import inspect
from typing import Any, get_type_hints

import pytest
from prefect import Flow
from prefect.utilities.callables import parameter_docstrings
from pydantic import BaseModel

from flows.bulk_import import bulk_import
from flows.catalog_refresh import catalog_refresh
from flows.order_samples import order_samples
from flows.retry_failed import retry_failed
from patternmill.parameters import EnvironmentName
from patternmill.runs.request import ImportRequest, OrderRequest, RefreshRequest, RetryRequest

FORMS: list[tuple[Flow[..., Any], type[BaseModel]]] = [
    (bulk_import, ImportRequest),
    (catalog_refresh, RefreshRequest),
    (retry_failed, RetryRequest),
    (order_samples, OrderRequest),
]
#: On the command line a run is retried wherever it was; a form begins with an environment.
DIFFERENT: dict[tuple[str, str], tuple[Any, Any, str]] = {
    ("retry-failed", "environment"): (
        EnvironmentName,
        "staging",
        "staging, production, or another configured environment.",
    )
}


@pytest.mark.parametrize(("flow", "model"), FORMS, ids=[flow.name for flow, _ in FORMS])
def test_form_fields_match_the_request(flow: Flow[..., Any], model: type[BaseModel]) -> None:
    """Each parameter has the name, type, bounds, default and help of the request's field."""
    parameters = inspect.signature(flow.fn).parameters
    assert set(parameters) == set(model.model_fields)
    types, help_texts = get_type_hints(model, include_extras=True), parameter_docstrings(flow.fn.__doc__)
    for name, parameter in parameters.items():
        default = (
            parameter.empty if model.model_fields[name].is_required() else model.model_fields[name].default
        )
        field = (types[name], default, model.model_fields[name].description)
        expected = DIFFERENT.get((flow.name, name), field)
        assert (parameter.annotation, parameter.default, help_texts[name]) == expected, f"{flow.name}: {name}"
