"""What earlier runs left, and the plan that follows from it, with its cost and time."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
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
    with existing_ledger(order.settings) if has_ledger(order.settings) else nullcontext() as ledger:
        memory = remembered(ledger, order.scope, order.options) if ledger else Memory()
        lasting = _lasting(ledger, order.scope) if ledger else ASSUMED
        plan, options = _plan(order, checked, memory), order.options
        limited = limit_plan(plan, bounds(ledger, order))
    made = limited.plan if limited else plan
    prices = {stage: options.price(stage) for stage in Stage}
    return Preview(
        plan, cost_of(plan, prices, options.attempts), time_for(made, lasting, options.max_in_flight), limited
    )


def _lasting(ledger: Ledger, scope: Scope) -> Mapping[Stage, timedelta]:
    """How long jobs of each stage usually last."""
    seen = {stage: ledger.job_seconds(scope.environment, stage) for stage in Stage}
    known = {stage: timedelta(seconds=seconds) for stage, seconds in seen.items() if seconds is not None}
    return dict(ASSUMED) | known


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
