"""What a run would do just now: the offer, the plan with its cost, its limits, and likely duplicates."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice

from patternmill.catalog.changes import old_and_new
from patternmill.catalog.offer import UNREADABLE_OFFER, Offer, merged
from patternmill.catalog.row_checks import CheckedCatalog
from patternmill.catalog.rows import Content, sku_key
from patternmill.engine.item_attempts import FINAL_CODES, is_passing
from patternmill.errors import ConfigurationError, ServiceStopped
from patternmill.ledger.decisions import last_decisions
from patternmill.ledger.ledger import Ledger, ledger_if_any
from patternmill.ledger.records import Approval
from patternmill.ledger.spending import Spent, day_of, limits_of
from patternmill.limits import Limit
from patternmill.planning.plan import (
    Cost,
    Plan,
    Reason,
    cost_of,
    limit_plan,
    make_plan,
)
from patternmill.planning.proposal import Proposal
from patternmill.planning.recognition import AnsweredItems, Memory, RemadeItems
from patternmill.runs.approval import propose
from patternmill.runs.followed_source import refuse_stale
from patternmill.runs.other_catalogs import find_duplicates
from patternmill.runs.other_ledger import Named, named_items, refuse_other_ledger, unknown_results
from patternmill.runs.spec import RunSpec
from patternmill.service.questions import UNREACHABLE
from patternmill.service.studio_api import StudioApi
from patternmill.settings import Settings
from patternmill.states import WRITTEN_OFF, AttemptState


def remembered(ledger: Ledger, spec: RunSpec) -> Memory:
    scope, options = spec.scope, spec.options
    attempts = ledger.purchases.last_attempts(scope.environment, scope.catalog)
    last = {attempt.item_key: attempt for attempt in attempts}
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
    written_off = frozenset(key for key, attempt in last.items() if attempt.error_code == WRITTEN_OFF)
    # What a person wrote off is bought anew where a person says retry, and not by the failures of a file.
    kept = frozenset() if spec.is_of_rows else written_off
    source = ledger.catalogs.source_rows(scope.environment, scope.catalog)
    products = {row.sku: row.product_key for row in source.values() if row.product_key is not None}
    decisions = last_decisions(ledger, scope.environment, scope.catalog)
    verdicts = {item: decision.verdict for item, decision in decisions.items()}
    return Memory(last, products, trying, kept, source, verdicts)


_MOST_CHANGED = 20


@dataclass(frozen=True)
class Preview:
    """A plan with what it would cost, and what a person should know of it before it is paid for."""

    checked: CheckedCatalog
    #: What the ledger knew when it was made.
    memory: Memory
    plan: Plan
    #: What a person approves of it.
    proposal: Proposal
    #: What follows once a person has decided between takes.
    later: Cost
    #: What refuses the plan, until it is confirmed: rows that exist would be bought once more.
    duplicates: ConfigurationError | None = None
    #: Rows whose content has changed: sku, and each field as it was and as it is.
    changed: tuple[tuple[str, tuple[str, ...]], ...] = ()
    #: As far as the limits cover it, what they reach to, and the remedy; None: they cover all of it.
    limited: tuple[Plan, str, str] | None = None
    #: What is taken over from results that the ledger knows nothing of, as a person confirmed.
    named: Named = field(default_factory=dict)


def preview(spec: RunSpec, checked: CheckedCatalog) -> Preview:
    """Plan on a thread and a connection of its own, so that a lease keeps its heartbeat. Writes nothing.

    Raises ConfigurationError where results beside the run know more than its ledger, and nobody confirmed that.
    """
    options = spec.options
    with ledger_if_any(spec.settings) as ledger:
        memory = remembered(ledger, spec) if ledger is not None else Memory()
        plan = _make_plan(ledger, spec, checked, memory)
        named: Named = {}
        if others := unknown_results(ledger, spec):
            named = named_items(others, plan, memory, spec)
            attempts = {key: attempt for key, (_, attempt) in named.items()}
            memory = replace(memory, last_attempts={**memory.last_attempts, **attempts})
            plan = _make_plan(ledger, spec, checked, memory)
            cost = cost_of(plan, options.prices, options.attempts, options.currency)
            refuse_other_ledger(spec, others, named, plan, cost)
        return Preview(
            checked,
            memory,
            plan,
            propose(spec, plan),
            cost_of(plan, options.prices, options.attempts, options.currency, of={Reason.UNDECIDED}),
            find_duplicates(ledger, plan) if ledger is not None else None,
            tuple(_changed(plan, memory)),
            limit_plan(plan, plan_limits(ledger, spec)),
            named,
        )


def _changed(plan: Plan, memory: Memory) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The first rows whose content has changed, compared with what answered them before."""
    rows = (row for row in plan.rows if row.product and plan.items[row.product].reason is Reason.CHANGED)
    for row in islice(rows, _MOST_CHANGED):
        kept = memory.source_rows.get(sku_key(row.sku))
        if kept is not None and kept.content is not None and row.entry.row is not None:
            texts = old_and_new(kept.content, Content.of(row.entry.row))
            yield row.sku, tuple(f"{field}: {text}" for field, text in texts.items())


def _make_plan(ledger: Ledger | None, spec: RunSpec, checked: CheckedCatalog, memory: Memory) -> Plan:
    scope = spec.scope
    if ledger is not None:
        refuse_stale(ledger, spec, checked.file, memory.source_rows)
    answered: Callable[..., AnsweredItems] = (
        partial(RemadeItems, spec.remake.wanted) if spec.remake is not None else AnsweredItems
    )
    items = answered(
        scope,
        memory,
        checked.file,
        lambda sku: ledger.catalogs.earlier_answers(scope.environment, scope.catalog, sku) if ledger else (),
        are_results=spec.origin is not None,
        takes=spec.takes,
        picture_of=checked.extras.bytes_of.__getitem__,
        unstated=spec.unstated,
    )
    return make_plan(scope, checked.entries, memory, retry=spec.retry, only=spec.only, items=items)


def with_spending_limits(spec: RunSpec, plan: Plan, approved: Approval | None) -> RunSpec:
    """The spec with its limits: only what is approved, and second attempts only after the purchases of `plan`."""
    options, limits = spec.options, spec.options.limits
    if approved is not None:
        limits = replace(limits, approval=approved.id)
    if limits_of(limits, {}, Spent(), Spent()):
        limits = replace(limits, first=plan.purchases(), prices=options.prices)
    return replace(spec, options=replace(options, limits=limits))


def plan_limits(ledger: Ledger | None, spec: RunSpec, approval: Approval | None = None) -> list[Limit]:
    """All limits of a run that begins now. Without a ledger nothing has been spent."""
    spent = ledger.purchases.spent_on(day_of(ledger.now())) if ledger is not None else {}
    of_day = spent.get(spec.scope.environment, Spent())
    return limits_of(spec.options.limits, spec.options.prices, Spent(), of_day, approval)


async def current_offer(api: StudioApi, settings: Settings) -> tuple[Offer, Offer]:
    """The offer as read now, to be remembered, and with what was remembered, to check rows against.

    Raises ServiceStopped when the key is refused, or when the service is unavailable and no offer is remembered.
    """
    # Off the event loop: a database may take as long as an answer may.
    before = await asyncio.to_thread(_remembered, settings)
    try:
        read = await api.offer()
    except ServiceStopped as stopped:
        if stopped.code != UNREACHABLE or before is None:
            raise
        read = UNREADABLE_OFFER
    return read, merged(read, before)


def _remembered(settings: Settings) -> Offer | None:
    with ledger_if_any(settings) as ledger:
        return ledger.catalogs.last_offer(settings.environment) if ledger is not None else None
