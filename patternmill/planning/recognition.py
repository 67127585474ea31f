"""What earlier runs left, and the items under which a row was bought before, whatever its spelling is now."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol

from patternmill.catalog.normal_text import has_lost_characters, normalised, visible_text
from patternmill.catalog.offer import Offer, offer_key
from patternmill.catalog.rows import Row, sku_key
from patternmill.catalog.selections import resolved
from patternmill.identifiers import ItemKey
from patternmill.planning.items import (
    Chain,
    ContentItems,
    Item,
    PictureOf,
    ReferenceItem,
    Scope,
    canonical_json,
    item_key,
    no_picture,
    reference_of,
)
from patternmill.planning.unstated import UNSTATED, Unstated
from patternmill.states import AttemptState, Stage

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


class EarlierItems(Protocol):
    """What the ledger has of a catalog's items."""

    def products_of(self, sku: str) -> Sequence[KnownProduct]:
        """The newest first."""

    def pattern_texts(self, stage: Stage) -> Iterable[tuple[ItemKey, ItemKey | None, str]]:
        """Of the patterns, or the refinements: key, what each is built on, and its content as canonical JSON."""

    def pattern_contents(self, key: ItemKey) -> Sequence[Mapping[str, Any]]:
        """Of the pattern, then of its refinements up to this one."""


class RecognizedItems(ContentItems):
    """Finds the items that earlier runs made for a row of the same meaning, else makes those of its content.

    A run that knows less than an earlier one (the offer, or one category of it, cannot be read) must not buy what
    exists once more. Nor do differences count that no person means: case and spaces of a sku, what is not normalised
    in a prompt, as older versions bought it, and characters of a prompt that were lost as a program saved the file.
    """

    def __init__(
        self,
        scope: Scope,
        memory: Memory,
        earlier: EarlierItems,
        offer: Offer | None,
        *,
        edition: str | None = None,
        picture_of: PictureOf = no_picture,
        unstated: Unstated = UNSTATED,
    ) -> None:
        super().__init__(scope, edition=edition, picture_of=picture_of, unstated=unstated)
        self._memory, self._earlier, self._offer = memory, earlier, offer
        self._spellings = {sku_key(sku): sku for sku in memory.products_by_sku}

    def of(self, row: Row) -> Chain:
        known_skus = self._memory.products_by_sku
        sku = row.sku if row.sku in known_skus else self._spellings.get(sku_key(row.sku), row.sku)
        chain = super().of(row if sku == row.sku else replace(row, sku=sku))
        is_known = sku in known_skus
        if self._exists(chain.product.key) or (not is_known and self._exists(chain.pattern.key)):
            return chain
        chains = (chain, *self._as_spelled_before(chain))
        if is_known and (known := self._known_chain(chains, sku, row)):
            return known
        # Of what was only planned before, the old spelling: a person may have approved, or rejected, those items.
        return max(chains, key=lambda one: (*self._progress(one), one is not chain))

    def _known_chain(self, chains: Sequence[Chain], sku: str, row: Row) -> Chain | None:
        """The one whose product exists; else that of a product of the same meaning; else of one that was tried."""
        existing = next((chain for chain in chains if self._exists(chain.product.key)), None)
        if existing is not None:
            return existing
        known = next((known for known in self._earlier.products_of(sku) if self._is_same(known, row)), None)
        if known is not None:
            return self.known(known.pattern_contents, known.content)
        return next((chain for chain in chains if self._was_tried(chain.product.key)), None)

    def _as_spelled_before(self, chain: Chain) -> Iterator[Chain]:
        """The same chain on patterns and refinements whose texts an older version did not normalise."""
        patterns = _patterns(chain)
        for count in range(len(patterns), 0, -1):
            for key in self._old_spellings.get(patterns[count - 1].key, ()):
                contents = list(self._earlier.pattern_contents(key))
                for item in patterns[count:]:
                    contents.append({**item.content, "pattern": key})
                    key = self._key(Stage.REFINEMENT, contents[-1])
                yield self.known(contents, {**chain.product.content, "pattern": key})

    @cached_property
    def _old_spellings(self) -> Mapping[ItemKey, Sequence[ItemKey]]:
        """By the key that it would have now: the patterns and refinements with texts that are not normalised."""
        now: dict[ItemKey, ItemKey] = {}
        self._add_normal_keys(Stage.PATTERN, now)
        while self._add_normal_keys(Stage.REFINEMENT, now):
            pass
        found: dict[ItemKey, list[ItemKey]] = defaultdict(list)
        for key, normal in now.items():
            found[normal].append(key)
        return found

    def _add_normal_keys(self, stage: Stage, now: dict[ItemKey, ItemKey]) -> bool:
        """Whether a key was found; a refinement's depends on that of what it is built on."""
        is_changed = False
        for key, parent, text in self._earlier.pattern_texts(stage):
            if parent in now or _MAY_BE_RAW.search(text):
                content = json.loads(text)
                normal = _normal_content(content, now)
                if normal != content and now.get(key) != (normal_key := self._key(stage, normal)):
                    now[key], is_changed = normal_key, True
        return is_changed

    def _key(self, stage: Stage, content: Mapping[str, Any]) -> ItemKey:
        return item_key(self.scope.environment, self.scope.catalog, stage, content)

    def _progress(self, chain: Chain) -> tuple[int, int]:
        """How far a chain's patterns exist, then how far they were tried."""
        keys = [item.key for item in _patterns(chain)]
        existing = (number for number, key in enumerate(keys, 1) if self._exists(key))
        tried = (number for number, key in enumerate(keys, 1) if self._was_tried(key))
        return max(existing, default=0), max(tried, default=0)

    def _exists(self, key: ItemKey) -> bool:
        last = self._memory.last_attempts.get(key)
        return last is not None and last.state in EXISTING

    def _was_tried(self, key: ItemKey) -> bool:
        last = self._memory.last_attempts.get(key)
        return last is not None and last.state is not AttemptState.WITHDRAWN

    def _is_same(self, known: KnownProduct, row: Row) -> bool:
        pattern, *refinements = known.pattern_contents
        return (
            known.content.get("edition") == self.edition
            and _is_same_text(visible_text(row.prompt), visible_text(str(pattern["prompt"])))
            and reference_of(pattern) == row.reference
            and self._has_same_model(known, pattern, row)
            and same_refinements(refinements, map(asdict, row.refinements))
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


#: Canonical JSON in which a text may not be normalised: beyond ASCII, with an escape, or two spaces.
_MAY_BE_RAW = re.compile(r"[^ -~]|\\|  ")


def _is_same_text(text: str, known: str) -> bool:
    """Also where a program saved the known one without some of its characters: nobody means such a change."""
    return text == known or has_lost_characters(text, known)


def _normal_content(content: Mapping[str, Any], now: Mapping[ItemKey, ItemKey]) -> dict[str, Any]:
    """The content of a pattern or refinement as it would be bought now. `now`: the keys that have become others."""
    if "prompt" in content:
        return {**content, "prompt": normalised(content["prompt"])}
    parameters = {name: _if_text(normalised, value) for name, value in content["parameters"].items()}
    return {**content, "pattern": now.get(content["pattern"], content["pattern"]), "parameters": parameters}


def _if_text(change: Callable[[str], str], value: Any) -> Any:
    return change(value) if isinstance(value, str) else value


def _patterns(chain: Chain) -> list[Item]:
    """Its pattern and refinements."""
    return [item for item in (*chain.before, chain.pattern) if not isinstance(item, ReferenceItem)]


def same_refinements(one: Iterable[Mapping[str, Any]], other: Iterable[Mapping[str, Any]]) -> bool:
    """Whether two lists of them, each as it is bought, are the same to a person."""
    return _refined(one) == _refined(other)


def _refined(contents: Iterable[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Refinements as they count for a person: case counts in the words of an edit alone."""
    named = ((one["operation"], one["parameters"]) for one in contents)
    texts = (
        (name, canonical_json({key: _if_text(visible_text, value) for key, value in parameters.items()}))
        for name, parameters in named
    )
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
