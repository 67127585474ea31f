"""Answers that the interface leaves open, in shapes that other services might choose."""

from __future__ import annotations

import html
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from studio.errors import Refusal, unknown
from studio.operations.context import Answer
from studio.wire import read_body

PAGE = 2
JSON = "application/json"
CREATES = ("patterns/create", "products/create", "checkouts/create", "references/create")
#: Of what a create made.
IDENTIFIERS: tuple[str, ...] = ("jobId", "checkoutId", "referenceId")
Part = Literal["categories", "repeat", "errors"]


class Shapes(BaseModel):
    """Which shape each kind of answer has; `native` is the studio's own, `current` the job as it stands now."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    #: categories/list and categories/get.
    categories: Literal["native", "bare", "wrapped", "paged", "nested", "renamed"] = "native"
    #: The answer to a requestId that was accepted before.
    repeat: Literal["current", "first", "conflict"] = "current"
    #: The body of every answer with a status of 400 or above.
    errors: Literal["native", "problem", "message", "html"] = "native"


NATIVE = Shapes()


def may_be_shaped(shapes: Shapes, operation: str) -> bool:
    """Whether an answer of this operation may be another than the studio's own."""
    return (
        shapes.errors != "native"
        or (shapes.categories != "native" and operation.startswith("categories/"))
        or (shapes.repeat != "current" and operation.startswith(("refine/", *CREATES)))
    )


def read_shape(text: str) -> tuple[str, str]:
    """`categories=paged`, `repeat=first`, `errors=html`. Raises ValueError."""
    part, _, name = text.partition("=")
    try:
        read_body(Shapes, _dump({part: name}))
    except Refusal as refusal:
        raise ValueError(refusal.message) from None
    return part, name


def shape_categories(shape: str, operation: str, answer: Answer, body: Mapping[str, object]) -> object:
    """The studio's own answer in another shape. Raises Refusal (404) for a cursor that leads nowhere."""
    if operation == "categories/list":
        categories = answer["categories"]
        assert isinstance(categories, list)
        return LISTS[shape](categories, body)
    return RECORDS[shape](answer)


def _page(categories: Sequence[Answer], body: Mapping[str, object]) -> object:
    cursor = body.get("cursor", "page-1")
    pages = {f"page-{start // PAGE + 1}": start for start in range(0, len(categories), PAGE)}
    if not isinstance(cursor, str) or cursor not in pages:
        raise unknown("cursor", str(cursor))
    end = pages[cursor] + PAGE
    following = f"page-{end // PAGE + 1}" if end < len(categories) else None
    return {"categories": categories[pages[cursor] : end], "nextCursor": following}


def _groups(categories: Sequence[Answer], body: Mapping[str, object]) -> object:
    """By the price of the least of them."""

    def group(name: str, cheap: bool) -> Answer:
        return {"name": name, "categories": [one for one in categories if (_price(one) < 2000) == cheap]}

    return {"groups": [group("Small things", cheap=True), group("Large things", cheap=False)]}


def _price(category: Mapping[str, Any]) -> int:
    return int(category["priceFrom"]["amount"])


def _renamed(category: Mapping[str, Any]) -> Answer:
    return {"id": category["categoryId"], "title": category["name"], "summary": category["description"]}


LISTS: dict[str, Callable[[Sequence[Answer], Mapping[str, object]], object]] = {
    "bare": lambda categories, body: categories,
    "wrapped": lambda categories, body: {"data": {"items": categories, "total": len(categories)}},
    "paged": _page,
    "nested": _groups,
    "renamed": lambda categories, body: {"items": [_renamed(one) for one in categories]},
}


def _values_by_option(category: Mapping[str, Any]) -> object:
    return {**category, "options": {one["name"]: one["values"] for one in category["options"]}}


def _nested(category: Mapping[str, Any]) -> object:
    options = {
        one["name"]: {
            "label": one["label"],
            "required": one["required"],
            "choices": [
                {"value": value, "surcharge": one["surcharges"].get(value, 0)} for value in one["values"]
            ],
        }
        for one in category["options"]
    }
    summary = {name: category[name] for name in ("categoryId", "name", "description", "priceFrom")}
    return {"category": summary, "options": options}


def _renamed_record(category: Mapping[str, Any]) -> object:
    attributes = [
        {
            "key": one["name"],
            "title": one["label"],
            "mandatory": one["required"],
            "choices": [{"id": value, "title": value} for value in one["values"]],
        }
        for one in category["options"]
    ]
    return {**_renamed(category), "attributes": attributes}


RECORDS: dict[str, Callable[[Mapping[str, Any]], object]] = {
    "bare": _values_by_option,
    "wrapped": lambda category: {"data": category},
    "paged": lambda category: category,
    "nested": _nested,
    "renamed": _renamed_record,
}


def shape_repeat(shape: str, answer: Answer) -> Answer:
    """The answer to a repeated request. Raises Refusal (409)."""
    if shape == "conflict":
        raise Repeated({name: answer[name] for name in IDENTIFIERS if name in answer})
    if "jobId" in answer:
        return {"jobId": answer["jobId"], "kind": answer["kind"], "status": "running", "result": None}
    return {**answer, "status": "open"} if "checkoutId" in answer else answer


class Repeated(Refusal):
    """A repeated request, refused with the ID of what it made before."""

    def __init__(self, identifiers: Mapping[str, object]) -> None:
        super().__init__(409, "request_id_repeated", "This requestId was accepted before.")
        self._identifiers = identifiers

    def body(self) -> dict[str, object]:
        return {**super().body(), **self._identifiers}


def shape_error(shape: str, status: int, body: Mapping[str, Any]) -> tuple[str, bytes]:
    """Content type and body of an error; the studio's own fields next to `error` stay."""
    error = body["error"]
    rest = {name: value for name, value in body.items() if name != "error"}
    if shape == "html":
        page = (
            f"<!doctype html><title>{status}</title><h1>{status}</h1><p>{html.escape(error['message'])}</p>"
        )
        return "text/html; charset=utf-8", page.encode()
    if shape == "message":
        return JSON, _dump({"message": error["message"], **rest})
    problem = {"type": "about:blank", "title": error["code"], "status": status, "detail": error["message"]}
    fields = {"errors": error["fields"]} if "fields" in error else {}
    return "application/problem+json", _dump({**problem, **fields, **rest})


def _dump(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
