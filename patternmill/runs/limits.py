"""The limits of a run and of its approval, applied to its plan: whole rows, decided before the first purchase."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from patternmill.engine.halt import HaltReason
from patternmill.ledger.ledger import Ledger
from patternmill.ledger.records import Approval, FirstPurchases, SpendingLimits
from patternmill.planning.plan import Plan
from patternmill.planning.plan_limits import PlanLimit, limit_plan, restricted
from patternmill.results.summary import joined
from patternmill.runs.approval import ApprovedItems
from patternmill.runs.spec import RunSpec
from patternmill.states import Outcome
from patternmill.text import money, plural

_REMEDY = "Raise {} and run the same command again."


def apply_limits(
    ledger: Ledger, spec: RunSpec, plan: Plan, approved: ApprovedItems | None
) -> tuple[Plan, HaltReason | None]:
    """The plan as far as its approval and the limits cover it, and why rows are left out of it."""
    covered, uncovered = plan, None
    if approved is not None:
        covered = restricted(plan, approved.keys)
        uncovered = _not_approved(approved.approval, plan, covered)
    limited = limit_plan(covered, plan_limits(ledger, spec, approved.approval if approved else None))
    if limited is None:
        return covered, uncovered
    message = joined(str(limited), limited.remedy, uncovered.message if uncovered else None)
    return limited.plan, HaltReason(Outcome.BUDGET_REACHED, "limit", message)


def _not_approved(approval: Approval, plan: Plan, covered: Plan) -> HaltReason | None:
    """Why rows are left out of a plan that an approval does not cover as a whole."""
    left = len(list(plan.to_do())) - len(list(covered.to_do()))
    if not left:
        return None
    return HaltReason(
        Outcome.BUDGET_REACHED,
        "approval",
        f"{approval.who} approved {approval.ceiling.items:,} of {plural(approval.items, 'item')} of plan "
        f"{approval.short}. Left for another approval: {plural(left, 'row')}.",
    )


def with_spending_limits(spec: RunSpec, plan: Plan, approved: ApprovedItems | None) -> RunSpec:
    """The spec with its limits: only what is approved, and second attempts only after the purchases of `plan`."""
    options = spec.options
    limits = options.limits
    if approved is not None:
        limits = replace(limits, approval=approved.approval.id)
    if _has_limit(limits):
        patterns, products = plan.purchases()
        first = FirstPurchases(patterns, products, options.pattern_price, options.product_price)
        limits = replace(limits, first=first)
    return replace(spec, options=replace(options, limits=limits))


def _has_limit(limits: SpendingLimits) -> bool:
    most = (limits.patterns, limits.products, limits.run_amount, limits.day_amount)
    return any(limit is not None for limit in most)


def plan_limits(ledger: Ledger | None, spec: RunSpec, approval: Approval | None = None) -> list[PlanLimit]:
    """All limits of a run that begins now. Without a ledger nothing has been spent."""
    return [*_of_run(spec), *_of_day(ledger, spec), *(_of_approval(spec, approval) if approval else ())]


def _of_money(spec: RunSpec, name: str, remedy: str, left: int) -> PlanLimit:
    return PlanLimit(name, remedy, left, spec.options.pattern_price, spec.options.product_price)


def _of_run(spec: RunSpec) -> Iterator[PlanLimit]:
    limits = spec.options.limits
    if limits.patterns is not None:
        name = f"the limit of {plural(limits.patterns, 'pattern')}"
        yield PlanLimit(name, _REMEDY.format("--max-patterns"), limits.patterns, 1, 0)
    if limits.products is not None:
        name = f"the limit of {plural(limits.products, 'product')}"
        yield PlanLimit(name, _REMEDY.format("--max-products"), limits.products, 0, 1)
    if limits.run_amount is not None:
        name = f"the budget of {money(limits.run_amount, limits.currency)}"
        yield _of_money(spec, name, _REMEDY.format("--budget"), limits.run_amount)


def _of_day(ledger: Ledger | None, spec: RunSpec) -> Iterator[PlanLimit]:
    most = spec.options.limits.day_amount
    if most is not None:
        spent = ledger.spent_today(spec.scope.environment) if ledger is not None else 0
        of_most, so_far = (money(amount, spec.options.currency) for amount in (most, spent))
        name = f"the budget of {of_most} for today, of which {so_far} is spent or reserved,"
        yield _of_money(spec, name, _REMEDY.format("PATTERNMILL_DAY_BUDGET"), most - spent)


def _of_approval(spec: RunSpec, approval: Approval) -> Iterator[PlanLimit]:
    """What further attempts have left of it."""
    name, ceiling = f"what is left of the approval of plan {approval.short}", approval.ceiling
    remedy = "Run again: what is left needs another approval."
    yield PlanLimit(name, remedy, ceiling.purchases - approval.purchases, 1, 1)
    yield _of_money(spec, name, remedy, ceiling.amount - approval.amount)
