"""Work items: the things to be made by the service and paid for, with the exact bodies that request them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

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

    def body(self, request_id: RequestId, pattern_id: str | None = None) -> bytes:
        """The JSON of this attempt, the same bytes in every resend."""
        return canonical_json({"requestId": request_id, "prompt": self.prompt}).encode()

    def describe(self) -> str:
        """The name of its task run and of its log lines."""
        return f"pattern · {plain(' '.join(self.prompt.split()))}"


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

    def body(self, request_id: RequestId, pattern_id: str | None) -> bytes:
        assert pattern_id is not None, "a product is built on a pattern"
        body = {
            "requestId": request_id,
            "patternId": pattern_id,
            "categoryId": self.content["category"],
            "selections": self.content["selections"],
        }
        return canonical_json(body).encode()

    def describe(self) -> str:
        return f"product · {plain(self.sku, _MOST_OF_A_SKU)}"


Item = PatternItem | ProductItem
