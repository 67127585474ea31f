"""The OpenAPI 3.1 document: made from the table of operations and the models that validate."""

from __future__ import annotations

from functools import cache
from typing import Any, Literal, get_type_hints

from pydantic import TypeAdapter

from studio.answers import ErrorAnswer
from studio.operations.table import OPERATIONS

VERSION = "/v1"
REASONS = {
    400: "The body is no JSON object, or fields are missing or invalid.",
    401: "The API key is missing or invalid.",
    404: "Something that the body names is unknown.",
    409: "The requestId was used for another request.",
    413: "The body is too large.",
    415: "The body is not sent as JSON.",
    422: "The request is understood and cannot be carried out.",
}


@cache
def document() -> dict[str, Any]:
    """Return the whole document, which callers must not change."""
    inputs: list[tuple[str, Literal["validation", "serialization"], TypeAdapter[Any]]] = [
        ("error", "serialization", TypeAdapter(ErrorAnswer))
    ]
    for name, perform in OPERATIONS.items():
        shapes = get_type_hints(perform)
        inputs.append((name, "validation", TypeAdapter(shapes["body"])))
        inputs.append((name, "serialization", TypeAdapter(shapes["return"])))
    schemas, definitions = TypeAdapter.json_schemas(inputs, ref_template="#/components/schemas/{model}")
    content = {key: {"application/json": {"schema": schema}} for key, schema in schemas.items()}
    refusals = {
        str(status): {"description": reason, "content": content["error", "serialization"]}
        for status, reason in REASONS.items()
    }
    paths = {
        f"/{name}": {
            "post": {
                "operationId": name,
                "tags": [name.partition("/")[0]],
                "summary": perform.__doc__,
                "requestBody": {"required": True, "content": content[name, "validation"]},
                "responses": {
                    "200": {"description": "Done, or begun.", "content": content[name, "serialization"]},
                    **refusals,
                },
            }
        }
        for name, perform in OPERATIONS.items()
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": "Embedded studio", "version": "1"},
        "servers": [{"url": VERSION}],
        "security": [{"bearer": []}],
        "paths": paths,
        "components": {
            "schemas": definitions["$defs"],
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
    }
