"""What earlier runs left, and the items under which a row was bought before, whatever its spelling is now."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Protocol

from patternmill.catalog.offer import Offer, offer_key
from patternmill.catalog.rows import Row, sku_key, tidy
from patternmill.catalog.selections import resolved
from patternmill.identifiers import ItemKey
from patternmill.planning.items import (
    Chain,
    ContentItems,
    PatternItem,
    PictureOf,
    Scope,
    canonical_json,
    no_picture,
    reference_of,
)
from patternmill.planning.unstated import UNSTATED, Unstated
from patternmill.states import AttemptState

#: The service has something for the item, or may have.
EXISTING = frozenset(
    {AttemptState.SUCCEEDED, AttemptState.ACCEPTED, AttemptState.INTENDED, AttemptState.HELD}
)


class KnownProduct(Protocol):
    """A product item of an earlier run: what was bought, of which pattern, and how its row was written."""

    @property
    def key(self) -> ItemKey: ...
    @property
    def content(self) -> Mapping[str, Any]: ...
    @property
    def pattern_contents(self) -> Sequence[Mapping[str, Any]]:
        """Of the pattern, then of its refinements."""

    @property
    def written(self) -> Mapping[str, Any] | None: ...


class RecognizedItems(ContentItems):
    """Finds the items that earlier runs made for a row of the same meaning, else makes those of its content.

    A run that knows less than an earlier one (the offer, or one category of it, cannot be read) must not buy what
    exists once more. Nor do differences count that no person means: case and spaces of a sku, the ends of lines,
    kinds of spaces and invisible characters in a prompt.
    """

    def __init__(
        self,
        scope: Scope,
        memory: Memory,
        products_of: Callable[[str], Sequence[KnownProduct]],
        offer: Offer | None,
        *,
        edition: str | None = None,
        picture_of: PictureOf = no_picture,
        unstated: Unstated = UNSTATED,
    ) -> None:
        """`products_of`: the product items of a sku that is in `memory`."""
        super().__init__(scope, edition=edition, picture_of=picture_of, unstated=unstated)
        self._memory, self._products_of, self._offer = memory, products_of, offer
        self._spellings = {sku_key(sku): sku for sku in memory.products_by_sku}

    def of(self, row: Row) -> Chain:
        known_skus = self._memory.products_by_sku
        sku = row.sku if row.sku in known_skus else self._spellings.get(sku_key(row.sku), row.sku)
        chain = super().of(row if sku == row.sku else replace(row, sku=sku))
        if self._exists(chain.product.key) or sku not in known_skus:
            return chain
        known = next((known for known in self._products_of(sku) if self._is_same(known, row)), None)
        return chain if known is None else self.known(known.pattern_contents, known.content)

    def _make_pattern(self, row: Row) -> PatternItem:
        item = super()._make_pattern(row)
        if "\n" not in row.prompt or self._exists(item.key):
            return item
        raw = replace(item, content={**item.content, "prompt": row.prompt.replace("\n", "\r\n")})
        return raw if self._exists(raw.key) else item

    def _exists(self, key: ItemKey) -> bool:
        last = self._memory.last_attempts.get(key)
        return last is not None and last.state in EXISTING

    def _is_same(self, known: KnownProduct, row: Row) -> bool:
        pattern, *refinements = known.pattern_contents
        return (
            known.content.get("edition") == self.edition
            and visible_text(str(pattern["prompt"])) == visible_text(row.prompt)
            and reference_of(pattern) == row.reference
            and self._has_same_model(known, pattern, row)
            and _refined(refinements) == _refined(map(asdict, row.refinements))
            and self._has_same_selections(known, row)
            and self._exists(known.key)
        )

    def _has_same_model(self, known: KnownProduct, pattern: Mapping[str, Any], row: Row) -> bool:
        """By the ID that was sent, or as the row writes it: a list of models that cannot be read buys nothing.

        Nor does a default model that is not named any more.
        """
        sent, written = pattern.get("parameters", {}).get("model"), (known.written or {}).get("model")
        if row.model is None:
            return written is None
        ours = {offer_key(row.model), offer_key(row.written_model or row.model)}
        return not ours.isdisjoint({offer_key(name) for name in (sent, written) if name is not None})

    def _has_same_selections(self, known: KnownProduct, row: Row) -> bool:
        content = (str(known.content["category"]), known.content["selections"])
        written = known.written and (str(known.written["category"]), known.written["selections"])
        if written == (row.category, row.written):
            return True
        if row.is_resolved:
            return resolved(self._offer, *content) == (row.category_id, row.selections)
        # An item of an older version, which kept no rows: what is not known buys nothing.
        if written is None:
            return True
        return folded(row.category, row.written) in (folded(*written), folded(*content))


_UNSEEN = re.compile("[\u00ad\u200b-\u200f\u2060\ufeff]")


def visible_text(prompt: str) -> str:
    """What a person can see of a prompt: without its kinds of spaces, invisible characters and line ends."""
    return " ".join(_UNSEEN.sub("", tidy(prompt)).split())


def _refined(contents: Iterable[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Refinements as they count for a person: case counts in the words of an edit alone."""
    texts = ((one["operation"], visible_text(canonical_json(one["parameters"]))) for one in contents)
    return [(name, text if name == "edit" else text.casefold()) for name, text in texts]


def folded(category: str, selections: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """A category and its selections without case, and with every separator alike."""
    return offer_key(category), {offer_key(name): offer_key(value) for name, value in selections.items()}


class LastAttempt(Protocol):
    @property
    def state(self) -> AttemptState: ...


@dataclass(frozen=True)
class Memory:
    last_attempts: Mapping[ItemKey, LastAttempt] = field(default_factory=dict)
    #: The product that each sku last requested.
    products_by_sku: Mapping[str, ItemKey] = field(default_factory=dict)
    #: Failed items that have attempts left, so that the next one follows without a person.
    trying: Collection[ItemKey] = frozenset()
