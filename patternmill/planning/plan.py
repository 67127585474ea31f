"""The plan: every item that a run would make, with its reason, how much of it the limits cover, its cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from patternmill.catalog.row_checks import Entry
from patternmill.catalog.rows import Row
from patternmill.identifiers import ItemKey
from patternmill.planning.items import ContentItems, Item, Items, PatternItem, ProductItem, Scope, written_of
from patternmill.planning.recognition import Memory
from patternmill.states import AttemptState, Stage
from patternmill.text import goods, money, plural


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
    #: Cannot be made, because its pattern failed or is held.
    BLOCKED = "blocked"
    #: To do, but not by this run: its row was not chosen.
    LEFT_OUT = "left_out"


#: The reasons for which a run does something about an item.
TO_DO = frozenset({Reason.NEW, Reason.CHANGED, Reason.CONTINUED, Reason.TRIED_AGAIN, Reason.RETRIED})
#: The reasons for which a new purchase is expected.
TO_BUY = frozenset({Reason.NEW, Reason.CHANGED, Reason.TRIED_AGAIN, Reason.RETRIED})

_REASON_OF_STATE = {
    AttemptState.SUCCEEDED: Reason.DONE,
    AttemptState.INTENDED: Reason.CONTINUED,
    AttemptState.ACCEPTED: Reason.CONTINUED,
    AttemptState.HELD: Reason.HELD,
    AttemptState.FAILED: Reason.FAILED_BEFORE,
    AttemptState.REJECTED: Reason.FAILED_BEFORE,
}


@dataclass(frozen=True)
class PlannedPattern:
    item: PatternItem
    reason: Reason
    #: This run's rows that wait for it.
    rows: int


@dataclass(frozen=True)
class PlannedProduct:
    item: ProductItem
    reason: Reason
    #: Category and selections as its row spells them.
    written: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class PlannedRow:
    """One row of the input and its items; both None where the row was refused."""

    position: int
    entry: Entry
    pattern: ItemKey | None = None
    product: ItemKey | None = None

    @property
    def sku(self) -> str:
        return self.entry.row.sku if self.entry.row else ""

    @property
    def known_sku(self) -> str:
        """The sku, also where the row is refused; empty where it has none."""
        return self.sku or next((problem.sku for problem in self.entry.problems if problem.sku), "")

    @property
    def keys(self) -> tuple[ItemKey, ...]:
        return tuple(key for key in (self.pattern, self.product) if key is not None)


@dataclass(frozen=True)
class Plan:
    """What a run would make. `rows` are in the order of the file; items in the order in which rows name them."""

    scope: Scope
    rows: tuple[PlannedRow, ...]
    patterns: Mapping[ItemKey, PlannedPattern]
    products: Mapping[ItemKey, PlannedProduct]

    def to_do(self) -> Iterator[PlannedRow]:
        """The rows whose product does not exist yet and can be made."""
        for row in self.rows:
            if row.product is not None and self.products[row.product].reason in TO_DO:
                yield row

    def pattern_counts(self) -> Counter[Reason]:
        return Counter(planned.reason for planned in self.patterns.values())

    def product_counts(self) -> Counter[Reason]:
        return Counter(planned.reason for planned in self.products.values())

    def refused(self) -> int:
        return sum(row.product is None for row in self.rows)

    def counts(self, reasons: Collection[Reason]) -> tuple[int, int]:
        """How many patterns and products are in the plan for one of these reasons."""
        patterns, products = self.pattern_counts(), self.product_counts()
        return sum(patterns[one] for one in reasons), sum(products[one] for one in reasons)

    def purchases(self) -> tuple[int, int]:
        """How many patterns and products would be bought, when every first attempt succeeds."""
        return self.counts(TO_BUY)

    def buys(self, row: PlannedRow) -> dict[Stage, ItemKey]:
        """The items of a row to do that would be bought; several rows may name the same pattern."""
        assert row.pattern is not None and row.product is not None, "a row to do has its items"
        reasons = {
            Stage.PATTERN: (row.pattern, self.patterns[row.pattern].reason),
            Stage.PRODUCT: (row.product, self.products[row.product].reason),
        }
        return {stage: key for stage, (key, reason) in reasons.items() if reason in TO_BUY}


def make_plan(
    scope: Scope,
    entries: Sequence[Entry],
    memory: Memory,
    *,
    retry: Callable[[Row], bool] = lambda row: False,
    only: Callable[[Row], bool] = lambda row: True,
    items: Items | None = None,
) -> Plan:
    """Decide for every row what has to be made for it; `entries` are the file's records in order.

    `retry`: whether a row's failed items get another attempt; `only`: whether anything is made for a row at all;
    `items`: how a row becomes items, by default by its content.
    """
    items = items or ContentItems(scope)
    named = [_named(entry, items) for entry in entries]
    # A pattern that is retried for one row is retried for all of its rows, wherever they are in the file.
    retried = frozenset(
        pattern.key for row, pattern, _ in (each for _, each in named if each) if only(row) and retry(row)
    )
    planner = _Planner(memory, retry, only, retried)
    rows = tuple(
        planner.row(position, entry, *each) if each else PlannedRow(position, entry)
        for position, (entry, each) in enumerate(named)
    )
    return Plan(scope, rows, planner.planned_patterns(), planner.products)


def _named(entry: Entry, items: Items) -> tuple[Entry, tuple[Row, PatternItem, ProductItem] | None]:
    """An entry with its items, and its row as they name it."""
    row = entry.row
    if row is None:
        return entry, None
    pattern, product = items.of(row)
    content = product.content
    as_named = (content["sku"], content["category"], content["selections"])
    if as_named != (row.sku, row.category_id or row.category, row.selections):
        sku, category, selections = as_named
        row = replace(row, sku=sku, category_id=category, selections=dict(selections))
        entry = replace(entry, row=row)
    return entry, (row, pattern, product)


class _Planner:
    """Collects the items of rows, with the reason of each."""

    def __init__(
        self,
        memory: Memory,
        retry: Callable[[Row], bool],
        only: Callable[[Row], bool],
        retried_patterns: Collection[ItemKey],
    ) -> None:
        self.memory, self.retry, self.only = memory, retry, only
        self.retried_patterns = retried_patterns
        self.patterns: dict[ItemKey, tuple[PatternItem, list[Reason]]] = {}
        self.products: dict[ItemKey, PlannedProduct] = {}

    def row(
        self, position: int, entry: Entry, row: Row, pattern: PatternItem, product: ProductItem
    ) -> PlannedRow:
        reason = self._product_reason(product, self.retry(row))
        if reason in TO_DO and not self.only(row):
            reason = Reason.LEFT_OUT
        pattern_reason = self._pattern_reason(pattern, reason)
        if reason in TO_DO and pattern_reason not in TO_DO | {Reason.DONE}:
            reason = Reason.BLOCKED
        self.patterns.setdefault(pattern.key, (pattern, []))[1].append(pattern_reason)
        self.products[product.key] = PlannedProduct(product, reason, written_of(row))
        return PlannedRow(position, entry, pattern.key, product.key)

    def planned_patterns(self) -> dict[ItemKey, PlannedPattern]:
        return {
            key: PlannedPattern(item, _strongest(reasons), sum(reason in TO_DO for reason in reasons))
            for key, (item, reasons) in self.patterns.items()
        }

    def _product_reason(self, product: ProductItem, retried: bool) -> Reason:
        before = self.memory.products_by_sku.get(product.sku)
        new = Reason.NEW if before in (None, product.key) else Reason.CHANGED
        return self._known_reason(product, retried) or new

    def _pattern_reason(self, pattern: PatternItem, product_reason: Reason) -> Reason:
        if product_reason not in TO_DO:
            # This row does not need its pattern.
            known = self._known_reason(pattern, retried=False)
            if product_reason is Reason.LEFT_OUT:
                return Reason.LEFT_OUT if known is None or known in TO_DO else known
            return known or Reason.DONE
        reason = self._known_reason(pattern, pattern.key in self.retried_patterns)
        return reason or (Reason.CHANGED if product_reason is Reason.CHANGED else Reason.NEW)

    def _known_reason(self, item: Item, retried: bool) -> Reason | None:
        last = self.memory.last_attempts.get(item.key)
        if last is None or last.state is AttemptState.WITHDRAWN:
            return None
        reason = _REASON_OF_STATE[last.state]
        if reason is not Reason.FAILED_BEFORE:
            return reason
        if retried:
            return Reason.RETRIED
        return Reason.TRIED_AGAIN if item.key in self.memory.trying else reason


def _strongest(reasons: list[Reason]) -> Reason:
    """Rows may name one pattern for several reasons; the one that makes it work to do counts."""
    order = [Reason.RETRIED, Reason.TRIED_AGAIN, Reason.CONTINUED, Reason.NEW, Reason.CHANGED]
    return next((reason for reason in order if reason in reasons), reasons[0])


@dataclass(frozen=True)
class PlanLimit:
    """One limit: its name, what raises it, and what is left of it.

    A purchase takes `pattern` or `product` of what is left: 1 where items are counted, else the price.
    """

    name: str
    remedy: str
    left: int
    pattern: int
    product: int

    def covers(self, patterns: int, products: int) -> bool:
        return patterns * self.pattern + products * self.product <= self.left


@dataclass(frozen=True)
class LimitedPlan:
    """A plan cut to the rows that all limits cover; the others are left out."""

    plan: Plan
    rows: int
    #: All rows to do.
    of: int
    #: The limits that keep a row out.
    hit: tuple[PlanLimit, ...]

    def __str__(self) -> str:
        """`The budget of €10.00 reaches to 20 of 60 rows: 20 patterns and 20 products.`"""
        bought = goods(*self.plan.purchases())
        all_names = dict.fromkeys(limit.name for limit in self.hit)
        names = " and ".join(all_names)
        reach = "reaches" if len(all_names) == 1 else "reach"
        return (
            f"{names[:1].upper()}{names[1:]} {reach} to {self.rows:,} of {plural(self.of, 'row')}: {bought}."
        )

    @property
    def remedy(self) -> str:
        return " ".join(dict.fromkeys(limit.remedy for limit in self.hit))


def limit_plan(plan: Plan, limits: Sequence[PlanLimit]) -> LimitedPlan | None:
    """The plan as far as the limits cover it; None where they cover all of it.

    Rows whose pattern exists or is begun come first, then all in the order of the file. A row that does not fit
    is skipped, and a cheaper one behind it may still fit. What is begun takes nothing more.
    """
    if not limits:
        return None
    rows = list(plan.to_do())
    covered: set[ItemKey] = set()
    hit: dict[PlanLimit, None] = {}
    bought = {Stage.PATTERN: 0, Stage.PRODUCT: 0}
    kept = 0
    for row in sorted(rows, key=lambda row: Stage.PATTERN in plan.buys(row)):
        new = {stage: key for stage, key in plan.buys(row).items() if key not in covered}
        after = {stage: count + (stage in new) for stage, count in bought.items()}
        exceeded = [limit for limit in limits if not limit.covers(after[Stage.PATTERN], after[Stage.PRODUCT])]
        if exceeded and new:
            hit |= dict.fromkeys(exceeded)
            continue
        bought = after
        kept += 1
        covered.update(row.keys)
    return LimitedPlan(restricted(plan, covered), kept, len(rows), tuple(hit)) if hit else None


def restricted(plan: Plan, allowed: Collection[ItemKey]) -> Plan:
    """The plan without the rows that need an item outside of `allowed`: those are left out."""
    rows_of = dict.fromkeys(plan.patterns, 0)
    products = dict(plan.products)
    for row in plan.to_do():
        assert row.pattern is not None and row.product is not None, "a row to do has its items"
        has_pattern = row.pattern in allowed or plan.patterns[row.pattern].reason not in TO_DO
        if row.product in allowed and has_pattern:
            rows_of[row.pattern] += 1
        else:
            products[row.product] = replace(products[row.product], reason=Reason.LEFT_OUT)
    patterns = dict(plan.patterns)
    for key, pattern in plan.patterns.items():
        if pattern.reason in TO_DO:
            reason = pattern.reason if rows_of[key] else Reason.LEFT_OUT
            patterns[key] = replace(pattern, rows=rows_of[key], reason=reason)
    return replace(plan, patterns=patterns, products=products)


@dataclass(frozen=True)
class Cost:
    """Amounts in minor units. `worst`: every item fails until its last attempt."""

    expected: int
    worst: int
    currency: str | None = None

    def __str__(self) -> str:
        """`€5.00, at most €10.00 if jobs fail`."""
        return (
            f"{money(self.expected, self.currency)}, at most {money(self.worst, self.currency)} if jobs fail"
        )


def cost_of(plan: Plan, prices: Mapping[Stage, int], attempts: int, currency: str | None = None) -> Cost:
    """What the plan's purchases come to; items begun earlier are paid for already."""
    patterns, products = plan.purchases()
    expected = patterns * prices[Stage.PATTERN] + products * prices[Stage.PRODUCT]
    return Cost(expected, expected * attempts, currency)
