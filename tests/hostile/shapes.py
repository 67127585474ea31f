"""The answers of categories/list and categories/get, in shapes a service might choose: the interface names none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

PAGE = 2
Body = Mapping[str, Any]
_UNREADABLE = {"v": 3, "blob": "eJxLzs8tKEotLk5NUUhJLEkEACRlBRY=", "n": [1, 2, 3]}


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
    """The answer of categories/list; `paged_silent` shows that there is more, and has no cursor to it."""
    if shape == "unreadable":
        return _UNREADABLE
    start = 0
    if shape == "paged":
        # Whatever the client calls its cursor is accepted, for the interface does not name it.
        marks = {f"page-{start}": start for start in range(0, len(categories), PAGE)}
        start = next((marks[v] for v in body.values() if isinstance(v, str) and v in marks), 0)
    end = len(categories) if shape == "plain" else start + PAGE
    items = [{"categoryId": c.category_id, "name": c.name} for c in categories[start:end]]
    has_more = end < len(categories)
    return {"categories": items} | {
        "plain": {},
        "paged": {"nextCursor": f"page-{end}" if has_more else None, "hasMore": has_more},
        "paged_silent": {"hasMore": has_more},
    }[shape]


def details(shape: str, category: Category) -> Any:
    """The answer of categories/get."""
    if shape == "unreadable":
        return _UNREADABLE
    options = [{"name": name, "values": list(values)} for name, values in category.options.items()]
    return {"categoryId": category.category_id, "name": category.name, "options": options}
