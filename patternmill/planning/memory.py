"""The memory of earlier runs, and the items that a row has because of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from patternmill.identifiers import ItemKey
from patternmill.planning.items import Item, ItemMaker
from patternmill.planning.rows import Row
from patternmill.planning.takes import Take, choose_take, takes_to_make
from patternmill.states import MAY_EXIST, AttemptState, Decided, RowStatus


class LastAttempt(NamedTuple):
    """The last attempt at an item."""

    state: AttemptState
    attempt: int = 1
    result_id: str | None = None


class LastDecision(NamedTuple):
    """A person's last decision about a take, and its place in the order of all decisions."""

    verdict: Decided
    sequence: int = 1


@dataclass(frozen=True)
class Memory:
    """The ledger's knowledge of one catalog before a run."""

    last_attempts: Mapping[ItemKey, LastAttempt] = field(default_factory=dict)
    #: The product item that the catalog has under each sku key.
    products: Mapping[str, ItemKey] = field(default_factory=dict)
    #: Failed items that have attempts left, so that the next one follows without a person.
    trying: Collection[ItemKey] = frozenset()
    #: Failed items that stay so, also for rows that are retried.
    given_up: Collection[ItemKey] = frozenset()
    #: The last decision about each pattern item.
    decisions: Mapping[ItemKey, LastDecision] = field(default_factory=dict)
    #: The numbers of the further takes that were requested of a pattern, under the key of its first take.
    further_takes: Mapping[ItemKey, Collection[int]] = field(default_factory=dict)

    def state(self, key: ItemKey) -> AttemptState | None:
        """Return the state of the last attempt at an item; None where it was never requested."""
        last = self.last_attempts.get(key)
        return last.state if last is not None else None


class ChosenItems(NamedTuple):
    """A row with the take that it is built on, and its items."""

    row: Row
    #: Its items, each built on the one before it; the last is the product.
    chain: tuple[Item, ...]
    #: Other takes of its pattern: a person chooses among them, or they were begun and are followed to their end.
    candidates: tuple[Item, ...] = ()
    #: TO_CHOOSE or DISCARDED where no product is made for it.
    status: RowStatus | None = None


class ItemChooser:
    """Chooses the items of rows by what is remembered of the takes of their patterns."""

    def __init__(self, maker: ItemMaker, memory: Memory, takes: int = 1) -> None:
        """Take as `takes` how many takes a person chooses from, for a pattern on which no product is built yet."""
        self._maker, self._memory, self._count = maker, memory, takes

    def takes_of(self, row: Row) -> list[Take]:
        """Return the takes of a row's pattern that were requested, in the order of their numbers."""
        memory = self._memory
        takes = []
        for number in sorted({1, *memory.further_takes.get(self._maker.pattern(row).key, ())}):
            key = self._maker.pattern(row, number).key
            if (state := memory.state(key)) is not None:
                takes.append(Take(number, state, *memory.decisions.get(key, ())))
        return takes

    def choose(self, row: Row) -> ChosenItems:
        """Return the items of a row, on the take that people's decisions lead to."""
        first, memory = self._maker.pattern(row).key, self._memory
        if self._count == 1 and first not in memory.further_takes and first not in memory.decisions:
            return ChosenItems(row, self._maker.chain(row))
        takes = self.takes_of(row)
        choice, numbers = choose_take(takes), takes_to_make(takes, self._count)
        status = choice if isinstance(choice, RowStatus) else RowStatus.TO_CHOOSE
        if not isinstance(choice, RowStatus) and (len(numbers) < 2 or self._has_product(row, choice)):
            # The record of a row names a first take only where there are others.
            row = replace(row, take=choice if choice > 1 or len(takes) > 1 else None)
            return ChosenItems(row, self._maker.chain(row, choice), self._open_takes(row, takes, (choice,)))
        candidates = tuple(self._maker.pattern(row, number) for number in numbers)
        chain = self._maker.chain(row, numbers[0] if numbers else takes[-1].number)
        return ChosenItems(row, chain, (*candidates, *self._open_takes(row, takes, numbers)), status)

    def _has_product(self, row: Row, take: int) -> bool:
        return self._memory.state(self._maker.chain(row, take)[-1].key) in MAY_EXIST

    def _open_takes(self, row: Row, takes: list[Take], chosen: tuple[int, ...]) -> tuple[Item, ...]:
        """Return the other takes that an earlier run left open: what may be paid for is followed to its end."""
        numbers = (take.number for take in takes if take.is_open and take.number not in chosen)
        return tuple(self._maker.pattern(row, number) for number in numbers)
