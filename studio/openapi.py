"""The OpenAPI 3.1 document: made from the table of operations and the models that validate."""

from __future__ import annotations

from functools import cache
from typing import Any, Literal

from pydantic import TypeAdapter

from studio.answers import ErrorAnswer, JobAnswer
from studio.operations.table import OPERATIONS, Operation

VERSION = "/v1"
Mode = Literal["validation", "serialization"]
Schema = dict[str, Any]
#: The errors that every operation may return: an invalid body, key, size or type.
COMMON_REFUSALS = (400, 401, 413, 415)
REASONS = {
    400: "The body is no JSON object, or fields are missing or invalid.",
    401: "The API key is missing or invalid.",
    404: "Something that the body names is unknown.",
    409: "The requestId was used for another request.",
    413: "The body is too large.",
    415: "The body is not sent as JSON.",
    422: "The request is understood and cannot be carried out.",
    503: "The operation is switched off.",
}
#: Where a value from an answer is used next, by its path; the field has the last name of the path.
LINKS = {
    **{one.name: {"jobId": ["jobs/get"]} for one in OPERATIONS if one.answer is JobAnswer},
    "jobs/get": {
        "result/patternId": ["patterns/get", "refine/recolor", "refine/extend", "products/create"],
        "result/productId": ["products/get"],
    },
    "references/create": {"referenceId": ["references/get", "references/delete"]},
    "categories/list": {"categories/0/categoryId": ["categories/get"]},
    "models/list": {"models/0/modelId": ["models/get"]},
    "checkouts/create": {"checkoutId": ["checkouts/get", "orders/get"]},
}


@cache
def document() -> Schema:
    """Return the whole document, which callers must not change."""
    references, definitions = _schemas()
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Embedded studio",
            "version": "1",
            "description": "A whole implementation of the pattern and product service. Where the interface is silent,"
            " this is what this implementation chose.",
        },
        "servers": [{"url": VERSION}],
        "security": [{"bearer": []}],
        "paths": {f"/{one.name}": {"post": _operation(one, references)} for one in OPERATIONS},
        "components": {
            "schemas": definitions,
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
    }


def _schemas() -> tuple[dict[tuple[str, Mode], Schema], Schema]:
    """Return a reference to each body and answer, and the definitions that they lead to."""
    inputs: list[tuple[str, Mode, TypeAdapter[Any]]] = [("error", "serialization", TypeAdapter(ErrorAnswer))]
    for one in OPERATIONS:
        inputs.append((one.name, "validation", TypeAdapter(one.body)))
        inputs.append((one.name, "serialization", TypeAdapter(one.answer)))
    references, schema = TypeAdapter.json_schemas(inputs, ref_template="#/components/schemas/{model}")
    return dict(references), schema["$defs"]


def _operation(one: Operation, references: dict[tuple[str, Mode], Schema]) -> Schema:
    error = _json(references["error", "serialization"])
    refusals = sorted({*COMMON_REFUSALS, *one.refusals})
    return {
        "operationId": one.name,
        "tags": [one.name.partition("/")[0]],
        "summary": one.summary,
        "requestBody": {"required": True, "content": _json(references[one.name, "validation"])},
        "responses": {
            "200": {
                "description": "Done, or begun.",
                "content": _json(references[one.name, "serialization"]),
                **({"links": _links(LINKS[one.name])} if one.name in LINKS else {}),
            },
            **{str(status): {"description": REASONS[status], "content": error} for status in refusals},
        },
    }


def _links(places: dict[str, list[str]]) -> Schema:
    return {
        target.replace("/", "_"): {
            "operationId": target,
            "requestBody": {place.rpartition("/")[2]: f"$response.body#/{place}"},
        }
        for place, targets in places.items()
        for target in targets
    }


def _json(schema: Schema) -> Schema:
    return {"application/json": {"schema": schema}}
