"""The parameters of flows: their forms, made of their requests, and what the run of a deployment reads."""

from __future__ import annotations

from pathlib import Path
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
from tasks.run_steps import spec_of_flow

FORMS: list[tuple[Flow[..., Any], type[BaseModel], str]] = [
    (bulk_import, ImportRequest, "file"),
    (catalog_refresh, RefreshRequest, "source"),
    (retry_failed, RetryRequest, "catalog"),
    (remake_patterns, RemakeRequest, "catalog"),
]
#: What Prefect adds to a field, or names otherwise.
_PREFECTS = ("title", "position", "pattern")


def _shown(field: dict[str, Any]) -> dict[str, Any]:
    """A field as one box of its type, which may be left empty."""
    if "anyOf" in field:
        field = {**field["anyOf"][0], **field}
        del field["anyOf"], field["default"]
    return {key: value for key, value in field.items() if key not in _PREFECTS}


@pytest.mark.parametrize(("flow", "model", "first"), FORMS, ids=[flow.name for flow, _, _ in FORMS])
def test_form_is_made_of_the_request(flow: Flow[..., Any], model: type[BaseModel], first: str) -> None:
    """Each field has its type, bounds, default and help; what matters most is first; an empty box is no limit."""
    form, schema = flow.parameters, model.model_json_schema(ref_template="#/definitions/{model}")
    fields = {name: _shown(field) for name, field in form.properties.items()}
    assert fields == {name: _shown(field) for name, field in schema["properties"].items()}
    assert form.required == schema.get("required", [])
    assert form.properties[first]["position"] == 0
    optional = {name: field for name, field in form.properties.items() if "default" not in field}
    given = dict.fromkeys(form.required or (), "x.csv")
    for empty in (None, ""):
        sent = {name: None if field["type"] == "integer" else empty for name, field in optional.items()}
        sent |= given
        validate(sent, form.model_dump(), raise_on_error=True)
        values = flow.validate_parameters(sent)
        assert {values[name] for name in optional.keys() - given.keys()} == {None}


def test_paths_are_meant_in_the_folder_of_the_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its run begins in the code's folder."""
    code, worker = tmp_path / "code", tmp_path / "worker"
    code.mkdir()
    worker.mkdir()
    monkeypatch.chdir(code)
    monkeypatch.setenv("PATTERNMILL_STUDIO_URL", "https://studio.example/v1")
    monkeypatch.setenv("PATTERNMILL_API_KEY", "studio_key")
    monkeypatch.setenv("PATTERNMILL_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATTERNMILL_WORKER_FOLDER", str(worker))
    monkeypatch.setenv("PREFECT__RUNTIME__DEPLOYMENT__ID", "d-1")
    (worker / "tea.csv").write_text("sku,prompt,category\nA-1,tea,Mug\n")
    spec = spec_of_flow(ImportRequest(file=Path("tea.csv")))
    assert Path(spec.source).resolve() == worker / "tea.csv"
    assert spec.catalog_folder.resolve() == worker / "results" / "tea"
