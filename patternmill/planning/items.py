"""Work items: the things to be made by the service and paid for, with the exact bodies that ask for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from patternmill.catalog.problems import plain
from patternmill.identifiers import ItemKey, RequestId
from patternmill.planning.request_ids import (
    canonical_json,
    item_key,
    pattern_content,
    product_content,
    request_id,
)
from patternmill.states import Stage

_MOST_OF_A_SKU = 200


@dataclass(frozen=True)
class Scope:
    """Whose items these are: no request ID is ever shared between two scopes."""

    environment: str
    catalog: str


@dataclass(frozen=True)
class PatternItem:
    """One pattern to be generated; every row with this prompt shares it."""

    scope: Scope
    content: Mapping[str, Any]
    stage = Stage.PATTERN
    sku = None
    pattern_key = None

    @classmethod
    def of(cls, scope: Scope, prompt: str, *, edition: str | None = None) -> PatternItem:
        return cls(scope, pattern_content(prompt, edition=edition))

    @cached_property
    def key(self) -> ItemKey:
        return item_key(self.scope.environment, self.scope.catalog, self.stage, self.content)

    @property
    def prompt(self) -> str:
        return str(self.content["prompt"])

    def request_id(self, attempt: int) -> RequestId:
        return request_id(self.scope.environment, self.scope.catalog, self.stage, self.content, attempt)

    def body(self, request_id: RequestId, pattern_id: str | None = None) -> bytes:
        """The JSON that is sent, byte for byte, each time this attempt is sent."""
        return canonical_json({"requestId": request_id, "prompt": self.prompt}).encode()

    def describe(self) -> str:
        """The name of its task run and of its log lines."""
        return f"pattern · {plain(' '.join(self.prompt.split()))}"


@dataclass(frozen=True)
class ProductItem:
    """One product to be built: one row's sku, on one pattern, in one category with its selections."""

    scope: Scope
    content: Mapping[str, Any]
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

    @cached_property
    def key(self) -> ItemKey:
        return item_key(self.scope.environment, self.scope.catalog, self.stage, self.content)

    @property
    def sku(self) -> str:
        return str(self.content["sku"])

    @property
    def pattern_key(self) -> ItemKey:
        return ItemKey(self.content["pattern"])

    def request_id(self, attempt: int) -> RequestId:
        return request_id(self.scope.environment, self.scope.catalog, self.stage, self.content, attempt)

    def body(self, request_id: RequestId, pattern_id: str | None) -> bytes:
        """The JSON that is sent, byte for byte, each time this attempt is sent."""
        assert pattern_id is not None, "a product is built on a pattern"
        return canonical_json(
            {
                "requestId": request_id,
                "patternId": pattern_id,
                "categoryId": self.content["category"],
                "selections": self.content["selections"],
            }
        ).encode()

    def describe(self) -> str:
        """The name of its task run and of its log lines."""
        return f"product · {plain(self.sku, _MOST_OF_A_SKU)}"


Item = PatternItem | ProductItem
