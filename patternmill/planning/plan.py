"""The plan: every item that a run would make, with the reason; what limits leave of it, and what it costs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property, partial
from typing import NamedTuple

from patternmill.identifiers import ItemKey
from patternmill.money import Limit, amount_of, money
from patternmill.planning.items import Item, ItemMaker, Scope
from patternmill.planning.memory import ItemChooser, Memory
from patternmill.planning.rows import Entry, Row
from patternmill.states import AttemptState, RowStatus, Stage
from patternmill.text import goods, plural


class Reason(StrEnum):
    """The reason why an item is in the plan. The values are part of the digests of plans: never change them."""

    NEW = "new"  #: Never requested before.
    CHANGED = "changed"  #: The catalog has a product for this sku, of other content.
    CONTINUED = "continued"  #: Begun by an earlier run and not ended: resumed under the same request ID.
    TRIED_AGAIN = "tried_again"  #: Failed before, with attempts left: retried by policy.
    RETRIED = "retried"  #: Failed before: retried because a person requests it.
    DONE = "done"  #: Exists already: costs nothing.
    FAILED_BEFORE = "failed_before"  #: Failed before, and stays so until it is retried or its row is changed.
    HELD = "held"  #: Waits for a person's decision.
    BLOCKED = "blocked"  #: Cannot be made, because what it is built on failed or is held.
    TO_CHOOSE = "to_choose"  #: A person chooses among the takes of its pattern first.
    DISCARDED = "discarded"  #: A person rejected the takes of its pattern.
    LEFT_OUT = "left_out"  #: To do, but not by this run: its row was not chosen.


#: The reasons for which a run does something about an item.
TO_DO = frozenset({Reason.NEW, Reason.CHANGED, Reason.CONTINUED, Reason.TRIED_AGAIN, Reason.RETRIED})
#: The reasons for which a new purchase is expected.
TO_BUY = frozenset({Reason.NEW, Reason.CHANGED, Reason.TRIED_AGAIN, Reason.RETRIED})
_TO_DO_OR_DONE = TO_DO | {Reason.DONE}
#: Where an item has several reasons, the first of these counts.
_STRONGEST = (Reason.RETRIED, Reason.TRIED_AGAIN, Reason.CONTINUED, Reason.NEW, Reason.CHANGED)

_REASON_OF_STATUS = {RowStatus.TO_CHOOSE: Reason.TO_CHOOSE, RowStatus.DISCARDED: Reason.DISCARDED}
#: The reasons for which a row has no product of its own: a person is to choose a take, or rejected them.
WITHOUT_PRODUCT = frozenset(_REASON_OF_STATUS.values())
_REASON_OF_STATE = {
    AttemptState.SUCCEEDED: Reason.DONE,
    AttemptState.INTENDED: Reason.CONTINUED,
    AttemptState.ACCEPTED: Reason.CONTINUED,
    AttemptState.HELD: Reason.HELD,
    AttemptState.FAILED: Reason.FAILED_BEFORE,
    AttemptState.REJECTED: Reason.FAILED_BEFORE,
}


class PlannedItem(NamedTuple):
    """An item with the reason why it is in the plan."""

    item: Item
    reason: Reason
    #: The number of this run's rows that wait for it.
    rows: int
    #: The number of the failed attempt that another one would follow; 0 if there is none.
    after: int = 0

    @property
    def is_to_do(self) -> bool:
        return self.reason in TO_DO


class PlannedRow(NamedTuple):
    """One row of the input and its items."""

    position: int
    entry: Entry
    #: Its items, each built on the one before it; the last is the product. Empty where the row was refused.
    chain: tuple[ItemKey, ...] = ()
    #: Takes of the pattern that are made to choose from, and what they are built on.
    candidates: tuple[ItemKey, ...] = ()
    #: Whether it has a product although a later decision lets nothing be built on its takes.
    has_product: bool = False
    #: TO_CHOOSE or DISCARDED, by decisions about its pattern; even while a request for the row is followed.
    decided: RowStatus | None = None

    @property
    def product(self) -> ItemKey | None:
        return self.chain[-1] if self.chain else None

    @property
    def pattern(self) -> ItemKey | None:
        """Return the item that the product is built on: the pattern, or its last refinement."""
        return self.chain[-2] if self.chain else None

    @property
    def sku(self) -> str:
        return self.entry.row.sku if self.entry.row else ""

    @property
    def known_sku(self) -> str:
        """Return the sku even where the row is refused; empty where it has none."""
        return self.sku or next((problem.sku for problem in self.entry.problems if problem.sku), "")

    @property
    def has_sku(self) -> bool:
        """Return whether it is known which sku the row is about."""
        return bool(self.known_sku) and self.entry.is_sku_readable

    @property
    def keys(self) -> tuple[ItemKey, ...]:
        """Return the items of the row in the order in which they are made."""
        return tuple(dict.fromkeys((*self.candidates, *self.chain))) if self.candidates else self.chain


@dataclass(frozen=True)
class Plan:
    """The work of a run. `rows` are in the order of the file, `items` in the order in which the rows name them."""

    scope: Scope
    rows: tuple[PlannedRow, ...]
    #: The items, each after the one that it is built on.
    items: Mapping[ItemKey, PlannedItem]

    def of_stage(self, stage: Stage) -> dict[ItemKey, PlannedItem]:
        return {key: planned for key, planned in self.items.items() if planned.item.stage is stage}

    @cached_property
    def stages(self) -> list[Stage]:
        """Return the stages that people count, in order of purchase: patterns, products, and any others in the plan."""
        stages = {Stage.PATTERN, Stage.PRODUCT, *(planned.item.stage for planned in self.items.values())}
        return [stage for stage in Stage if stage in stages]

    def first_pattern(self, row: PlannedRow) -> ItemKey:
        """Return the pattern that the row's prompt makes, before any refinement."""
        return next(key for key in row.keys if self.items[key].item.stage is Stage.PATTERN)

    def to_do(self) -> Iterator[PlannedRow]:
        """Yield the rows whose product or whose takes to choose from this run makes."""
        for row in self.rows:
            if any(self.items[key].is_to_do for key in (*row.chain[-1:], *row.candidates)):
                yield row

    def reasons_of(self, stage: Stage) -> Counter[Reason]:
        return Counter(planned.reason for planned in self.items.values() if planned.item.stage is stage)

    def refused(self) -> int:
        return sum(row.product is None for row in self.rows)

    def counts(self, reasons: Collection[Reason]) -> Counter[Stage]:
        """Return how many items of each stage are in the plan for one of these reasons."""
        return Counter(planned.item.stage for planned in self.items.values() if planned.reason in reasons)

    def purchases(self) -> Counter[Stage]:
        """Return how many items of each stage would be bought if every first attempt succeeds."""
        return self.counts(TO_BUY)

    @property
    def sent_once(self) -> str:
        """Return a sentence for people on what may not be sent again; empty where there is nothing of the kind."""
        items = (planned.item for planned in self.items.values() if planned.is_to_do)
        counts = Counter(item.stage for item in items if not item.is_repeatable)
        if not counts:
            return ""
        named = " and ".join(plural(count, stage) for stage, count in sorted(counts.items()))
        return (
            f"{named}: each is sent once, as nothing promises that its request may be sent again; one without a clear "
            "answer is held, with its price, for `patternmill settle`."
        )

    def buys(self, row: PlannedRow) -> list[ItemKey]:
        """Return the items of a row that would be bought; several rows may name the same item."""
        return [key for key in row.keys if self.items[key].reason in TO_BUY]


def plan_entries(
    maker: ItemMaker,
    entries: Sequence[Entry],
    memory: Memory,
    *,
    retry: Callable[[Row], bool] | None = None,
    only: Callable[[Row], bool] = lambda row: True,
    takes: int = 1,
) -> Plan:
    """Decide for every row what has to be made for it; `entries` are the lines of the file in order.

    `retry`: whether a row's failed items get another attempt; `only`: whether anything is made for a row at all;
    `takes`: how many takes of a pattern a person is to choose from.
    """
    chooser = ItemChooser(maker, memory, takes)
    # What is retried for one row is retried for all rows that are built on it, wherever they are in the file.
    retried = set[ItemKey]()
    for row in (entry.row for entry in entries if retry is not None):
        if row is not None and only(row) and retry is not None and retry(row):
            chosen = chooser.choose(row)
            retried.update(item.key for item in (*chosen.candidates, *chosen.chain))
    planner = _Planner(chooser, memory, only, retried)
    rows = tuple([planner.row(position, entry) for position, entry in enumerate(entries)])
    return Plan(maker.scope, rows, planner.items)


class _Planner:
    """Collects the items of rows, with the reason of each."""

    def __init__(
        self, chooser: ItemChooser, memory: Memory, only: Callable[[Row], bool], retried: Collection[ItemKey]
    ) -> None:
        self._chooser, self.memory, self.only = chooser, memory, only
        self._retried = retried
        self.items: dict[ItemKey, PlannedItem] = {}

    def row(self, position: int, entry: Entry) -> PlannedRow:
        """Return a row with its items, and add these to the plan."""
        if entry.row is None:
            return PlannedRow(position, entry)
        row, chain, candidates, status = self._chooser.choose(entry.row)
        is_left_out = not self.only(row)
        reason = self._product_reason(chain[-1])
        has_product = status is not None and reason is Reason.DONE
        if status is not None and reason in TO_BUY | {Reason.FAILED_BEFORE, Reason.DONE}:
            reason = _REASON_OF_STATUS[status]
        if reason in TO_DO and is_left_out:
            reason = Reason.LEFT_OUT
        references = [item for item in chain if item.stage is Stage.REFERENCE] if candidates else []
        for take in candidates:
            needed_for = Reason.LEFT_OUT if is_left_out else Reason.NEW
            self._add_chain((*references, take), self._needed_reason(take, needed_for))
        self._add_chain(chain, reason)
        if row is not entry.row:
            entry = replace(entry, row=row)
        keys = tuple([item.key for item in chain])
        to_choose_from = tuple([item.key for item in (*references, *candidates)])
        return PlannedRow(position, entry, keys, to_choose_from, has_product, status)

    def _add_chain(self, chain: Sequence[Item], reason: Reason) -> None:
        """Add items that are built on one another; `reason` is that of the last one.

        What is built on an item that exists does not need what that item was built on.
        """
        reasons = [reason]
        for item in reversed(chain[:-1]):
            reasons.insert(0, self._needed_reason(item, reasons[0]))
        before = Reason.DONE
        for item, wanted in zip(chain, reasons, strict=True):
            before = Reason.BLOCKED if wanted in TO_DO and before not in _TO_DO_OR_DONE else wanted
            self._add(item, before)

    def _add(self, item: Item, reason: Reason) -> None:
        """Add an item. Of several reasons, one that makes it work to do counts, or else the first."""
        key, rows = item.key, int(reason in TO_DO)
        if (earlier := self.items.get(key)) is not None:
            rows, item, reasons = rows + earlier.rows, earlier.item, (earlier.reason, reason)
            reason = next((strong for strong in _STRONGEST if strong in reasons), earlier.reason)
        is_another = reason is Reason.TRIED_AGAIN or reason is Reason.RETRIED
        after = self.memory.last_attempts[key].attempt if is_another else 0
        self.items[key] = PlannedItem(item, reason, rows, after)

    def _product_reason(self, product: Item) -> Reason:
        current = self.memory.products.get(product.content["sku"])
        return self._known_reason(product) or (
            Reason.NEW if current in (None, product.key) else Reason.CHANGED
        )

    def _needed_reason(self, item: Item, on_it: Reason) -> Reason:
        """Return the reason of an item; `on_it` is that of what is made on it."""
        if on_it in TO_DO:
            return self._known_reason(item) or (Reason.CHANGED if on_it is Reason.CHANGED else Reason.NEW)
        # This row does not need it.
        reason = self._known_reason(item, may_retry=False)
        if on_it is Reason.LEFT_OUT:
            return Reason.LEFT_OUT if reason is None or reason in TO_DO else reason
        return reason or (on_it if on_it in WITHOUT_PRODUCT else Reason.DONE)

    def _known_reason(self, item: Item, *, may_retry: bool = True) -> Reason | None:
        last = self.memory.last_attempts.get(item.key)
        if last is None or last.state is AttemptState.WITHDRAWN:
            return None
        reason = _REASON_OF_STATE[last.state]
        if reason is not Reason.FAILED_BEFORE:
            return reason
        if may_retry and item.key in self._retried and item.key not in self.memory.given_up:
            return Reason.RETRIED
        return Reason.TRIED_AGAIN if item.key in self.memory.trying else reason


def limit_plan(plan: Plan, limits: Sequence[Limit]) -> tuple[Plan, str, str] | None:
    """Return the plan as far as the limits cover it, how far they reach, and the remedy; None if they cover it all.

    `The budget of €10.00 reaches to 20 of 60 rows: 20 patterns and 20 products.`

    Rows whose pattern exists or is begun come first, then the others in the order of the file, and last those that are
    tried again, which would otherwise keep the others out in every run. A row that does not fit is skipped, and a
    cheaper one after it may still fit. What is begun uses up nothing more.
    """
    rows = list(plan.to_do()) if limits else []
    covered: set[ItemKey] = set()
    hit: dict[Limit, None] = {}
    bought, fitting = Counter[Stage](), 0
    for row in sorted(rows, key=partial(_place, plan)):
        new = [key for key in plan.buys(row) if key not in covered]
        after = bought + Counter(plan.items[key].item.stage for key in new)
        exceeded = [limit for limit in limits if not limit.covers(after)]
        if exceeded and new:
            hit |= dict.fromkeys(exceeded)
            continue
        bought, fitting = after, fitting + 1
        covered.update(row.keys)
    if not hit:
        return None
    limited, names = _restricted(plan, covered), list(dict.fromkeys(limit.name for limit in hit))
    named, reach = " and ".join(names), "reaches" if len(names) == 1 else "reach"
    reached = f"{reach} to {fitting:,} of {plural(len(rows), 'row')}: {goods(limited.purchases())}."
    remedy = " ".join(dict.fromkeys(limit.remedy for limit in hit))
    return limited, f"{named[:1].upper()}{named[1:]} {reached}", remedy


def without_work(plan: Plan) -> Plan:
    """Return the plan with nothing left to make or to follow."""
    return _restricted(plan, ())


def _place(plan: Plan, row: PlannedRow) -> int:
    """Return a row's place in the order in which limits are used up."""
    if any(plan.items[key].reason is Reason.TRIED_AGAIN for key in row.keys):
        return 2
    return int(any(key != row.product for key in plan.buys(row)))


def _restricted(plan: Plan, allowed: Collection[ItemKey]) -> Plan:
    """Return the plan without the rows that need an item other than those allowed."""
    waiting: Counter[ItemKey] = Counter()
    for row in plan.to_do():
        to_do = [key for key in row.keys if plan.items[key].reason in TO_DO]
        if all(key in allowed for key in to_do):
            waiting.update(to_do)
    items = {
        key: planned._replace(rows=waiting[key], reason=planned.reason if waiting[key] else Reason.LEFT_OUT)
        if planned.reason in TO_DO
        else planned
        for key, planned in plan.items.items()
    }
    return replace(plan, items=items)


@dataclass(frozen=True)
class Cost:
    """The cost of a plan in minor units. `worst` is the cost if every item fails until its last attempt."""

    expected: int
    worst: int
    currency: str | None = None

    def __str__(self) -> str:
        """Return `at least €5.00, at most €10.00 if jobs fail`; the least is where every first attempt succeeds."""
        return (
            f"at least {money(self.expected, self.currency)}, "
            f"at most {money(self.worst, self.currency)} if jobs fail"
        )


def cost_of(
    plan: Plan,
    prices: Mapping[Stage, int],
    attempts: int,
    currency: str | None = None,
    *,
    of: Collection[Reason] = TO_BUY,
) -> Cost:
    """Return what the plan's purchases cost. The first attempt at an item begun earlier is already paid for."""
    expected = amount_of(plan.counts(of), prices)
    begun = amount_of(plan.counts({Reason.CONTINUED}), prices) if of is TO_BUY else 0
    return Cost(expected, expected * attempts + begun * (attempts - 1), currency)
