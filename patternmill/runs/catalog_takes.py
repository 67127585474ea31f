"""The takes of a catalog's patterns with people's decisions about them, which page, files and orders go by."""

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
from patternmill.states import AttemptState, RowStatus, Stage

if TYPE_CHECKING:
    from patternmill.tables.results import ResultLine


@dataclass(frozen=True, slots=True, kw_only=True)
class PatternTake(Take):
    """A take of a pattern with what the service has for it."""

    item: ItemKey
    #: The item of the pattern's first take.
    pattern: ItemKey
    #: Its ID at the service, and the address where the service shows it; None until it is made.
    pattern_id: str | None = None
    picture_url: str | None = None
    #: When it was made, in Unix seconds.
    made_at: float | None = None

    @property
    def has_result(self) -> bool:
        """Return whether the service has made it, so that people can decide about it."""
        return self.state is AttemptState.SUCCEEDED


class CatalogTakes:
    """Every take that a catalog ever requested, as the ledger has it now."""

    def __init__(self, ledger: Ledger, environment: str, catalog: str) -> None:
        self.decisions: dict[ItemKey, Decision] = last_decisions(ledger, environment, catalog)
        #: What each refinement refines and how, as JSON; `_refined` leads back from there to the refinement.
        self._steps: dict[ItemKey, tuple[ItemKey, str]] = {}
        self._refined: dict[tuple[ItemKey, str], RecordedItem] = {}
        by_pattern = defaultdict[ItemKey, list[PatternTake]](list)
        for record in last_attempts_at_patterns(ledger, environment, catalog):
            if record.stage is Stage.REFINEMENT:
                content = dict(record.content)
                step = (ItemKey(content.pop("pattern")), json.dumps(content, sort_keys=True))
                self._steps[record.key] = step
                self._refined[step] = record
            else:
                take = _take(record, Scope(environment, catalog), self.decisions.get(record.key))
                by_pattern[take.pattern].append(take)
        #: All takes of a pattern, under each of them.
        self._takes: dict[ItemKey, list[PatternTake]] = {}
        for takes in by_pattern.values():
            takes.sort(key=lambda take: take.number)
            self._takes |= dict.fromkeys([take.item for take in takes], takes)
        #: The takes that people decide about.
        self.made = {take.item: take for takes in by_pattern.values() for take in takes if take.has_result}

    @property
    def last_sequence(self) -> int:
        """Return the place of the last decision in the ledger; 0 if there is none."""
        return max((decision.sequence for decision in self.decisions.values()), default=0)

    def of(self, item: ItemKey) -> list[PatternTake]:
        """Return all takes of the pattern that an item is a take of, or refines, in the order of their numbers."""
        return self._takes.get(self.unrefined(item), [])

    def unrefined(self, item: ItemKey) -> ItemKey:
        """Return the take that a refinement is made of, directly or through others; any other item as it is."""
        while item in self._steps:
            item = self._steps[item][0]
        return item

    def choice(self, item: ItemKey) -> int | RowStatus:
        """Return the take of an item's pattern that its rows are built on, or their status where there is none."""
        return choose_take(self.of(item))

    def as_shown(self, rows: Iterable[ResultLine]) -> dict[ItemKey, PatternTake]:
        """Return the takes that were made, each as rows show it: refined as the first row of its pattern is."""
        shown, seen = dict(self.made), set[ItemKey]()
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
        """Return what was made by refining a take as another item was refined; None if that was not made."""
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


def _take(record: RecordedItem, scope: Scope, decision: Decision | None) -> PatternTake:
    """Return a take as it is on record."""
    content, last = dict(record.content), record.attempt
    number = content.pop("take", 1)
    first = record.key
    if number > 1:
        first = content.get(FORGOTTEN) or Item(Stage.PATTERN, scope, content).key
    return PatternTake(
        number,
        last.state,
        *((decision.verdict, decision.sequence) if decision is not None else ()),
        item=record.key,
        pattern=first,
        pattern_id=last.result_id,
        picture_url=last.picture_url,
        made_at=last.ended_at,
    )


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
    return {
        product: decision.verdict.value
        for product, pattern in patterns_of_products(ledger, environment, catalog).items()
        if (decision := takes.decisions.get(takes.unrefined(pattern))) is not None
    }
