"""How far limits and an approval let a run carry its plan out: whole rows, decided before the first purchase."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from patternmill.engine.halt import HaltReason
from patternmill.ledger.ledger import Ledger
from patternmill.ledger.records import Approval, FirstPurchases, SpendingLimits
from patternmill.planning.plan import Plan
from patternmill.planning.plan_limits import Bound, limit_plan
from patternmill.planning.proposal import within
from patternmill.results.summary import joined
from patternmill.runs.approval import Grant, beyond
from patternmill.runs.spec import RunSpec
from patternmill.states import Outcome

_REMEDY = "Raise {} and run the same command again."


def bounded(ledger: Ledger, spec: RunSpec, plan: Plan, grant: Grant | None) -> tuple[Plan, HaltReason | None]:
    """The plan as far as an approval and the limits reach, and why rows are left out of it."""
    approved = within(plan, grant.keys) if grant is not None else plan
    unapproved = beyond(grant, plan, approved) if grant is not None else None
    limited = limit_plan(approved, bounds(ledger, spec, grant))
    if limited is None:
        return approved, unapproved
    message = joined(str(limited), limited.remedy, unapproved.message if unapproved else None)
    return limited.plan, HaltReason(Outcome.BUDGET_REACHED, "limit", message)


def within_bounds(spec: RunSpec, plan: Plan, grant: Grant | None) -> RunSpec:
    """The order that buys nothing but what an approval reaches to, and no second attempt at the plan's expense."""
    options = spec.options
    limits = options.limits
    if grant is not None:
        limits = replace(limits, approval=grant.approval.id)
    if _has_limit(limits):
        patterns, products = plan.purchases()
        first = FirstPurchases(patterns, products, options.pattern_price, options.product_price)
        limits = replace(limits, first=first)
    return replace(spec, options=replace(options, limits=limits))


def bounds(ledger: Ledger | None, spec: RunSpec, grant: Grant | None = None) -> list[Bound]:
    """All that bounds a run which begins now. Without a ledger nothing has been spent."""
    found = [*_of_run(spec), *_of_day(ledger, spec)]
    return found if grant is None else [*found, *_of_approval(spec, grant.approval)]


def _of_run(spec: RunSpec) -> Iterator[Bound]:
    limits, options = spec.options.limits, spec.options
    if limits.patterns is not None:
        name = f"the limit of {limits.patterns} patterns"
        yield Bound(name, _REMEDY.format("--max-patterns"), limits.patterns, 1, 0)
    if limits.products is not None:
        name = f"the limit of {limits.products} products"
        yield Bound(name, _REMEDY.format("--max-products"), limits.products, 0, 1)
    if limits.run_amount is not None:
        name, remedy = f"the budget of {limits.run_amount}", _REMEDY.format("--budget")
        yield Bound(name, remedy, limits.run_amount, options.pattern_price, options.product_price)


def _of_day(ledger: Ledger | None, spec: RunSpec) -> Iterator[Bound]:
    most, options = spec.options.limits.day_amount, spec.options
    if most is None:
        return
    spent = ledger.spent_today(spec.scope.environment) if ledger is not None else 0
    name = f"the budget of {most} for today, of which {spent} is spent or reserved,"
    remedy = _REMEDY.format("PATTERNMILL_DAY_BUDGET")
    yield Bound(name, remedy, most - spent, options.pattern_price, options.product_price)


def _of_approval(spec: RunSpec, approval: Approval) -> Iterator[Bound]:
    """What further attempts have left of it."""
    name, ceiling = f"what is left of the approval of plan {approval.short}", approval.ceiling
    remedy = "Run again: what is left is put before a person as another plan."
    yield Bound(name, remedy, ceiling.purchases - approval.purchases, 1, 1)
    options, left = spec.options, ceiling.amount - approval.amount
    yield Bound(name, remedy, left, options.pattern_price, options.product_price)


def _has_limit(limits: SpendingLimits) -> bool:
    most = (limits.patterns, limits.products, limits.run_amount, limits.day_amount)
    return any(limit is not None for limit in most)
