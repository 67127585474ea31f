"""What earlier runs left, and the plan that follows from it, with its cost and time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from itertools import islice

from patternmill.catalog.changes import Content, described
from patternmill.catalog.row_checks import CheckedCatalog
from patternmill.catalog.selections import understood
from patternmill.engine.items import FINAL_CODES, is_passing
from patternmill.engine.options import RunOptions
from patternmill.identifiers import ItemKey
from patternmill.ledger.ledger import Ledger
from patternmill.ledger.opening import existing_ledger, has_ledger, open_ledger
from patternmill.planning.forecast import ASSUMED, Cost, cost_of, time_for
from patternmill.planning.items import Scope
from patternmill.planning.plan import Memory, Plan, Reason, make_plan
from patternmill.planning.plan_limits import LimitedPlan, limit_plan
from patternmill.planning.recognition import ContentItems, Items, RecognizedItems
from patternmill.runs.bounds import bounds
from patternmill.runs.duplicates import Duplicates, known_duplicates
from patternmill.runs.spec import RunSpec
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


def preview(spec: RunSpec, checked: CheckedCatalog) -> Preview:
    """The plan that a run would begin with just now. Writes nothing."""
    lasting, options = dict(ASSUMED), spec.options
    changed: tuple[tuple[str, tuple[str, ...]], ...] = ()
    if has_ledger(spec.settings):
        ledger = open_ledger(spec.settings)
        try:
            _, plan = _remember_and_plan(ledger, spec, checked)
            changed = tuple(_changed(ledger, plan))
            for stage in Stage:
                seconds = ledger.job_seconds(spec.scope.environment, stage)
                if seconds is not None:
                    lasting[stage] = timedelta(seconds=seconds)
        finally:
            ledger.database.close()
    else:
        plan = _plan(spec, checked, Memory(), ContentItems(spec.scope, edition=spec.edition))
    prices = {stage: options.price(stage) for stage in Stage}
    limited = _limited(spec, plan)
    time = time_for(limited.plan if limited else plan, lasting, options.max_in_flight)
    cost = cost_of(plan, prices, options.attempts)
    return Preview(plan, cost, time, known_duplicates(spec, plan, checked.offer), changed, limited)


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


def _limited(spec: RunSpec, plan: Plan) -> LimitedPlan | None:
    if not has_ledger(spec.settings):
        return limit_plan(plan, bounds(None, spec))
    with existing_ledger(spec.settings) as ledger:
        return limit_plan(plan, bounds(ledger, spec))


def remember_and_plan(spec: RunSpec, checked: CheckedCatalog) -> tuple[Memory, Plan]:
    """On a thread and a connection of its own, so that the holder's heart goes on beating."""
    ledger = open_ledger(spec.settings)
    try:
        return _remember_and_plan(ledger, spec, checked)
    finally:
        ledger.database.close()


def _remember_and_plan(ledger: Ledger, spec: RunSpec, checked: CheckedCatalog) -> tuple[Memory, Plan]:
    scope = spec.scope
    memory = remembered(ledger, scope, spec.options)

    def state_of(key: ItemKey) -> AttemptState | None:
        standing = memory.standings.get(key)
        return standing.state if standing else None

    items = RecognizedItems(
        scope,
        states=state_of,
        skus=memory.products_by_sku.keys(),
        products_of=lambda sku: ledger.products_of(scope.environment, scope.catalog, sku),
        understand=lambda category, selections: understood(checked.offer, category, selections),
        edition=spec.edition,
    )
    return memory, _plan(spec, checked, memory, items)


def _plan(spec: RunSpec, checked: CheckedCatalog, memory: Memory, items: Items) -> Plan:
    return make_plan(spec.scope, checked, memory, retry=spec.retry, only=spec.only, items=items)
