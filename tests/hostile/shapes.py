"""The answers of categories/list and categories/get, in shapes a service might choose: the interface names none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

PAGE = 2
#: All that answer in pages; `paged_silent` shows that there is more, and has no cursor to it.
PAGED = ("paged", "paged_token", "paged_number", "paged_address", "paged_info", "paged_count", "paged_silent")
Body = Mapping[str, Any]


@dataclass(frozen=True)
class Category:
    category_id: str
    name: str
    options: Mapping[str, tuple[str, ...]]


def categories_of(environment: str, catalog: Mapping[str, Mapping[str, tuple[str, ...]]]) -> list[Category]:
    return [
        Category(f"{environment[:4]}_{name.lower().replace(' ', '-')}_{number:02}", name, options)
        for number, (name, options) in enumerate(catalog.items(), start=1)
    ]


def listing(shape: str, categories: list[Category], body: Body) -> Any:
    """The answer of categories/list."""
    match shape:
        case "plain":
            return {"categories": [{"categoryId": c.category_id, "name": c.name} for c in categories]}
        case "bare":
            return [{"categoryId": c.category_id, "name": c.name} for c in categories]
        case "nested":
            items = [
                {"category": {"id": c.category_id, "label": c.name}, "enabled": True} for c in categories
            ]
            return {"data": {"items": items, "total": len(items)}}
        case "map":
            return {"categories": {c.category_id: {"name": c.name} for c in categories}}
        case "schema":
            return {"items": [{"categoryId": c.category_id, "title": c.name} for c in categories]}
        case _ if shape in PAGED:
            return _page(shape, categories, body)
        case "unreadable":
            return {"v": 3, "blob": "eJxLzs8tKEotLk5NUUhJLEkEACRlBRY=", "n": [1, 2, 3]}
    raise ValueError(f"no such shape: {shape}")


def _page(shape: str, categories: list[Category], body: Body) -> Any:
    """A field that the shape does not know is ignored: the first page comes again."""
    start = _start(shape, body)
    items = [{"categoryId": c.category_id, "name": c.name} for c in categories[start : start + PAGE]]
    following = start + PAGE if start + PAGE < len(categories) else None
    return {"categories": items, **_cursor(shape, following, len(categories))}


def _start(shape: str, body: Body) -> int:
    marks = {f"page-{start}": start for start in range(0, 1000, PAGE)}
    match shape:
        case "paged":
            # Whatever the client calls its cursor is accepted, for the interface does not name it.
            return next((marks[v] for v in body.values() if isinstance(v, str) and v in marks), 0)
        case "paged_token":
            return marks.get(body.get("pageToken", ""), 0)
        case "paged_info":
            return marks.get(body.get("after", ""), 0)
        case "paged_number" | "paged_address":
            return (int(body.get("page", 1)) - 1) * PAGE
        case "paged_count":
            return int(body.get("offset", 0))
    return 0


def _cursor(shape: str, following: int | None, total: int) -> dict[str, Any]:
    mark = None if following is None else f"page-{following}"
    number = None if following is None else following // PAGE + 1
    match shape:
        case "paged_token":
            return {"nextPageToken": mark or ""}
        case "paged_number":
            return {"pagination": {"nextPage": number}}
        case "paged_address":
            return {"next": number and f"https://elsewhere.invalid/v1/categories/list?page={number}"}
        case "paged_info":
            return {"pageInfo": {"endCursor": mark or "page-0", "hasNextPage": following is not None}}
        case "paged_count":
            return {"total": total}
        case "paged_silent":
            return {"hasMore": following is not None}
    return {"nextCursor": mark, "hasMore": following is not None}


def details(shape: str, category: Category) -> Any:
    """The answer of categories/get."""
    named = {"categoryId": category.category_id, "name": category.name}
    match shape:
        case _ if shape in {"plain", "bare", *PAGED}:
            options = [{"name": name, "values": list(values)} for name, values in category.options.items()]
            return {**named, "options": options}
        case "nested":
            return {
                "data": {
                    "category": {"id": category.category_id, "label": category.name, **_nested(category)}
                }
            }
        case "map":
            return {**named, "options": {name: list(values) for name, values in category.options.items()}}
        case "schema":
            return {
                "categoryId": category.category_id,
                "title": category.name,
                "optionsSchema": _schema(category),
            }
        case "unreadable":
            return {"v": 3, "blob": "eJxLzs8tKEotLk5NUUhJLEkEACRlBRY="}
    raise ValueError(f"no such shape: {shape}")


def _nested(category: Category) -> Any:
    options = [
        {
            "key": name,
            "label": name.title(),
            "choices": [{"value": value, "label": value.title()} for value in values],
        }
        for name, values in category.options.items()
    ]
    return {"options": options}


def _schema(category: Category) -> Any:
    properties = {name: {"type": "string", "enum": list(values)} for name, values in category.options.items()}
    return {"type": "object", "properties": properties, "required": list(properties)}
