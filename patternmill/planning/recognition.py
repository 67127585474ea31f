"""Finds what a row was bought as before, when its spelling, or what is known of the offer, is another one now."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Protocol

from patternmill.catalog.offer import offer_key
from patternmill.catalog.rows import Row, sku_key, tidy
from patternmill.identifiers import ItemKey
from patternmill.planning.items import PatternItem, ProductItem, Scope
from patternmill.planning.request_ids import pattern_content
from patternmill.states import AttemptState

#: There is something for the item at the service, or there may be.
EXISTING = frozenset(
    {AttemptState.SUCCEEDED, AttemptState.ACCEPTED, AttemptState.INTENDED, AttemptState.HELD}
)

#: A category and its selections, as an offer understands them; None where it does not.
Understand = Callable[[str, Mapping[str, str]], tuple[str, Mapping[str, str]] | None]


class KnownProduct(Protocol):
    """A product item of an earlier run: what was bought, of which pattern, and what its row said."""

    @property
    def key(self) -> ItemKey: ...
    @property
    def content(self) -> Mapping[str, Any]: ...
    @property
    def pattern_content(self) -> Mapping[str, Any]: ...
    @property
    def written(self) -> Mapping[str, Any] | None: ...


class Items(Protocol):
    """How a row becomes items."""

    def of(self, row: Row) -> tuple[PatternItem, ProductItem]: ...


class ContentItems:
    """The items that a row's content names."""

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


class RecognizedItems(ContentItems):
    """The items that earlier runs made for a row where it means the same, else those that its content names.

    A run that knows less than an earlier one (the offer, or one category of it, cannot be read) must not take
    what exists for something else. What no person means is no difference either: case and spaces of a sku, the
    ends of lines, kinds of spaces and invisible characters in a prompt.
    """

    def __init__(
        self,
        scope: Scope,
        *,
        states: Callable[[ItemKey], AttemptState | None],
        skus: Collection[str],
        products_of: Callable[[str], Sequence[KnownProduct]],
        understand: Understand,
        edition: str | None = None,
    ) -> None:
        """`states`: of each item's last attempt; `skus`: those asked for before, and `products_of` their items."""
        super().__init__(scope, edition=edition)
        self._states, self._skus, self._products_of = states, skus, products_of
        self._understand = understand
        self._spellings = {sku_key(sku): sku for sku in skus}

    def of(self, row: Row) -> tuple[PatternItem, ProductItem]:
        sku = self._known_spelling(row.sku)
        pattern = self.pattern(row.prompt)
        product = self.product(row, pattern, sku)
        if self._exists(product.key) or sku not in self._skus:
            return pattern, product
        known = next(self._same(row, sku), None)
        if known is None:
            return pattern, product
        return (
            PatternItem(self.scope, known.pattern_content),
            ProductItem(self.scope, known.content),
        )

    def _known_spelling(self, sku: str) -> str:
        return sku if sku in self._skus else self._spellings.get(sku_key(sku), sku)

    def _make_pattern(self, prompt: str) -> PatternItem:
        item = super()._make_pattern(prompt)
        if "\n" not in prompt or self._exists(item.key):
            return item
        content = pattern_content(prompt, edition=self.edition)
        raw = PatternItem(self.scope, {**content, "prompt": prompt.replace("\n", "\r\n")})
        return raw if self._exists(raw.key) else item

    def _exists(self, key: ItemKey) -> bool:
        return self._states(key) in EXISTING

    def _same(self, row: Row, sku: str) -> Iterator[KnownProduct]:
        for known in self._products_of(sku):
            edition = known.content.get("edition")
            prompt = str(known.pattern_content["prompt"])
            same = edition == self.edition and drawn(prompt) == drawn(row.prompt) and self._means(known, row)
            if same and self._exists(known.key):
                yield known

    def _means(self, known: KnownProduct, row: Row) -> bool:
        content = (str(known.content["category"]), known.content["selections"])
        written = known.written and (str(known.written["category"]), known.written["selections"])
        if written == (row.category, row.written):
            return True
        if row.is_resolved:
            return self._understand(*content) == (row.category_id, row.selections)
        # An item of an older version, whose row nobody can look up: what is not known buys nothing.
        if written is None:
            return True
        now = folded(row.category, row.written)
        return now in (folded(*written), folded(*content))


_UNSEEN = re.compile("[\u00ad\u200b-\u200f\u2060\ufeff]")


def drawn(prompt: str) -> str:
    """What a prompt has that a person can see: without its kinds of spaces, invisible characters and line ends."""
    return " ".join(_UNSEEN.sub("", tidy(prompt)).split())


def written_of(row: Row) -> dict[str, Any]:
    """What a row says of category and options in its own spelling, as it is kept with its item."""
    return {"category": row.category, "selections": row.written}


def folded(category: str, selections: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    return offer_key(category), {offer_key(name): offer_key(value) for name, value in selections.items()}
