"""What earlier runs left, and the item that answers a row which says what it said then."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from patternmill.catalog.catalog_file import CatalogFile
from patternmill.catalog.normal_text import visible_text
from patternmill.catalog.offer import offer_key
from patternmill.catalog.row_checks import Entry
from patternmill.catalog.rows import Row
from patternmill.catalog.source_rows import SourceRow, are_same, keys_of, texts_of
from patternmill.identifiers import ItemKey
from patternmill.planning.items import Chain, ContentItems, PictureOf, Scope, canonical_json, no_picture
from patternmill.planning.unstated import UNSTATED, Unstated
from patternmill.states import AttemptState

#: The service has something for the item, or may have.
EXISTING = frozenset(
    {AttemptState.SUCCEEDED, AttemptState.ACCEPTED, AttemptState.INTENDED, AttemptState.HELD}
)


class AnsweredItems(ContentItems):
    """Keeps the item that answers a row which says the same as before, whatever a run knows of the offer now.

    What a row says that has changed is answered by an item that answered just that before, else by a new one. Case and
    spaces of a sku do not count.
    """

    def __init__(
        self,
        scope: Scope,
        memory: Memory,
        file: CatalogFile,
        earlier_answers: Callable[[str], Iterable[SourceRow]],
        *,
        edition: str | None = None,
        is_named: bool = True,
        picture_of: PictureOf = no_picture,
        unstated: Unstated = UNSTATED,
    ) -> None:
        """`is_named`: the edition is for every row, not for those alone that have changed."""
        super().__init__(scope, edition=edition, picture_of=picture_of, unstated=unstated)
        self._memory, self._earlier_answers, self._is_named = memory, earlier_answers, is_named
        lines = (record.line for record in file.records)
        self._said = dict(zip(lines, zip(keys_of(file), texts_of(file), strict=True), strict=True))

    def of(self, entry: Entry) -> tuple[Entry, Chain] | None:
        key, said = self._said[entry.record.line]
        kept = self._memory.source_rows.get(key)
        is_same = kept is not None and are_same(kept.answered, said)
        edition = self.edition
        if kept is not None and is_same:
            edition = (edition if self._is_named else None) or kept.edition
            if self._stays(kept, entry, edition):
                return self._answered(kept, entry)
        if entry.row is None:
            return None
        row = entry.row if kept is None else replace(entry.row, sku=kept.sku)
        chain = self.chain(row, edition)
        if kept is None or self._state(chain.product.key) in EXISTING:
            return replace(entry, row=row), chain
        for earlier in self._earlier_answers(kept.sku):
            exists = self._state(earlier.product_key) in EXISTING
            if exists and are_same(earlier.answered, said) and self._stays(earlier, entry, edition):
                return self._answered(earlier, entry)
        return replace(entry, row=row), chain

    def _stays(self, kept: SourceRow, entry: Entry, edition: str | None) -> bool:
        """Whether its item still answers a row that says the same: it exists, may exist, or has failed."""
        state = self._state(kept.product_key)
        if kept.content is None or kept.edition != edition:
            return False
        if entry.row is None:
            return state in EXISTING
        is_picture = entry.row.reference == kept.content.reference
        return is_picture and (state in EXISTING or state is AttemptState.FAILED)

    def _answered(self, kept: SourceRow, entry: Entry) -> tuple[Entry, Chain]:
        """The row as its item answers it."""
        content = kept.content
        assert content is not None, "an item has content"
        row = Row(
            line=entry.record.line,
            sku=kept.sku,
            prompt=content.prompt,
            category=content.category,
            category_id=content.category,
            selections=dict(content.selections),
            cells=entry.record.cells,
            model=content.model,
            reference=content.reference,
            refinements=content.refinements,
        )
        chain = self.chain(row, kept.edition)
        assert chain.product.key == kept.product_key, "the same content is the same item"
        return replace(entry, row=row, problems=()), chain

    def _state(self, key: ItemKey | None) -> AttemptState | None:
        last = self._memory.last_attempts.get(key) if key is not None else None
        return last.state if last is not None else None


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
    #: By the key of the sku, what the source last said of it, and the item that answers that.
    source_rows: Mapping[str, SourceRow] = field(default_factory=dict)
