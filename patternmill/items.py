"""Items: what is bought, known by its content. Nothing here may change: another ID is another purchase."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any
from uuid import UUID, uuid5

from patternmill.text import key, normal, sku_key

_NAMESPACE = UUID("6f1c2e0a-8a52-5d0e-9a55-7b1f6f0f5c11")
_encode = json.JSONEncoder(ensure_ascii=False, sort_keys=True).encode


class Stage(StrEnum):
    """The kind of an item. The values are part of the request IDs."""

    REFERENCE = "reference"
    PATTERN = "pattern"
    REFINEMENT = "refinement"
    PRODUCT = "product"
    CHECKOUT = "checkout"


@dataclass(frozen=True, slots=True)
class Item:
    """One thing to buy. Its content decides `id`; `fields` are what the request says of it."""

    id: str
    environment: str
    stage: Stage
    label: str = field(compare=False)
    fields: Mapping[str, Any] = field(compare=False)
    parent: "Item | None" = field(default=None, compare=False)
    #: Where it is created, and the field that names what it is built on.
    path: str = field(default="", compare=False)
    parent_field: str = field(default="patternId", compare=False)

    @property
    def operation(self) -> str:
        return self.path or f"{self.stage}s/create"

    def request_id(self, number: int) -> str:
        """Return the request ID of the item's attempt with this number; the same in each process, for ever."""
        return str(uuid5(UUID(self.id), str(number)))

    def body(self, number: int, parent_id: str | None) -> str:
        """Return the request of an attempt, as it is recorded and then sent."""
        parent: Any = [parent_id] if self.stage is Stage.PATTERN else parent_id  # a list of references
        built_on = {self.parent_field: parent} if parent_id else {}
        whole = {"requestId": self.request_id(number), **built_on, **self.fields}
        return json.dumps(whole, ensure_ascii=False, default=lambda value: value.as_json())


def _identity(environment: str, stage: Stage, content: Mapping[str, Any]) -> str:
    return str(uuid5(_NAMESPACE, _encode([environment, stage, content])))


def reference_item(environment: str, sha256: str, name: str) -> Item:
    """Return a reference image by the SHA-256 of its bytes, in lower-case hexadecimal digits."""
    return Item(
        _identity(environment, Stage.REFERENCE, {"sha256": sha256}), environment, Stage.REFERENCE, name, {}
    )


def pattern_item(
    environment: str,
    prompt: str,
    model: str = "",
    reference: Item | None = None,
    take: int = 1,
    fields: Mapping[str, str] | None = None,
) -> Item:
    """Return the pattern of a prompt; rows whose prompts read the same share it. A further take is another pattern."""
    content: dict[str, Any] = {"prompt": normal(prompt)}
    content |= {"model": model} if model else {}
    content |= {"reference": reference.id} if reference else {}
    content |= {"take": take} if take > 1 else {}
    content |= {"fields": dict(fields)} if fields else {}
    item_id = _identity(environment, Stage.PATTERN, content)
    return Item(item_id, environment, Stage.PATTERN, prompt[:60], {"prompt": prompt}, reference)


def refinement_item(parent: Item, operation: str, parameters: Mapping[str, str]) -> Item:
    """Return a refinement of a pattern or of another refinement."""
    content = {"parent": parent.id, "operation": operation, "parameters": dict(parameters)}
    item_id = _identity(parent.environment, Stage.REFINEMENT, content)
    label = f"{operation}: {parent.label}"
    return Item(item_id, parent.environment, Stage.REFINEMENT, label, dict(parameters), parent)


@dataclass(frozen=True, slots=True)
class Choice:
    """A category with selections, which many products share."""

    category_id: str
    #: The keys of the options and values, in order.
    chosen: tuple[tuple[str, str], ...]
    fields: Mapping[str, Any]


def choice_of(category_id: str, selections: Mapping[str, str]) -> Choice:
    """Return a choice. Other spellings of the same one make the same product."""
    chosen = sorted(zip(map(key, selections), map(key, selections.values()), strict=True))
    return Choice(category_id, tuple(chosen), {"categoryId": category_id, "selections": dict(selections)})


def product_item(parent: Item, sku: str, choice: Choice) -> Item:
    """Return the product of a row."""
    content = {"sku": sku_key(sku), **_content(parent, choice)}
    item_id = _identity(parent.environment, Stage.PRODUCT, content)
    return Item(item_id, parent.environment, Stage.PRODUCT, sku, choice.fields, parent)


def likeness_of(product: Item) -> str:
    """Return what products share that differ in their sku alone."""
    assert product.parent
    content = _content(product.parent, choice_of(product.fields["categoryId"], product.fields["selections"]))
    return str(uuid5(_NAMESPACE, _encode(content)))


def _content(parent: Item, choice: Choice) -> dict[str, Any]:
    return {"parent": parent.id, "category": choice.category_id, "selections": choice.chosen}


def checkout_item(environment: str, name: str, lines: Iterable[tuple[str, int]]) -> Item:
    """Return the checkout of an order by its name and its lines: product IDs and quantities."""
    ordered = sorted(lines)
    fields = {"lines": [{"productId": product, "quantity": quantity} for product, quantity in ordered]}
    content = {"name": name, "lines": [list(line) for line in ordered]}
    return Item(_identity(environment, Stage.CHECKOUT, content), environment, Stage.CHECKOUT, name, fields)


@dataclass(frozen=True, slots=True)
class Row:
    """A row that is fit to be made, by its number in the sheet.

    `pattern` is the first take of its pattern, and `take` the one that it wants, which a person `decided` or has
    rejected.
    """

    number: int
    sku: str
    product: Item
    pattern: str = ""
    take: int = 1
    decided: bool = False
    is_rejected: bool = False

    @property
    def chain(self) -> list[Item]:
        """Return the row's items in the order in which they are made; the last is its product."""
        chain: list[Item] = []
        item = self.product.parent
        while item:
            chain.insert(0, item)
            item = item.parent
        return [*chain, self.product]
