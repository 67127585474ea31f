"""The forms of the deployments: what a flow asks for is what its request is made of, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest
from prefect import Flow
from pydantic import BaseModel

from flows.bulk_import import bulk_import
from flows.catalog_refresh import catalog_refresh
from flows.order_samples import order_samples
from flows.retry_failed import RetryForm, retry_failed
from patternmill.runs.request import ImportRequest, OrderRequest, RefreshRequest

FORMS: list[tuple[Flow[..., Any], type[BaseModel], str]] = [
    (bulk_import, ImportRequest, "file"),
    (catalog_refresh, RefreshRequest, "source"),
    (retry_failed, RetryForm, "catalog"),
    (order_samples, OrderRequest, "results"),
]
#: What Prefect adds to a field, or names otherwise.
_PREFECTS = ("title", "position")


@pytest.mark.parametrize(("flow", "model", "first"), FORMS, ids=[flow.name for flow, _, _ in FORMS])
def test_form_is_made_of_the_request(flow: Flow[..., Any], model: type[BaseModel], first: str) -> None:
    """Prefect reads each field with its type, bounds, default and help, what matters most first."""
    form, schema = flow.parameters, model.model_json_schema()
    assert _fields(form.properties) == _fields(schema["properties"])
    assert form.required == schema.get("required", [])
    assert form.properties[first]["position"] == 0


def _fields(properties: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {
        name: {key: value for key, value in field.items() if key not in _PREFECTS}
        for name, field in properties.items()
    }
