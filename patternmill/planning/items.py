"""Work items: what is made by the service and paid for, under names that follow from what is bought.

No crash and no second run changes a name, and each attempt has exactly one body.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Protocol
from uuid import UUID, uuid5

from patternmill.catalog.rows import Row, tidy
from patternmill.identifiers import ItemKey, RequestId
from patternmill.states import Stage
from patternmill.text import plain

#: The root of every ID. It, the "v1" and the shape of the JSON are pinned for ever by golden tests.
NAMESPACE = UUID("6f1c2c1e-6a53-5d0b-9c3e-5b7f2a1d4e80")


def canonical_json(value: Any) -> str:
    """The one spelling of a JSON value: sorted keys, no spaces, characters as they are."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def pattern_content(prompt: str, *, edition: str | None = None) -> dict[str, Any]:
    """What is bought as a pattern. With an `edition` the same thing is bought again."""
    content: dict[str, Any] = {"prompt": tidy(prompt), "parameters": {}}
    return content | {"edition": edition} if edition else content


def product_content(
    sku: str, pattern: ItemKey, category_id: str, selections: Mapping[str, str], *, edition: str | None = None
) -> dict[str, Any]:
    """What is bought as a product: this sku's, of this pattern item, in this category, with these selections."""
    content: dict[str, Any] = {
        "sku": tidy(sku),
        "pattern": pattern,
        "category": category_id,
        "selections": dict(selections),
    }
    return content | {"edition": edition} if edition else content


def item_key(environment: str, catalog: str, stage: Stage, content: Mapping[str, Any]) -> ItemKey:
    """The name of an item, whatever the attempt."""
    return ItemKey(_name(environment, catalog, stage, content))


def request_id(
    environment: str, catalog: str, stage: Stage, content: Mapping[str, Any], attempt: int
) -> RequestId:
    """The `requestId` of the n-th attempt (from 1) at an item."""
    if attempt < 1:
        raise ValueError("attempts are counted from 1")
    return RequestId(_name(environment, catalog, stage, content, attempt))


def _name(environment: str, catalog: str, stage: Stage, content: Mapping[str, Any], *attempt: int) -> str:
    return str(uuid5(NAMESPACE, canonical_json(["v1", environment, catalog, stage.value, content, *attempt])))


_MOST_OF_A_SKU = 200


#: By item, the IDs under which the service has what was made.
Made = Mapping[ItemKey, str]
NOTHING_MADE: Made = {}


@dataclass(frozen=True)
class Scope:
    """Whose items these are: no request ID is ever shared between two scopes."""

    environment: str
    catalog: str


@dataclass(frozen=True)
class _WorkItem:
    """What both kinds of items have: a scope, what is bought, and the names that follow from the two."""

    scope: Scope
    content: Mapping[str, Any]
    stage: ClassVar[Stage]

    @cached_property
    def key(self) -> ItemKey:
        return item_key(self.scope.environment, self.scope.catalog, self.stage, self.content)

    def request_id(self, attempt: int) -> RequestId:
        return request_id(self.scope.environment, self.scope.catalog, self.stage, self.content, attempt)

    #: Where its stage has several operations.
    operation: ClassVar[str | None] = None


def pattern_name(prompt: str) -> str:
    """What people see of a pattern item."""
    return f"pattern · {plain(' '.join(prompt.split()))}"


def product_name(sku: str) -> str:
    """What people see of a product item."""
    return f"product · {plain(sku, _MOST_OF_A_SKU)}"


class PatternItem(_WorkItem):
    """One pattern to be generated; every row with this prompt shares it."""

    stage = Stage.PATTERN
    sku = None
    pattern_key = None

    @classmethod
    def of(cls, scope: Scope, prompt: str, *, edition: str | None = None) -> PatternItem:
        return cls(scope, pattern_content(prompt, edition=edition))

    @property
    def prompt(self) -> str:
        return str(self.content["prompt"])

    def body(self, request_id: RequestId, made: Made = NOTHING_MADE) -> bytes:
        """The JSON of this attempt, the same bytes in every resend. `made`: IDs of what it is built on."""
        return canonical_json({"requestId": request_id, "prompt": self.prompt}).encode()

    def describe(self) -> str:
        """The name of its task run and of its log lines."""
        return pattern_name(self.prompt)


class ProductItem(_WorkItem):
    """One product to be built: one row's sku, on one pattern, in one category with its selections."""

    stage = Stage.PRODUCT

    @classmethod
    def of(
        cls,
        scope: Scope,
        sku: str,
        pattern: ItemKey,
        category_id: str,
        selections: Mapping[str, str],
        *,
        edition: str | None = None,
    ) -> ProductItem:
        return cls(scope, product_content(sku, pattern, category_id, selections, edition=edition))

    @property
    def sku(self) -> str:
        return str(self.content["sku"])

    @property
    def pattern_key(self) -> ItemKey:
        return ItemKey(self.content["pattern"])

    def body(self, request_id: RequestId, made: Made) -> bytes:
        body = {
            "requestId": request_id,
            "patternId": made[self.pattern_key],
            "categoryId": self.content["category"],
            "selections": self.content["selections"],
        }
        return canonical_json(body).encode()

    def describe(self) -> str:
        return product_name(self.sku)


Item = PatternItem | ProductItem


class Items(Protocol):
    def of(self, row: Row) -> tuple[PatternItem, ProductItem]: ...


class ContentItems:
    """Makes the items of rows by their content alone."""

    def __init__(self, scope: Scope, *, edition: str | None = None) -> None:
        self.scope, self.edition = scope, edition
        self._patterns: dict[str, PatternItem] = {}

    def of(self, row: Row) -> tuple[PatternItem, ProductItem]:
        pattern = self.pattern(row.prompt)
        return pattern, self.product(row, pattern)

    def pattern(self, prompt: str) -> PatternItem:
        """One item a prompt."""
        if prompt not in self._patterns:
            self._patterns[prompt] = self._make_pattern(prompt)
        return self._patterns[prompt]

    def _make_pattern(self, prompt: str) -> PatternItem:
        return PatternItem.of(self.scope, prompt, edition=self.edition)

    def product(self, row: Row, pattern: PatternItem, sku: str | None = None) -> ProductItem:
        category = row.category_id or row.category
        return ProductItem.of(
            self.scope, sku or row.sku, pattern.key, category, row.selections, edition=self.edition
        )


def written_of(row: Row) -> dict[str, Any]:
    """A row's category and selections in its own spelling, as they are kept with its item."""
    return {"category": row.category, "selections": row.written}
