"""What earlier runs left, and the plan that follows from it, with its cost and time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from itertools import islice

from patternmill.catalog.changes import Content, described
from patternmill.catalog.checking import CheckedCatalog
from patternmill.catalog.selections import understood
from patternmill.identifiers import ItemKey
from patternmill.ledger.ledger import Ledger
from patternmill.ledger.opening import existing_ledger, has_ledger, open_ledger
from patternmill.mill.bounding import bounds
from patternmill.mill.duplicates import Duplicates, known_duplicates
from patternmill.mill.making import FINAL_CODES, is_passing
from patternmill.mill.options import RunOptions
from patternmill.mill.order import ImportOrder
from patternmill.planning.forecast import ASSUMED, Cost, cost_of, time_for
from patternmill.planning.items import Scope
from patternmill.planning.limiting import LimitedPlan, limit_plan
from patternmill.planning.plan import Memory, Plan, Reason, make_plan
from patternmill.planning.recognition import ContentItems, Items, RecognizedItems
from patternmill.states import AttemptState, Stage


def remembered(ledger: Ledger, scope: Scope, options: RunOptions) -> Memory:
    """What earlier runs left of a catalog."""
    last = {attempt.item_key: attempt for attempt in ledger.last_attempts(scope.environment, scope.catalog)}
    trying = frozenset(
        key
        for key, attempt in last.items()
        if is_passing(attempt)
        or (
            attempt.state is AttemptState.FAILED
            and attempt.attempt < options.attempts
            and attempt.error_code not in FINAL_CODES
        )
    )
    return Memory(last, ledger.latest_products(scope.environment, scope.catalog), trying)


_MOST_CHANGED = 20


@dataclass(frozen=True)
class Preview:
    """A plan with what it would cost and about how long it would take."""

    plan: Plan
    cost: Cost
    time: timedelta
    #: What another catalog has already.
    duplicates: Duplicates | None = None
    #: Of rows that were asked for with other content before: sku, and each field as it was and as it is.
    changed: tuple[tuple[str, tuple[str, ...]], ...] = ()
    #: How far the limits reach; None: to all of it.
    limited: LimitedPlan | None = None


def preview(order: ImportOrder, checked: CheckedCatalog) -> Preview:
    """The plan that a run would begin with just now. Writes nothing."""
    lasting, options = dict(ASSUMED), order.options
    changed: tuple[tuple[str, tuple[str, ...]], ...] = ()
    if has_ledger(order.settings):
        ledger = open_ledger(order.settings)
        try:
            _, plan = _remember_and_plan(ledger, order, checked)
            changed = tuple(_changed(ledger, plan))
            for stage in Stage:
                seconds = ledger.job_seconds(order.scope.environment, stage)
                if seconds is not None:
                    lasting[stage] = timedelta(seconds=seconds)
        finally:
            ledger.database.close()
    else:
        plan = _plan(order, checked, Memory(), ContentItems(order.scope, edition=order.edition))
    prices = {stage: options.price(stage) for stage in Stage}
    limited = _limited(order, plan)
    time = time_for(limited.plan if limited else plan, lasting, options.max_in_flight)
    cost = cost_of(plan, prices, options.attempts)
    return Preview(plan, cost, time, known_duplicates(order, plan, checked.offer), changed, limited)


def _changed(ledger: Ledger, plan: Plan) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The first rows whose content has changed, held against what their sku was last asked for."""
    rows = (row for row in plan.rows if row.product and plan.products[row.product].reason is Reason.CHANGED)
    for row in islice(rows, _MOST_CHANGED):
        known = ledger.products_of(plan.scope.environment, plan.scope.catalog, row.sku)
        asked = row.entry.row
        if known and asked is not None:
            before, pattern = known[0].content, known[0].pattern_content
            old = Content(pattern["prompt"], before["category"], before["selections"])
            now = Content(asked.prompt, asked.category_id or asked.category, asked.selections)
            yield row.sku, tuple(described(old, now))


def _limited(order: ImportOrder, plan: Plan) -> LimitedPlan | None:
    if not has_ledger(order.settings):
        return limit_plan(plan, bounds(None, order))
    with existing_ledger(order.settings) as ledger:
        return limit_plan(plan, bounds(ledger, order))


def remember_and_plan(order: ImportOrder, checked: CheckedCatalog) -> tuple[Memory, Plan]:
    """On a thread and a connection of its own, so that the holder's heart goes on beating."""
    ledger = open_ledger(order.settings)
    try:
        return _remember_and_plan(ledger, order, checked)
    finally:
        ledger.database.close()


def _remember_and_plan(ledger: Ledger, order: ImportOrder, checked: CheckedCatalog) -> tuple[Memory, Plan]:
    scope = order.scope
    memory = remembered(ledger, scope, order.options)

    def state_of(key: ItemKey) -> AttemptState | None:
        standing = memory.standings.get(key)
        return standing.state if standing else None

    items = RecognizedItems(
        scope,
        states=state_of,
        skus=memory.products_by_sku.keys(),
        products_of=lambda sku: ledger.products_of(scope.environment, scope.catalog, sku),
        understand=lambda category, selections: understood(checked.offer, category, selections),
        edition=order.edition,
    )
    return memory, _plan(order, checked, memory, items)


def _plan(order: ImportOrder, checked: CheckedCatalog, memory: Memory, items: Items) -> Plan:
    return make_plan(order.scope, checked, memory, retry=order.retry, only=order.only, items=items)
