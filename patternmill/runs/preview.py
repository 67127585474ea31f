"""What a run would do just now: the offer, the plan with its cost, its limits, and likely duplicates."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from patternmill.errors import ConfigurationError
from patternmill.ledger.brake import Pause
from patternmill.ledger.ledger import Ledger, ledger_if_any
from patternmill.ledger.records import Approval
from patternmill.ledger.spending import Spent, day_of, limits_of
from patternmill.money import Limit
from patternmill.planning.changes import ChangeKind, Changes, replacements
from patternmill.planning.items import ItemMaker
from patternmill.planning.memory import Memory
from patternmill.planning.plan import (
    TO_DO,
    WITHOUT_PRODUCT,
    Cost,
    Plan,
    cost_of,
    limit_plan,
    plan_entries,
)
from patternmill.planning.proposal import Proposal, proposal_of
from patternmill.runs.other_ledger import Named, named_items, refuse_other_ledger, unknown_results
from patternmill.runs.refresh_changes import find_changes, replacement_lines
from patternmill.runs.remembered import last_attempts, remember
from patternmill.runs.safeguards import find_duplicates
from patternmill.runs.spec import RunSpec

if TYPE_CHECKING:
    from patternmill.tables.checks import Checked


@dataclass(frozen=True)
class Preview:
    """A plan with what it would cost, and what a person should know of it before it is paid for."""

    checked: Checked
    #: What the ledger knew when it was made.
    memory: Memory
    plan: Plan
    #: What a person approves of it.
    proposal: Proposal
    #: The cost of what follows once a person has decided between takes.
    later: Cost
    #: The refusal of a plan that would buy rows of another catalog once more, until that is confirmed.
    duplicates: ConfigurationError | None = None
    #: What the rows change in the catalog, with what is gone where the source is the whole catalog.
    changes: Changes = ()
    #: Whether the source is the whole catalog.
    is_whole: bool = False
    #: The plan as far as the limits reach, what they reach to, and the remedy; None: they cover all of it.
    limited: tuple[Plan, str, str] | None = None
    #: What is taken over from results that the ledger knows nothing of, as a person confirmed.
    named: Named = field(default_factory=dict)
    #: The pause that keeps it from being carried out.
    pause: Pause | None = None

    @property
    def has_work(self) -> bool:
        """Return whether there is something to make or follow that is not paused, or the whole catalog changes."""
        if self.pause is None and self.plan.counts(TO_DO).total() > 0:
            return True
        changing = {ChangeKind.ADDED, ChangeKind.CHANGED, ChangeKind.REMOVED}
        return self.is_whole and any(change.kind in changing for change in self.changes)


def preview(spec: RunSpec, checked: Checked) -> Preview:
    """Make the plan, through a connection of its own, so that a lease keeps its heartbeat. Writes nothing.

    Raises ConfigurationError where results beside the run know more than its ledger, and nobody confirmed that.
    """
    options = spec.options
    terms = options.prices, options.attempts, options.currency
    with ledger_if_any(spec.settings) as ledger:
        memory = _memory(ledger, spec) if ledger is not None else Memory()
        plan = _plan_entries(spec, checked, memory)
        named: Named = {}
        if others := unknown_results(ledger, spec):
            named = named_items(others, plan, memory, spec)
            attempts = last_attempts(attempt for _, attempt in named.values())
            memory = replace(memory, last_attempts={**memory.last_attempts, **attempts})
            plan = _plan_entries(spec, checked, memory)
            refuse_other_ledger(spec, others, named, plan, cost_of(plan, *terms))
        changes = find_changes(ledger, spec, plan)
        asked: Changes = ()
        if not spec.settings.embedded:
            asked = replacements(changes, spec.change_limit, len(memory.products))
        planned = Preview(
            checked,
            memory,
            plan,
            proposal_of(plan, *terms, replacement_lines(asked)),
            later=cost_of(plan, *terms, of=WITHOUT_PRODUCT),
            changes=changes,
            is_whole=spec.retire_limit is not None,
            limited=limit_plan(plan, plan_limits(ledger, spec)),
            named=named,
        )
        if ledger is None:
            return planned
        pause = ledger.brake.pause_of(spec.scope.environment, spec.scope.catalog, now=True)
        return replace(planned, duplicates=find_duplicates(ledger, plan), pause=pause)


def _memory(ledger: Ledger, spec: RunSpec) -> Memory:
    # What a person wrote off is bought again by a retry that a person asks for, not by importing failures.
    is_retry = spec.recorded is not None
    return remember(ledger, spec.scope, spec.options, retries_written_off=is_retry, decisions=spec.decisions)


def _plan_entries(spec: RunSpec, checked: Checked, memory: Memory) -> Plan:
    maker = ItemMaker(spec.scope, picture_of=checked.extras.bytes_of.__getitem__, unstated=spec.unstated)
    retry = (lambda row: True) if spec.retries else None
    return plan_entries(maker, checked.entries, memory, retry=retry, only=spec.only, takes=spec.takes)


def with_spending_limits(spec: RunSpec, plan: Plan, approved: Approval | None) -> RunSpec:
    """Return the spec with the limits of its run: only what is approved, and second attempts after all first ones."""
    options, limits = spec.options, spec.options.limits
    if approved is not None:
        limits = replace(limits, approval=approved.id)
    if limits_of(limits, {}, Spent(), Spent()):
        limits = replace(limits, first=plan.purchases(), prices=options.prices)
    return replace(spec, options=replace(options, limits=limits))


def plan_limits(ledger: Ledger | None, spec: RunSpec, approval: Approval | None = None) -> list[Limit]:
    """Return all limits of a run that begins now. Without a ledger nothing has been spent."""
    spent = ledger.purchases.spent_on(day_of(ledger.now())) if ledger is not None else {}
    of_day = spent.get(spec.scope.environment, Spent())
    return limits_of(spec.options.limits, spec.options.prices, Spent(), of_day, approval)
