"""The takes of a catalog's patterns with people's decisions about them: what page, files and orders go by."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from patternmill.identifiers import ItemKey
from patternmill.ledger.events import Decision, last_decisions, patterns_of_products
from patternmill.ledger.ledger import Ledger
from patternmill.ledger.records import FORGOTTEN
from patternmill.ledger.reports.requests import RecordedItem, last_attempts_at_patterns
from patternmill.planning.items import Item, Scope
from patternmill.planning.takes import Take, choose_take
from patternmill.states import MAY_EXIST, OPEN_STATES, AttemptState, RowStatus, Stage

if TYPE_CHECKING:
    from patternmill.tables.results import ResultLine


@dataclass(frozen=True, slots=True)
class PatternTake:
    """One take of a pattern that was requested."""

    item: ItemKey
    #: From 1.
    number: int
    #: The item of the pattern's first take.
    pattern: ItemKey
    state: AttemptState
    #: Once it was made: its ID at the service, and where the service shows it.
    pattern_id: str | None = None
    picture_url: str | None = None
    #: When it was made, in Unix seconds.
    made_at: float | None = None

    @property
    def is_made(self) -> bool:
        return self.state is AttemptState.SUCCEEDED


class CatalogTakes:
    """Every take that a catalog ever requested, as the ledger has it now."""

    def __init__(self, ledger: Ledger, environment: str, catalog: str) -> None:
        self.decisions: dict[ItemKey, Decision] = last_decisions(ledger, environment, catalog)
        self._by_item: dict[ItemKey, PatternTake] = {}
        self._by_pattern: dict[ItemKey, list[PatternTake]] = defaultdict(list)
        #: Of a refinement: what it refines, and how, as JSON; and the other way round.
        self._steps: dict[ItemKey, tuple[ItemKey, str]] = {}
        self._refined: dict[tuple[ItemKey, str], RecordedItem] = {}
        for record in last_attempts_at_patterns(ledger, environment, catalog):
            if record.stage is Stage.REFINEMENT:
                content = dict(record.content)
                step = (ItemKey(content.pop("pattern")), json.dumps(content, sort_keys=True))
                self._steps[record.key] = step
                self._refined[step] = record
                continue
            take = _take(record, Scope(environment, catalog))
            self._by_item[take.item] = take
            self._by_pattern[take.pattern].append(take)
        for takes in self._by_pattern.values():
            takes.sort(key=lambda take: take.number)

    @property
    def last_sequence(self) -> int:
        """Return the place of the last decision in the ledger; 0: there is none."""
        return max((decision.sequence for decision in self.decisions.values()), default=0)

    @property
    def made(self) -> dict[ItemKey, PatternTake]:
        """Return the takes that were made, by item: those that people decide about."""
        return {item: take for item, take in self._by_item.items() if take.is_made}

    def of(self, item: ItemKey) -> list[PatternTake]:
        """Return all takes of the pattern of which an item is a take, or a refinement of one, by their numbers."""
        take = self._by_item.get(self.unrefined(item))
        return self._by_pattern[take.pattern] if take is not None else []

    def unrefined(self, item: ItemKey) -> ItemKey:
        """Return the take that a refinement is made of, whether over others or not; any other item as it is."""
        while item in self._steps:
            item = self._steps[item][0]
        return item

    def judged(self, item: ItemKey) -> list[Take]:
        """Return the takes of an item's pattern as decisions are applied to them."""
        return [self._judged(take) for take in self.of(item)]

    def _judged(self, take: PatternTake) -> Take:
        decision, is_open = self.decisions.get(take.item), take.state in OPEN_STATES
        verdict, sequence = (decision.verdict, decision.sequence) if decision is not None else (None, 0)
        return Take(take.number, take.state in MAY_EXIST, verdict, sequence, is_open)

    def choice(self, item: ItemKey) -> int | RowStatus:
        """Return the take of an item's pattern that its rows are built on, or their status where there is none."""
        return choose_take(self.judged(item))

    def highest_made(self, item: ItemKey, until: float | None = None) -> ItemKey:
        """Return the highest take of an item's pattern that was made: what an `again` is recorded against.

        `until`: by then, in Unix seconds. Where none was, the item's own take.
        """
        made = [
            take.item
            for take in self.of(item)
            if take.is_made and (until is None or (take.made_at or 0.0) <= until)
        ]
        return made[-1] if made else self.unrefined(item)

    def as_shown(self, rows: Iterable[ResultLine]) -> dict[ItemKey, PatternTake]:
        """Return the takes that were made, each as rows show it: refined as the first row of its pattern is."""
        shown, seen = self.made, set[ItemKey]()
        for row in rows:
            if row.take is None or row.pattern_key is None or row.pattern_key == row.take:
                continue
            for take in self.of(row.take):
                refined = self._refined_as(take.item, row.pattern_key)
                if take.pattern not in seen and refined is not None:
                    pattern_id, picture_url = refined.attempt.result_id, refined.attempt.picture_url
                    shown[take.item] = replace(take, pattern_id=pattern_id, picture_url=picture_url)
            seen |= {take.pattern for take in self.of(row.take)}
        return shown

    def _refined_as(self, item: ItemKey, like: ItemKey) -> RecordedItem | None:
        """Return what was made of a take that is refined as another item is; None where that was not made."""
        refined = None
        for step in reversed(list(self._steps_to(like))):
            refined = self._refined.get((item, step))
            if refined is None or refined.attempt.result_id is None:
                return None
            item = refined.key
        return refined

    def _steps_to(self, item: ItemKey) -> Iterator[str]:
        """Yield the refinements of an item, the last one first."""
        while item in self._steps:
            item, step = self._steps[item]
            yield step


def _take(record: RecordedItem, scope: Scope) -> PatternTake:
    """Return a take as it is on record."""
    content, last = dict(record.content), record.attempt
    number = content.pop("take", 1)
    first = record.key
    if number > 1:
        first = content.get(FORGOTTEN) or Item(Stage.PATTERN, scope, content).key
    made = last.result_id, last.picture_url
    return PatternTake(record.key, number, first, last.state, *made, made_at=last.ended_at)


def has_choices(ledger: Ledger, environment: str, catalog: str) -> bool:
    """Return whether anybody decided about a pattern of a catalog, or one has several takes."""
    has_takes = bool(ledger.purchases.contents_of_further_takes(environment, catalog))
    return has_takes or bool(last_decisions(ledger, environment, catalog))


def takes_without_product(ledger: Ledger, environment: str, catalog: str) -> set[ItemKey]:
    """Return the takes of patterns on which no run begins a product: a person chooses first, or rejected them all."""
    if not last_decisions(ledger, environment, catalog):
        return set()
    takes = CatalogTakes(ledger, environment, catalog)
    return {item for item in takes.made if isinstance(takes.choice(item), RowStatus)}


def verdicts_on_products(ledger: Ledger, environment: str, catalog: str) -> dict[ItemKey, str]:
    """Return the last decision about the take that each product shows, by product item."""
    if not last_decisions(ledger, environment, catalog):
        return {}
    takes = CatalogTakes(ledger, environment, catalog)
    products = patterns_of_products(ledger, environment, catalog)
    decisions = {
        product: takes.decisions.get(takes.unrefined(pattern)) for product, pattern in products.items()
    }
    return {product: latest.verdict.value for product, latest in decisions.items() if latest is not None}
