"""The plan: every item that a run would make, with its reason, how much of it the limits cover, its cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property, partial

from patternmill.catalog.row_checks import Entry
from patternmill.catalog.rows import Row
from patternmill.identifiers import ItemKey
from patternmill.limits import Limit, amount_of
from patternmill.money import money
from patternmill.planning.items import Chain, ContentItems, Item, Scope
from patternmill.planning.recognition import Memory
from patternmill.states import UNWANTED, AttemptState, Stage
from patternmill.text import goods, plural


class Reason(StrEnum):
    """Why an item is in the plan. The values are part of the digests of plans: never change them."""

    #: Never requested before.
    NEW = "new"
    #: This sku was requested before, with other content.
    CHANGED = "changed"
    #: Begun by an earlier run and not ended: resumed under the same request ID.
    CONTINUED = "continued"
    #: Failed before, with attempts left: retried by policy.
    TRIED_AGAIN = "tried_again"
    #: Failed before: retried because a person requests it.
    RETRIED = "retried"
    #: Exists already: costs nothing.
    DONE = "done"
    #: Failed before, and stays so until it is retried or its row is changed.
    FAILED_BEFORE = "failed_before"
    #: Waits for a person's decision.
    HELD = "held"
    #: Cannot be made, because what it is built on failed or is held.
    BLOCKED = "blocked"
    #: A person chooses among the takes of its pattern first, or decided against them.
    UNDECIDED = "undecided"
    #: To do, but not by this run: its row was not chosen.
    LEFT_OUT = "left_out"


#: The reasons for which a run does something about an item.
TO_DO = frozenset({Reason.NEW, Reason.CHANGED, Reason.CONTINUED, Reason.TRIED_AGAIN, Reason.RETRIED})
#: The reasons for which a new purchase is expected.
TO_BUY = frozenset({Reason.NEW, Reason.CHANGED, Reason.TRIED_AGAIN, Reason.RETRIED})
_TO_DO_OR_DONE = TO_DO | {Reason.DONE}
#: Of one item's reasons, the first of these counts.
_STRONGEST = (Reason.RETRIED, Reason.TRIED_AGAIN, Reason.CONTINUED, Reason.NEW, Reason.CHANGED)

_REASON_OF_STATE = {
    AttemptState.SUCCEEDED: Reason.DONE,
    AttemptState.INTENDED: Reason.CONTINUED,
    AttemptState.ACCEPTED: Reason.CONTINUED,
    AttemptState.HELD: Reason.HELD,
    AttemptState.FAILED: Reason.FAILED_BEFORE,
    AttemptState.REJECTED: Reason.FAILED_BEFORE,
}


@dataclass(frozen=True, slots=True)
class PlannedItem:
    item: Item
    reason: Reason
    #: This run's rows that wait for it.
    rows: int
    #: The number of the failed attempt that another one would follow; 0: of none.
    after: int = 0


@dataclass(frozen=True, slots=True)
class PlannedRow:
    """One row of the input and its items; both None where the row was refused."""

    position: int
    entry: Entry
    #: What the product is built on: the pattern, or its last refinement.
    pattern: ItemKey | None = None
    product: ItemKey | None = None
    #: What the pattern is built on, in the order in which it is made.
    before: tuple[ItemKey, ...] = ()
    #: Takes of the pattern that are made to choose from, and what they are built on.
    candidates: tuple[ItemKey, ...] = ()

    @property
    def sku(self) -> str:
        return self.entry.row.sku if self.entry.row else ""

    @property
    def known_sku(self) -> str:
        """The sku, also where the row is refused; empty where it has none."""
        return self.sku or next((problem.sku for problem in self.entry.problems if problem.sku), "")

    @property
    def keys(self) -> tuple[ItemKey, ...]:
        """In the order in which they are made."""
        own = (*self.before, *(key for key in (self.pattern, self.product) if key is not None))
        return tuple(dict.fromkeys((*self.candidates, *own))) if self.candidates else own


Counts = Counter[Stage]


@dataclass(frozen=True)
class Plan:
    """What a run would make. `rows` are in the order of the file; items in the order in which rows name them."""

    scope: Scope
    rows: tuple[PlannedRow, ...]
    #: Each after what it is built on.
    items: Mapping[ItemKey, PlannedItem]

    def of_stage(self, stage: Stage) -> dict[ItemKey, PlannedItem]:
        return {key: planned for key, planned in self.items.items() if planned.item.stage is stage}

    @cached_property
    def stages(self) -> list[Stage]:
        """Those that people count in this plan, in the order of purchase: patterns, products, and what else it has."""
        found = {Stage.PATTERN, Stage.PRODUCT, *(planned.item.stage for planned in self.items.values())}
        return [stage for stage in Stage if stage in found]

    def first_pattern(self, row: PlannedRow) -> ItemKey:
        """The pattern that the row's prompt makes, before any refinement."""
        return next(key for key in row.keys if self.items[key].item.stage is Stage.PATTERN)

    def to_do(self) -> Iterator[PlannedRow]:
        """The rows whose product does not exist yet and can be made, or whose takes to choose from."""
        for row in self.rows:
            if row.product is not None and any(
                self.items[key].reason in TO_DO for key in (row.product, *row.candidates)
            ):
                yield row

    def reasons_of(self, stage: Stage) -> Counter[Reason]:
        return Counter(planned.reason for planned in self.items.values() if planned.item.stage is stage)

    def refused(self) -> int:
        return sum(row.product is None for row in self.rows)

    def counts(self, reasons: Collection[Reason]) -> Counts:
        """How many items of each stage are in the plan for one of these reasons."""
        return Counter(planned.item.stage for planned in self.items.values() if planned.reason in reasons)

    def purchases(self) -> Counts:
        """How many items of each stage would be bought, when every first attempt succeeds."""
        return self.counts(TO_BUY)

    @property
    def sent_once(self) -> str:
        """For people, before anything is bought: what may not be sent again; empty where there is nothing of it."""
        items = (planned.item for planned in self.items.values() if planned.reason in TO_DO)
        counts = Counter(item.stage for item in items if not item.is_repeatable)
        if not counts:
            return ""
        named = " and ".join(plural(count, stage) for stage, count in sorted(counts.items()))
        return (
            f"{named}: each is sent once, as nothing promises that its request may be sent again; one without a clear "
            "answer is held, with its price, for `patternmill settle`."
        )

    def buys(self, row: PlannedRow) -> list[ItemKey]:
        """The items of a row to do that would be bought; several rows may name the same item."""
        return [key for key in row.keys if self.items[key].reason in TO_BUY]


def make_plan(
    scope: Scope,
    entries: Sequence[Entry],
    memory: Memory,
    *,
    retry: Callable[[Row], bool] | None = None,
    only: Callable[[Row], bool] = lambda row: True,
    items: ContentItems | None = None,
) -> Plan:
    """Decide for every row what has to be made for it; `entries` are the file's records in order.

    `retry`: whether a row's failed items get another attempt; `only`: whether anything is made for a row at all;
    `items`: how a row becomes items, by default by its content.
    """
    items = items or ContentItems(scope)
    named = [items.of(entry) or (entry, None) for entry in entries]
    # What is retried for one row is retried for all rows that are built on it, wherever they are in the file.
    retried = {
        item.key
        for entry, chain in named
        if retry is not None and entry.row is not None and chain and only(entry.row) and retry(entry.row)
        for item in (*chain.before, chain.pattern, chain.product)
    }
    planner = _Planner(memory, only, retried)
    rows = tuple(planner.row(position, *each) for position, each in enumerate(named))
    return Plan(scope, rows, planner.items)


class _Planner:
    """Collects the items of rows, with the reason of each."""

    def __init__(self, memory: Memory, only: Callable[[Row], bool], retried: Collection[ItemKey]) -> None:
        self.memory, self.only = memory, only
        self._retried = retried
        self.items: dict[ItemKey, PlannedItem] = {}

    def row(self, position: int, entry: Entry, chain: Chain | None) -> PlannedRow:
        row = entry.row
        if row is None or chain is None:
            return PlannedRow(position, entry)
        product, needed = chain.product, (*chain.before, chain.pattern)
        candidates = self._candidates(row, chain)
        reason = self._product_reason(product)
        if reason in TO_BUY | {Reason.FAILED_BEFORE} and (chain.is_undecided or self._is_unwanted(needed)):
            reason = Reason.UNDECIDED
        if reason in TO_DO and not self.only(row):
            reason = Reason.LEFT_OUT
        reasons = self._needed_reasons(needed, reason)
        if reason in TO_DO and any(one not in _TO_DO_OR_DONE for one in reasons):
            reason = Reason.BLOCKED
        for item, why in zip(needed, reasons, strict=True):
            self._add(item, why)
        self._add(product, reason)
        before = tuple([item.key for item in chain.before])
        return PlannedRow(position, entry, chain.pattern.key, product.key, before, candidates)

    def _candidates(self, row: Row, chain: Chain) -> tuple[ItemKey, ...]:
        """Adds the takes that a person is to choose from, each after what it is built on."""
        needed = [item for item in chain.before if item.stage is Stage.REFERENCE] if chain.candidates else []
        for take in chain.candidates:
            reason = Reason.NEW if self.only(row) else Reason.LEFT_OUT
            for item, why in zip((*needed, take), self._needed_reasons((*needed, take), reason), strict=True):
                self._add(item, why)
        return tuple([item.key for item in (*needed, *chain.candidates)])

    def _is_unwanted(self, needed: Sequence[Item]) -> bool:
        """Whether a person decided against what a product is to be built on."""
        verdicts = self.memory.verdicts
        return bool(verdicts) and any(verdicts.get(item.key) in UNWANTED for item in needed)

    def _add(self, item: Item, reason: Reason) -> None:
        """Rows may name one item for several reasons; the one that makes it work to do counts, else the first."""
        known = self.items.get(item.key)
        rows = int(reason in TO_DO)
        if known is not None:
            rows += known.rows
            item = known.item
            reason = next((one for one in _STRONGEST if one in (known.reason, reason)), known.reason)
        last = self.memory.last_attempts.get(item.key)
        after = last.attempt if last is not None and reason in (Reason.TRIED_AGAIN, Reason.RETRIED) else 0
        self.items[item.key] = PlannedItem(item, reason, rows, after)

    def _product_reason(self, product: Item) -> Reason:
        before = self.memory.products_by_sku.get(product.sku or "")
        new = Reason.NEW if before in (None, product.key) else Reason.CHANGED
        return self._known_reason(product) or new

    def _needed_reasons(self, needed: Sequence[Item], product_reason: Reason) -> list[Reason]:
        """Of what a product is built on: the first items wait for nothing, a later one for those before it.

        What is made on an item that exists needs nothing of what that was made of.
        """
        reasons: list[Reason] = []
        reason = product_reason
        for item in reversed(needed):
            reason = self._needed_reason(item, reason)
            reasons.insert(0, reason)
        for number, before in enumerate(reasons[:-1], start=1):
            if reasons[number] in TO_DO and before not in _TO_DO_OR_DONE:
                reasons[number] = Reason.BLOCKED
        return reasons

    def _needed_reason(self, item: Item, on_it: Reason) -> Reason:
        """`on_it`: the reason of what is made on this item."""
        if on_it not in TO_DO:
            # This row does not need it.
            known = self._known_reason(item, may_retry=False)
            if on_it is Reason.LEFT_OUT:
                return Reason.LEFT_OUT if known is None or known in TO_DO else known
            return known or (Reason.UNDECIDED if on_it is Reason.UNDECIDED else Reason.DONE)
        return self._known_reason(item) or (Reason.CHANGED if on_it is Reason.CHANGED else Reason.NEW)

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
    """The plan as far as the limits cover it, what they reach to, and the remedy; None where they cover all of it.

    `The budget of €10.00 reaches to 20 of 60 rows: 20 patterns and 20 products.`

    Rows whose pattern exists or is begun come first, then all in the order of the file, and last those that are tried
    again, which would keep the others out in every run. A row that does not fit
    is skipped, and a cheaper one behind it may still fit. What is begun takes nothing more.
    """
    rows = list(plan.to_do()) if limits else []
    covered: set[ItemKey] = set()
    hit: dict[Limit, None] = {}
    bought: Counts = Counter()
    kept = 0
    for row in sorted(rows, key=partial(_place, plan)):
        new = [key for key in plan.buys(row) if key not in covered]
        after = bought + Counter(plan.items[key].item.stage for key in new)
        exceeded = [limit for limit in limits if not limit.covers(after)]
        if exceeded and new:
            hit |= dict.fromkeys(exceeded)
            continue
        bought = after
        kept += 1
        covered.update(row.keys)
    if not hit:
        return None
    limited, names = _restricted(plan, covered), list(dict.fromkeys(limit.name for limit in hit))
    named, reach = " and ".join(names), "reaches" if len(names) == 1 else "reach"
    reached = f"{reach} to {kept:,} of {plural(len(rows), 'row')}: {goods(limited.purchases())}."
    remedy = " ".join(dict.fromkeys(limit.remedy for limit in hit))
    return limited, f"{named[:1].upper()}{named[1:]} {reached}", remedy


def _place(plan: Plan, row: PlannedRow) -> int:
    """Where a row comes that a limit may leave out."""
    if any(plan.items[key].reason is Reason.TRIED_AGAIN for key in row.keys):
        return 2
    return int(any(key != row.product for key in plan.buys(row)))


def _restricted(plan: Plan, allowed: Collection[ItemKey]) -> Plan:
    """The plan without the rows that need an item outside of `allowed`: those are left out."""
    waiting: Counter[ItemKey] = Counter()
    for row in plan.to_do():
        to_do = [key for key in row.keys if plan.items[key].reason in TO_DO]
        if all(key in allowed for key in to_do):
            waiting.update(to_do)
    items = {
        key: replace(planned, rows=waiting[key], reason=planned.reason if waiting[key] else Reason.LEFT_OUT)
        if planned.reason in TO_DO
        else planned
        for key, planned in plan.items.items()
    }
    return replace(plan, items=items)


@dataclass(frozen=True)
class Cost:
    """Amounts in minor units. `worst`: every item fails until its last attempt."""

    expected: int
    worst: int
    currency: str | None = None

    def __str__(self) -> str:
        """`at least €5.00, at most €10.00 if jobs fail`; the least is that every first attempt succeeds."""
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
    """What the plan's purchases come to. Of items begun earlier, the first attempt is paid for already."""
    expected = amount_of(plan.counts(of), prices)
    begun = amount_of(plan.counts({Reason.CONTINUED}), prices) if of is TO_BUY else 0
    return Cost(expected, expected * attempts + begun * (attempts - 1), currency)
