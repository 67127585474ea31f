"""What earlier runs left, and the plan that follows from it, with its cost and time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from patternmill.catalog.checking import CheckedCatalog
from patternmill.ledger.ledger import Ledger
from patternmill.ledger.opening import existing_ledger, has_ledger, open_ledger
from patternmill.mill.bounding import bounds
from patternmill.mill.making import FINAL_CODES
from patternmill.mill.options import RunOptions
from patternmill.mill.order import ImportOrder
from patternmill.planning.forecast import ASSUMED, Cost, cost_of, time_for
from patternmill.planning.items import Scope
from patternmill.planning.limiting import LimitedPlan, limit_plan
from patternmill.planning.plan import Memory, Plan, make_plan
from patternmill.states import AttemptState, Stage


def remembered(ledger: Ledger, scope: Scope, options: RunOptions) -> Memory:
    """What earlier runs left of a catalog."""
    last = {attempt.item_key: attempt for attempt in ledger.last_attempts(scope.environment, scope.catalog)}
    trying = frozenset(
        key
        for key, attempt in last.items()
        if attempt.state is AttemptState.FAILED
        and attempt.attempt < options.attempts
        and attempt.error_code not in FINAL_CODES
    )
    return Memory(last, ledger.latest_products(scope.environment, scope.catalog), trying)


@dataclass(frozen=True)
class Preview:
    """A plan with what it would cost and about how long it would take."""

    plan: Plan
    cost: Cost
    time: timedelta
    #: How far the limits reach; None: to all of it.
    limited: LimitedPlan | None = None


def preview(order: ImportOrder, checked: CheckedCatalog) -> Preview:
    """The plan that a run would begin with just now. Writes nothing."""
    memory, lasting = Memory(), dict(ASSUMED)
    if has_ledger(order.settings):
        ledger = open_ledger(order.settings)
        memory = remembered(ledger, order.scope, order.options)
        for stage in Stage:
            seconds = ledger.job_seconds(order.scope.environment, stage)
            if seconds is not None:
                lasting[stage] = timedelta(seconds=seconds)
        ledger.database.close()
    plan, options = _plan(order, checked, memory), order.options
    prices = {stage: options.price(stage) for stage in Stage}
    limited = _limited(order, plan)
    made = limited.plan if limited else plan
    time = time_for(made, lasting, options.max_in_flight)
    return Preview(plan, cost_of(plan, prices, options.attempts), time, limited)


def _limited(order: ImportOrder, plan: Plan) -> LimitedPlan | None:
    if not has_ledger(order.settings):
        return limit_plan(plan, bounds(None, order))
    with existing_ledger(order.settings) as ledger:
        return limit_plan(plan, bounds(ledger, order))


def remember_and_plan(order: ImportOrder, checked: CheckedCatalog) -> tuple[Memory, Plan]:
    """On a thread and a connection of its own, so that the holder's heart goes on beating."""
    ledger = open_ledger(order.settings)
    try:
        memory = remembered(ledger, order.scope, order.options)
    finally:
        ledger.database.close()
    return memory, _plan(order, checked, memory)


def _plan(order: ImportOrder, checked: CheckedCatalog, memory: Memory) -> Plan:
    return make_plan(order.scope, checked, memory, retry=order.retry, only=order.only, edition=order.edition)
