"""What earlier runs left, and the plan that follows from it, with its cost and time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import islice

from patternmill.catalog.changes import Content, described
from patternmill.catalog.row_checks import CheckedCatalog
from patternmill.engine.item_attempts import FINAL_CODES, is_passing
from patternmill.engine.options import RunOptions
from patternmill.ledger.ledger import Ledger, ledger_if_any, open_ledger
from patternmill.ledger.reports.overview import job_seconds
from patternmill.planning.forecast import ASSUMED, Cost, cost_of, time_for
from patternmill.planning.items import Scope
from patternmill.planning.memory import Memory
from patternmill.planning.plan import Plan, Reason, make_plan
from patternmill.planning.plan_limits import LimitedPlan, limit_plan
from patternmill.planning.recognition import KnownProduct, RecognizedItems
from patternmill.runs.duplicates import Duplicates, find_duplicates
from patternmill.runs.limits import plan_limits
from patternmill.runs.spec import RunSpec
from patternmill.states import AttemptState, Stage


def remembered(ledger: Ledger, scope: Scope, options: RunOptions) -> Memory:
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
    #: Rows that another catalog has.
    duplicates: Duplicates | None = None
    #: Rows whose content has changed: sku, and each field as it was and as it is.
    changed: tuple[tuple[str, tuple[str, ...]], ...] = ()
    #: The rows that the limits cover; None: all of them.
    limited: LimitedPlan | None = None


def preview(spec: RunSpec, checked: CheckedCatalog) -> Preview:
    options = spec.options
    with ledger_if_any(spec.settings) as ledger:
        _, plan = _remember_and_plan(ledger, spec, checked)
        limited = limit_plan(plan, plan_limits(ledger, spec))
        time = time_for(limited.plan if limited else plan, _job_times(ledger, spec), options.max_in_flight)
        cost = cost_of(plan, options.prices, options.attempts, options.currency)
        if ledger is None:
            return Preview(plan, cost, time, limited=limited)
        duplicates = find_duplicates(ledger, plan, checked.offer)
        return Preview(plan, cost, time, duplicates, tuple(_changed(ledger, plan)), limited)


def _job_times(ledger: Ledger | None, spec: RunSpec) -> dict[Stage, timedelta]:
    times = dict(ASSUMED)
    for stage in Stage:
        seconds = job_seconds(ledger, spec.scope.environment, stage) if ledger is not None else None
        if seconds is not None:
            times[stage] = timedelta(seconds=seconds)
    return times


def _changed(ledger: Ledger, plan: Plan) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The first rows whose content has changed, compared with what their sku last requested."""
    rows = (row for row in plan.rows if row.product and plan.products[row.product].reason is Reason.CHANGED)
    for row in islice(rows, _MOST_CHANGED):
        known = ledger.products_of(plan.scope.environment, plan.scope.catalog, row.sku)
        if known and row.entry.row is not None:
            before, pattern = known[0].content, known[0].pattern_content
            old = Content(pattern["prompt"], before["category"], before["selections"])
            yield row.sku, tuple(described(old, Content.of(row.entry.row)))


def remember_and_plan(spec: RunSpec, checked: CheckedCatalog) -> tuple[Memory, Plan]:
    """On a thread and a connection of its own, so that the lease keeps its heartbeat."""
    with open_ledger(spec.settings) as ledger:
        return _remember_and_plan(ledger, spec, checked)


def _remember_and_plan(ledger: Ledger | None, spec: RunSpec, checked: CheckedCatalog) -> tuple[Memory, Plan]:
    scope = spec.scope
    memory = remembered(ledger, scope, spec.options) if ledger is not None else Memory()

    def products_of(sku: str) -> Sequence[KnownProduct]:
        return ledger.products_of(scope.environment, scope.catalog, sku) if ledger is not None else ()

    items = RecognizedItems(scope, memory, products_of, checked.offer, edition=spec.edition)
    return memory, make_plan(scope, checked.entries, memory, retry=spec.retry, only=spec.only, items=items)
