"""What earlier runs left, and the items of a row that reads as it did then, whatever is known of the offer now."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Protocol

from patternmill.catalog.normal_text import visible_text
from patternmill.catalog.offer import offer_key
from patternmill.catalog.rows import Row, sku_key
from patternmill.identifiers import ItemKey
from patternmill.planning.items import (
    Chain,
    ContentItems,
    PictureOf,
    Scope,
    canonical_json,
    no_picture,
    reference_of,
    written_of,
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
    def written(self) -> Mapping[str, Any]: ...


class RecognizedItems(ContentItems):
    """Finds the items that exist for a row that reads the same, else makes those of its content.

    A run that knows less than an earlier one (the offer, or one category of it, cannot be read) must not buy what
    exists once more. Nor do case and spaces of a sku count.
    """

    def __init__(
        self,
        scope: Scope,
        memory: Memory,
        products_of: Callable[[str], Sequence[KnownProduct]],
        *,
        edition: str | None = None,
        picture_of: PictureOf = no_picture,
        unstated: Unstated = UNSTATED,
    ) -> None:
        """`products_of`: the product items that were ever requested for a sku, the newest first."""
        super().__init__(scope, edition=edition, picture_of=picture_of, unstated=unstated)
        self._memory, self._products_of = memory, products_of
        self._spellings = {sku_key(sku): sku for sku in memory.products_by_sku}

    def of(self, row: Row) -> Chain:
        known_skus = self._memory.products_by_sku
        sku = row.sku if row.sku in known_skus else self._spellings.get(sku_key(row.sku), row.sku)
        chain = super().of(row if sku == row.sku else replace(row, sku=sku))
        if sku not in known_skus or self._exists(chain.product.key):
            return chain
        for known in self._products_of(sku):
            if self._exists(known.key) and self._reads_the_same(known, row):
                return self.known(known.pattern_contents, known.content)
        return chain

    def _exists(self, key: ItemKey) -> bool:
        last = self._memory.last_attempts.get(key)
        return last is not None and last.state in EXISTING

    def _reads_the_same(self, known: KnownProduct, row: Row) -> bool:
        pattern, *refinements = known.pattern_contents
        # A row that names no model leaves the choice to the service; whatever was chosen then, that buys nothing.
        named = row.written_model is not None or row.model in (None, pattern["parameters"].get("model"))
        return (
            named
            and known.content.get("edition") == self.edition
            and visible_text(row.prompt) == visible_text(pattern["prompt"])
            and reference_of(pattern) == row.reference
            and same_refinements(refinements, map(asdict, row.refinements))
            and _visible(written_of(row)) == _visible(known.written)
        )


def _visible(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {visible_text(name): _visible(one) for name, one in value.items()}
    return visible_text(value) if isinstance(value, str) else value


def same_refinements(one: Iterable[Mapping[str, Any]], other: Iterable[Mapping[str, Any]]) -> bool:
    """Whether two lists of them, each as it is bought, are the same to a person."""
    return _refined(one) == _refined(other)


def _refined(contents: Iterable[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Refinements as they count for a person: case counts in the words of an edit alone."""
    named = ((one["operation"], one["parameters"]) for one in contents)
    texts = ((name, canonical_json(_visible(parameters))) for name, parameters in named)
    return [(name, text if name == "edit" else text.casefold()) for name, text in texts]


def folded(category: str, selections: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """A category and its selections without case, and with every separator alike."""
    return offer_key(category), {offer_key(name): offer_key(value) for name, value in selections.items()}


class LastAttempt(Protocol):
    @property
    def state(self) -> AttemptState: ...
    @property
    def attempt(self) -> int: ...


@dataclass(frozen=True)
class Memory:
    last_attempts: Mapping[ItemKey, LastAttempt] = field(default_factory=dict)
    #: The product that each sku last requested.
    products_by_sku: Mapping[str, ItemKey] = field(default_factory=dict)
    #: Failed items that have attempts left, so that the next one follows without a person.
    trying: Collection[ItemKey] = frozenset()
    #: Failed items that stay so, also for rows that are retried.
    given_up: Collection[ItemKey] = frozenset()
