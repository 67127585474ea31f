"""What earlier runs left, and the item that answers a row which says what it said then."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from patternmill.catalog.catalog_file import CatalogFile, Record
from patternmill.catalog.row_checks import Entry
from patternmill.catalog.rows import Content, Row
from patternmill.catalog.source_rows import SourceRow, are_same, keys_of, texts_of
from patternmill.identifiers import ItemKey
from patternmill.planning.items import (
    Chain,
    ContentItems,
    PictureOf,
    Scope,
    no_picture,
    pattern_content,
)
from patternmill.planning.takes import KnownTake, built_on, picked
from patternmill.planning.unstated import UNSTATED, Unstated
from patternmill.states import UNWANTED, AttemptState, Decided

#: The service has something for the item, or may have.
EXISTING = frozenset(
    {AttemptState.SUCCEEDED, AttemptState.ACCEPTED, AttemptState.INTENDED, AttemptState.HELD}
)
_OPEN = frozenset({AttemptState.INTENDED, AttemptState.ACCEPTED})


class RowTakes(ContentItems):
    """Knows the takes of rows' patterns: which were requested, and what people decided about them."""

    def __init__(self, scope: Scope, memory: Memory, **terms: Any) -> None:
        super().__init__(scope, **terms)
        self._memory = memory
        self._places = {key: place for place, key in enumerate(memory.verdicts)}

    def known(self, row: Row) -> list[KnownTake]:
        """The takes of a row's pattern that were requested before, from the first one on."""
        found: list[KnownTake] = []
        while True:
            first = self.pattern(row, len(found) + 1)
            if (state := self._state(first.key)) is None:
                return found
            judged = self.chain(replace(row, take=first.take)).pattern if row.refinements else first
            key = judged.key if judged.key in self._memory.verdicts else first.key
            verdict, place = self._memory.verdicts.get(key), self._places.get(key, 0)
            found.append(KnownTake(first.take, state in EXISTING, verdict, place))

    def is_open(self, row: Row, take: int) -> bool:
        """Whether its request was sent, and has no end."""
        return self._state(self.pattern(row, take).key) in _OPEN

    def _state(self, key: ItemKey | None) -> AttemptState | None:
        last = self._memory.last_attempts.get(key) if key is not None else None
        return last.state if last is not None else None


class AnsweredItems(RowTakes):
    """Keeps the item that answers a row which says the same as before, whatever a run knows of the offer now.

    What a row says that has changed is answered by an item that answered just that before, else by a new one. Case and
    spaces of a sku do not count. Which take of its pattern a new one is built on is decided in `takes`.
    """

    def __init__(
        self,
        scope: Scope,
        memory: Memory,
        file: CatalogFile,
        earlier_answers: Callable[[str], Iterable[SourceRow]],
        *,
        are_results: bool = False,
        takes: int = 1,
        picture_of: PictureOf = no_picture,
        unstated: Unstated = UNSTATED,
    ) -> None:
        """`are_results`: the rows are a results file's. `takes`: how many to choose from, where none was chosen."""
        super().__init__(scope, memory, picture_of=picture_of, unstated=unstated)
        self._takes = takes
        #: What an earlier run left open is resumed, also where its row has its product.
        self._has_open = any(last.state in _OPEN for last in memory.last_attempts.values())
        self._earlier_answers, self._are_results = earlier_answers, are_results
        lines = (record.line for record in file.records)
        self._said = dict(zip(lines, zip(keys_of(file), texts_of(file), strict=True), strict=True))

    def of(self, entry: Entry) -> tuple[Entry, Chain] | None:
        key, said = self._said[entry.record.line]
        kept = self._memory.source_rows.get(key)
        is_same = kept is not None and are_same(kept.answered, said)
        if kept is not None and is_same and self._stays(kept, entry):
            return self._answered(kept, entry)
        if entry.row is None:
            return None
        row = entry.row if kept is None else replace(entry.row, sku=kept.sku)
        known = self.known(row)
        take = self._take(kept, row, known)
        if kept is not None:
            chosen = self.chain(replace(row, take=take)).product.key if take is not None else None
            for earlier in self._earlier_answers(kept.sku) if self._state(chosen) not in EXISTING else ():
                exists = self._state(earlier.product_key) in EXISTING and are_same(earlier.answered, said)
                # What says the same as before is on the take that was chosen for it.
                is_other = is_same and earlier.content is not None and take != (earlier.content.take or 1)
                if exists and not is_other and self._stays(earlier, entry):
                    return self._answered(earlier, entry)
        if take is None:
            return replace(entry, row=row), self._to_choose(row, known)
        row = replace(row, take=take if take > 1 or len(known) > 1 else None)
        return replace(entry, row=row), self._resuming(row, known)

    def _take(self, kept: SourceRow | None, row: Row, known: Sequence[KnownTake]) -> int | None:
        """The take that a row is built on; None: a person chooses first."""
        own = self._own_take(kept, row)
        if own is None and len(known) > 1 and self._are_results:
            # A results file brings decisions, and nothing is bought by them.
            return None
        take = built_on(own, known)
        is_free = own is None and picked(known) is None and (not known or any(one.is_wanted for one in known))
        return None if self._takes > 1 and is_free else take

    def _own_take(self, kept: SourceRow | None, row: Row) -> int | None:
        """What a row was built on, or what was chosen for it; None where it had another pattern, or none."""
        if kept is None or kept.content is None:
            return None
        content = kept.content
        before = pattern_content(content.prompt, model=content.model, reference=content.reference)
        if before != pattern_content(row.prompt, model=row.model, reference=row.reference):
            return None
        return content.take or (1 if self._state(kept.product_key) is not None else None)

    def _to_choose(self, row: Row, known: Sequence[KnownTake]) -> Chain:
        """Its product waits; made are the takes that a person is to choose from, and those that are begun."""
        numbers = {one.number for one in known if one.is_wanted} | set(range(1, self._takes + 1))
        numbers -= {one.number for one in known if one.verdict in UNWANTED}
        candidates = tuple(self.pattern(row, number) for number in sorted(numbers))
        return replace(self.chain(row), candidates=candidates, is_undecided=True)

    def _resuming(self, row: Row, known: Sequence[KnownTake]) -> Chain:
        """With its other takes that an earlier run left open: what may be paid for is resumed."""
        others = (self.pattern(row, one.number) for one in known if one.number != (row.take or 1))
        left_open = tuple(pattern for pattern in others if self._state(pattern.key) in _OPEN)
        return replace(self.chain(row), candidates=left_open)

    def _stays(self, kept: SourceRow, entry: Entry) -> bool:
        """Whether its item still answers a row that says the same: it exists, may exist, or has failed."""
        state = self._state(kept.product_key)
        if kept.content is None:
            return False
        if entry.row is None:
            return state in EXISTING
        is_picture = entry.row.reference == kept.content.reference
        return is_picture and (state in EXISTING or state is AttemptState.FAILED)

    def _answered(self, kept: SourceRow, entry: Entry) -> tuple[Entry, Chain]:
        """The row as its item answers it."""
        row = row_of(kept, entry.record)
        known = self.known(row) if self._has_open else ()
        chain = self._resuming(row, known)
        assert chain.product.key == kept.product_key, "the same content is the same item"
        return replace(entry, row=row, problems=()), chain


class RemadeItems(AnsweredItems):
    """Rows as they are answered now, on the take that a person wants of each."""

    def __init__(self, wanted: Mapping[str, WantedTake], *args: Any, **terms: Any) -> None:
        """`wanted`: by the key of the sku."""
        super().__init__(*args, **terms)
        self._wanted = wanted

    def of(self, entry: Entry) -> tuple[Entry, Chain] | None:
        key, _ = self._said[entry.record.line]
        wanted, kept = self._wanted[key], self._memory.source_rows.get(key)
        if kept is None or kept.content is None or kept.is_gone:
            return None
        row = row_of(kept, entry.record)
        if wanted.take is not None:
            row = replace(row, take=wanted.take)
        candidates = tuple(self.pattern(row, number) for number in wanted.candidates)
        chain = self.chain(row)
        is_undecided = bool(candidates) and self._state(chain.product.key) is None
        chain = replace(chain, candidates=candidates, is_undecided=is_undecided)
        return replace(entry, row=row, problems=()), chain


@dataclass(frozen=True, slots=True)
class WantedTake:
    """What a remake is to make of a row: a take to build it on, or several to choose from."""

    take: int | None = None
    candidates: tuple[int, ...] = ()


def row_of(kept: SourceRow, record: Record) -> Row:
    """The row as its item answers it."""
    content = kept.content
    assert content is not None, "an item has content"
    what = {name: getattr(content, name) for name in Content.__slots__}
    return Row(**what, line=record.line, sku=kept.sku, cells=record.cells)


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
    #: A person's last decision on each pattern, in the order in which they arrived.
    verdicts: Mapping[ItemKey, Decided] = field(default_factory=dict)
