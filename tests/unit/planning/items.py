"""Items by what is bought, without a row."""

from __future__ import annotations

from typing import Any

from patternmill.planning.items import PatternItem, ProductItem, Scope, pattern_content, product_content


def pattern_item(scope: Scope, prompt: str, **terms: Any) -> PatternItem:
    return PatternItem(scope, pattern_content(prompt, **terms))


def product_item(scope: Scope, *what: Any, **terms: Any) -> ProductItem:
    return ProductItem(scope, product_content(*what, **terms))
