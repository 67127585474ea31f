"""The OpenAPI 3.1 document: made from the table of operations and the models that validate."""

from __future__ import annotations

from functools import cache
from typing import Any, Literal

from pydantic import TypeAdapter

from studio.answers import ErrorAnswer
from studio.operations.table import OPERATIONS, Operation

VERSION = "/v1"
Mode = Literal["validation", "serialization"]
Schema = dict[str, Any]
#: Every operation may be answered so: a body, a key, a size or a type that does not fit.
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
#: Where a value that an operation answers is used next: field of the next body by place in the answer.
LINKS: dict[str, dict[str, dict[str, str]]] = {
    **{
        f"{group}/{name}": {"jobs/get": {"jobId": "jobId"}}
        for group, names in (("patterns", ("create",)), ("refine", ("edit", "recolor", "crop", "extend")))
        for name in names
    },
    "products/create": {"jobs/get": {"jobId": "jobId"}},
    "jobs/get": {
        "patterns/get": {"patternId": "result/patternId"},
        "refine/recolor": {"patternId": "result/patternId"},
        "refine/extend": {"patternId": "result/patternId"},
        "products/create": {"patternId": "result/patternId"},
        "products/get": {"productId": "result/productId"},
    },
    "references/create": {
        "references/get": {"referenceId": "referenceId"},
        "references/delete": {"referenceId": "referenceId"},
    },
    "categories/list": {"categories/get": {"categoryId": "categories/0/categoryId"}},
    "models/list": {"models/get": {"modelId": "models/0/modelId"}},
    "checkouts/create": {
        "checkouts/get": {"checkoutId": "checkoutId"},
        "orders/get": {"checkoutId": "checkoutId"},
    },
}


@cache
def document() -> Schema:
    """The whole document; not to be changed."""
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
    """A reference to each body and answer, and the definitions that they lead to."""
    inputs: list[tuple[str, Mode, TypeAdapter[Any]]] = [("error", "serialization", TypeAdapter(ErrorAnswer))]
    for one in OPERATIONS:
        inputs.append((one.name, "validation", TypeAdapter(one.body)))
        inputs.append((one.name, "serialization", TypeAdapter(one.answer)))
    references, schema = TypeAdapter.json_schemas(inputs, ref_template="#/components/schemas/{model}")
    return dict(references), schema["$defs"]


def _operation(one: Operation, references: dict[tuple[str, Mode], Schema]) -> Schema:
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
            **{str(status): _refusal(status, references["error", "serialization"]) for status in refusals},
        },
    }


def _refusal(status: int, schema: Schema) -> Schema:
    return {"description": REASONS[status], "content": _json(schema)}


def _links(targets: dict[str, dict[str, str]]) -> Schema:
    return {
        target.replace("/", "_"): {
            "operationId": target,
            "requestBody": {name: f"$response.body#/{place}" for name, place in fields.items()},
        }
        for target, fields in targets.items()
    }


def _json(schema: Schema) -> Schema:
    return {"application/json": {"schema": schema}}
