"""What earlier runs left, and the plan that follows from it, with its cost and time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from patternmill.catalog.checking import CheckedCatalog
from patternmill.ledger.ledger import Ledger
from patternmill.ledger.opening import has_ledger, open_ledger
from patternmill.mill.duplicates import Duplicates, known_duplicates
from patternmill.mill.making import FINAL_CODES
from patternmill.mill.options import RunOptions
from patternmill.mill.order import ImportOrder
from patternmill.planning.forecast import ASSUMED, Cost, cost_of, time_for
from patternmill.planning.items import Scope
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
    #: What another catalog has already.
    duplicates: Duplicates | None = None


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
    return Preview(
        plan,
        cost_of(plan, prices, options.attempts),
        time_for(plan, lasting, options.max_in_flight),
        known_duplicates(order, plan),
    )


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
