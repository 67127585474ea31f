"""The forms of the deployments: what a flow asks for is what its request is made of, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest
from prefect import Flow
from prefect.utilities.schema_tools.validation import validate
from pydantic import BaseModel

from flows.bulk_import import bulk_import
from flows.catalog_refresh import catalog_refresh
from flows.remake_patterns import remake_patterns
from flows.retry_failed import retry_failed
from patternmill.runs.request import ImportRequest, RefreshRequest, RemakeRequest, RetryRequest

FORMS: list[tuple[Flow[..., Any], type[BaseModel], str]] = [
    (bulk_import, ImportRequest, "file"),
    (catalog_refresh, RefreshRequest, "source"),
    (retry_failed, RetryRequest, "catalog"),
    (remake_patterns, RemakeRequest, "catalog"),
]
#: What Prefect adds to a field, or names otherwise.
_PREFECTS = ("title", "position", "pattern")


@pytest.mark.parametrize(("flow", "model", "first"), FORMS, ids=[flow.name for flow, _, _ in FORMS])
def test_form_is_made_of_the_request(flow: Flow[..., Any], model: type[BaseModel], first: str) -> None:
    """Prefect reads each field with its type, bounds, default and help, what matters most first."""
    form, schema = flow.parameters, model.model_json_schema(ref_template="#/definitions/{model}")
    assert _fields(form.properties) == _fields(schema["properties"])
    assert form.required == schema.get("required", [])
    assert form.properties[first]["position"] == 0


@pytest.mark.parametrize("flow", [flow for flow, _, _ in FORMS], ids=[flow.name for flow, _, _ in FORMS])
@pytest.mark.parametrize("empty", [None, ""])
def test_empty_box_is_no_limit(flow: Flow[..., Any], empty: str | None) -> None:
    """Whether the page sends nothing or an empty text: for Prefect's server, and for the flow."""
    form = flow.parameters.model_dump()
    optional = {name: field for name, field in form["properties"].items() if "default" not in field}
    numbers = {name for name, field in optional.items() if field["type"] == "integer"}
    sent = {name: None if name in numbers else empty for name in optional}
    sent |= {name: "x.csv" for name in form.get("required", ())}
    validate(sent, form, raise_on_error=True)
    asked = flow.validate_parameters(sent)
    assert {asked[name] for name in optional if name not in form.get("required", ())} == {None}


def _plain(field: dict[str, Any]) -> dict[str, Any]:
    """One box of the type that may be left empty."""
    if "anyOf" not in field:
        return field
    box = {**field["anyOf"][0], **field}
    return {key: value for key, value in box.items() if key not in {"anyOf", "default"}}


def _fields(properties: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {
        name: {key: value for key, value in _plain(field).items() if key not in _PREFECTS}
        for name, field in properties.items()
    }
