"""The answers of categories/list and categories/get, in shapes a service might choose: the interface names none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

PAGE = 2
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
        case "paged":
            return _page(categories, body)
        case "unreadable":
            return {"v": 3, "blob": "eJxLzs8tKEotLk5NUUhJLEkEACRlBRY=", "n": [1, 2, 3]}
    raise ValueError(f"no such shape: {shape}")


def _page(categories: list[Category], body: Body) -> Any:
    """Whatever the client calls its cursor is accepted, for the interface does not name it."""
    starts = {f"page-{start}": start for start in range(0, len(categories), PAGE)}
    start = next((starts[v] for v in body.values() if isinstance(v, str) and v in starts), 0)
    items = [{"categoryId": c.category_id, "name": c.name} for c in categories[start : start + PAGE]]
    more = start + PAGE < len(categories)
    return {"categories": items, "nextCursor": f"page-{start + PAGE}" if more else None, "hasMore": more}


def details(shape: str, category: Category) -> Any:
    """The answer of categories/get."""
    named = {"categoryId": category.category_id, "name": category.name}
    match shape:
        case "plain" | "bare" | "paged":
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
