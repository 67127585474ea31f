"""Items: what is bought. An item is what it contains, and so are its request IDs.

Nothing here may change: another ID is another purchase. `tests/test_items.py` has golden IDs of every kind.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any
from uuid import UUID, uuid5

from patternmill.text import key, normal, sku_key

_NAMESPACE = UUID("6f1c2e0a-8a52-5d0e-9a55-7b1f6f0f5c11")


class Stage(StrEnum):
    """The kind of an item. The values are part of the request IDs."""

    REFERENCE = "reference"
    PATTERN = "pattern"
    REFINEMENT = "refinement"
    PRODUCT = "product"
    CHECKOUT = "checkout"


@dataclass(frozen=True)
class Item:
    """One thing to buy. `content` decides its identity; `fields` are what the request says of it."""

    environment: str
    stage: Stage
    content: Mapping[str, Any]
    label: str = field(compare=False)
    fields: Mapping[str, Any] = field(compare=False)
    parent: "Item | None" = field(default=None, compare=False)

    @cached_property
    def id(self) -> str:
        identity = json.dumps(
            [self.environment, self.stage, self.content], ensure_ascii=False, sort_keys=True
        )
        return str(uuid5(_NAMESPACE, identity))

    def request_id(self, number: int) -> str:
        """Return the request ID of the item's attempt with this number; the same in each process, for ever."""
        return str(uuid5(UUID(self.id), str(number)))

    def body(self, number: int, parent_id: str | None) -> str:
        """Return the request of an attempt, as it is recorded and then sent."""
        built_on = {"patternId": parent_id} if parent_id else {}
        return json.dumps(
            {"requestId": self.request_id(number), **built_on, **self.fields}, ensure_ascii=False
        )


def reference_item(environment: str, sha256: str, name: str) -> Item:
    """Return a reference image by the SHA-256 of its bytes, in lower-case hexadecimal digits."""
    return Item(environment, Stage.REFERENCE, {"sha256": sha256}, name, {})


def pattern_item(
    environment: str, prompt: str, model: str = "", reference: Item | None = None, take: int = 1
) -> Item:
    """Return the pattern of a prompt; rows whose prompts read the same share it. A further take is another pattern."""
    content: dict[str, Any] = {"prompt": normal(prompt)}
    content |= {"model": model} if model else {}
    content |= {"reference": reference.id} if reference else {}
    content |= {"take": take} if take > 1 else {}
    return Item(environment, Stage.PATTERN, content, prompt[:60], {"prompt": prompt}, reference)


def refinement_item(parent: Item, operation: str, parameters: Mapping[str, str]) -> Item:
    """Return a refinement of a pattern or of another refinement."""
    content = {"parent": parent.id, "operation": operation, "parameters": dict(parameters)}
    return Item(
        parent.environment,
        Stage.REFINEMENT,
        content,
        f"{operation}: {parent.label}",
        dict(parameters),
        parent,
    )


def product_item(parent: Item, sku: str, category_id: str, selections: Mapping[str, str]) -> Item:
    """Return the product of a row. Other spellings of the same choice are the same product."""
    chosen = sorted([key(name), key(value)] for name, value in selections.items())
    content = {"sku": sku_key(sku), "parent": parent.id, "category": category_id, "selections": chosen}
    fields = {"categoryId": category_id, "selections": dict(selections)}
    return Item(parent.environment, Stage.PRODUCT, content, sku, fields, parent)


def likeness_of(product: Item) -> str:
    """Return what products share that differ in their sku alone."""
    choice = {name: value for name, value in product.content.items() if name != "sku"}
    return str(uuid5(_NAMESPACE, json.dumps(choice, ensure_ascii=False, sort_keys=True)))


def checkout_item(environment: str, name: str, lines: Iterable[tuple[str, int]]) -> Item:
    """Return the checkout of an order by its name and its lines: product IDs and quantities."""
    ordered = sorted(lines)
    fields = {"lines": [{"productId": product, "quantity": quantity} for product, quantity in ordered]}
    content = {"name": name, "lines": [list(line) for line in ordered]}
    return Item(environment, Stage.CHECKOUT, content, name, fields)
