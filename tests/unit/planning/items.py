"""Items by what is bought, without a row."""

from __future__ import annotations

from typing import Any

from patternmill.planning.items import Item, Scope, pattern_content, product_content
from patternmill.states import Stage


def pattern_item(scope: Scope, prompt: str, **terms: Any) -> Item:
    return Item(Stage.PATTERN, scope, pattern_content(prompt, **terms))


def product_item(scope: Scope, *what: Any, **terms: Any) -> Item:
    return Item(Stage.PRODUCT, scope, product_content(*what, **terms))
