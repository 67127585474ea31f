"""The names of items and attempts: derived from what is bought, so that no crash or second run changes them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from uuid import UUID, uuid5

from patternmill.catalog.rows import tidy
from patternmill.identifiers import ItemKey, RequestId
from patternmill.states import Stage

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
