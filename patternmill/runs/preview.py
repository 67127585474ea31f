"""The preview of a run that has not begun: its plan with cost and limits, and the changes of its catalog."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from patternmill.engine.options import RunOptions
from patternmill.errors import ConfigurationError
from patternmill.ledger.brake import Pause
from patternmill.ledger.catalogs import RequestedContent, counts_of
from patternmill.ledger.ledger import Ledger, ledger_to_read
from patternmill.ledger.records import Approval, RunRecord
from patternmill.ledger.spending import Spent, day_of, limits_of
from patternmill.money import Limit
from patternmill.planning.changes import (
    ChangeKind,
    Changes,
    ChangeVerdict,
    RequestedRow,
    compare,
    noteworthy,
    replacements,
)
from patternmill.planning.items import ItemMaker
from patternmill.planning.memory import Memory
from patternmill.planning.plan import (
    TO_DO,
    WITHOUT_PRODUCT,
    Cost,
    Plan,
    PlannedRow,
    cost_of,
    limit_plan,
    plan_entries,
)
from patternmill.planning.proposal import Proposal, proposal_of
from patternmill.planning.rows import Content, sku_key
from patternmill.runs.other_ledger import Named, named_items, refuse_other_ledger, unknown_results
from patternmill.runs.recorded_rows import last_attempts, remember
from patternmill.runs.safeguards import find_duplicates
from patternmill.runs.spec import RunSpec
from patternmill.text import more, plural, readable

if TYPE_CHECKING:
    from patternmill.tables.checks import Checked

_MOST_SKUS = 3
_MOST_CATEGORIES = 2


@dataclass(frozen=True)
class Preview:
    """A plan with what it would cost, and what a person should know of it before it is paid for."""

    checked: Checked
    #: What the ledger knew when it was made.
    memory: Memory
    plan: Plan
    #: What a person approves when they approve the plan.
    proposal: Proposal
    #: The cost of what follows once a person has decided between takes.
    later: Cost
    #: The refusal of a plan that would buy rows of another catalog again, unless that is confirmed.
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


def make_preview(spec: RunSpec, checked: Checked) -> Preview:
    """Make the plan, through a connection of its own, so that a lease keeps its heartbeat. Writes nothing.

    Raises ConfigurationError where results beside the run know more than its ledger, and nobody confirmed that.
    """
    options = spec.options
    terms = options.prices, options.attempts, options.currency
    with ledger_to_read(spec.settings) as ledger:
        memory = remember(ledger, spec.scope, options, spec.decisions)
        if spec.recorded is not None:
            # What a person wrote off is bought again by a retry that a person asks for, not by importing failures.
            memory = replace(memory, given_up=frozenset())
        plan = _plan_entries(spec, checked, memory)
        named: Named = {}
        if others := unknown_results(ledger, spec):
            named = named_items(others, plan, memory, spec)
            attempts = last_attempts(attempt for _, attempt in named.values())
            memory = replace(memory, last_attempts={**memory.last_attempts, **attempts})
            plan = _plan_entries(spec, checked, memory)
            refuse_other_ledger(spec, others, named, plan, cost_of(plan, *terms))
        changes = find_changes(ledger, spec, plan)
        is_asked = not spec.settings.embedded
        asked = replacements(changes, spec.change_limit, len(memory.products)) if is_asked else ()
        return Preview(
            checked,
            memory,
            plan,
            proposal_of(plan, *terms, replacement_lines(asked)),
            later=cost_of(plan, *terms, of=WITHOUT_PRODUCT),
            duplicates=find_duplicates(ledger, plan),
            changes=changes,
            is_whole=spec.retire_limit is not None,
            limited=limit_plan(plan, plan_limits(ledger, spec)),
            named=named,
            pause=ledger.brake.pause_of(spec.scope.environment, spec.scope.catalog, now=True),
        )


def _plan_entries(spec: RunSpec, checked: Checked, memory: Memory) -> Plan:
    maker = ItemMaker(spec.scope, picture_of=checked.extras.bytes_of.__getitem__, unstated=spec.unstated)
    retry = (lambda row: True) if spec.retries else None
    return plan_entries(maker, checked.entries, memory, retry=retry, only=spec.chooses, takes=spec.takes)


def with_spending_limits(options: RunOptions, plan: Plan, approved: Approval | None) -> RunOptions:
    """Return the options with the limits of a plan: only what is approved, and second attempts after all first ones."""
    limits = options.limits
    if approved is not None:
        limits = replace(limits, approval=approved.id)
    if limits_of(limits, {}, Spent(), Spent()):
        limits = replace(limits, first=plan.purchases(), prices=options.prices)
    return replace(options, limits=limits)


def plan_limits(ledger: Ledger, spec: RunSpec, approval: Approval | None = None) -> list[Limit]:
    """Return all limits of a run that begins now."""
    of_day = ledger.purchases.spent_on(day_of(ledger.now())).get(spec.scope.environment, Spent())
    return limits_of(spec.options.limits, spec.options.prices, Spent(), of_day, approval)


def find_changes(ledger: Ledger, spec: RunSpec, plan: Plan) -> Changes:
    """Return the changes between a plan and what the catalog has."""
    scope = spec.scope.environment, spec.scope.catalog
    current = {sku_key(row.sku): row for row in ledger.catalogs.rows(*scope)}
    before = ledger.catalogs.requested_rows(*scope) if plan.counts(WITHOUT_PRODUCT).total() else {}
    requested = [_requested(row, plan, before.get(sku_key(row.known_sku))) for row in plan.rows]
    return compare(current, requested, spec.retire_limit, ceiling=spec.retire)


def withheld_reason(record: RunRecord) -> str | None:
    """Return why rows that the source no longer has were not retired, and how to retire them; None if all were."""
    counts = counts_of(record) or {}
    withheld = counts.get(ChangeVerdict.WITHHELD.value, 0)
    if not withheld:
        return None
    empty = sum(counts.values()) == withheld + counts.get(ChangeVerdict.RETIRED.value, 0)
    command = (
        f"patternmill refresh {shlex.quote(record.source)} --catalog {shlex.quote(record.catalog)} "
        f"--environment {record.environment} --retire {withheld}"
    )
    why = "The source is empty" if empty else "The source has fewer rows than the limit allows"
    return f"{why}: {plural(withheld, 'row')} not retired (withheld). If they are to go: {command}"


def _requested(row: PlannedRow, plan: Plan, before: RequestedContent | None) -> RequestedRow:
    entry, product = row.entry, row.product
    if entry.row is None or product is None:
        return RequestedRow(row.known_sku, has_sku=row.has_sku, line=entry.line)
    content = Content.of(entry.row)
    was_requested = before is not None and before.content.identity == content.identity
    return RequestedRow(entry.row.sku, content, product, plan.items[product].reason, was_requested)


def change_lines(changes: Changes, most: int) -> Iterator[str]:
    """Yield a line for each noteworthy change, with its details, up to a number."""
    changed = noteworthy(changes)
    for change in changed[:most]:
        fields = f"  ({', '.join(change.fields)})" if change.fields else ""
        replaces = f"  replaces {change.before.product_id}" if change.fields and change.before else ""
        replaces = f"  renamed from {change.renamed_from}?" if change.renamed_from else replaces
        kind = change.verdict or change.kind
        yield f"  {readable(kind.value):14} {change.sku or f'row {change.line}'}{fields}{replaces}"
        yield from (f"  {'':14} {field}: {text}" for field, text in change.old_and_new().items() if text)
    yield from more(len(changed), most)


def counts_line(counts: Mapping[str, int]) -> str:
    """Return `2 added, 1 changed, 96 unchanged, 0 retired, 0 withheld, 1 failed before`."""
    always = ("added", "changed", "unchanged", "retired", "withheld")
    return ", ".join(
        f"{counts.get(kind, 0):,} {readable(kind)}"
        for kind in (*always, "failed_before", "refused")
        if counts.get(kind) or kind in always
    )


def replacement_lines(replaced: Changes) -> tuple[str, ...]:
    """Return at most three lines on changes that a person is asked about: the products, and each reason."""
    if not replaced:
        return ()
    products = plural(len(replaced), "product")
    skus = _first([change.sku for change in replaced], _MOST_SKUS)
    lines = [f"It would replace {products} that the catalog has: {skus}."]
    if not all(change.always_asks for change in replaced):
        lines.append("More are replaced than --change-at-most allows.")
    ids = {
        f"{change.now.category_name} ({change.before.content.category} -> {change.now.category})": None
        for change in replaced
        if change.has_other_id and change.now is not None and change.before is not None
    }
    unsafe = []
    if ids:
        unsafe.append(
            f"The category has another ID under the same name: {_first(list(ids), _MOST_CATEGORIES)}."
        )
    if unchecked := sum(change.became_checked for change in replaced):
        products = plural(unchecked, "product")
        unsafe.append(f"Made while the offer could not be read, which is readable now: {products}.")
    return (*lines, " ".join(unsafe)) if unsafe else tuple(lines)


def _first(names: Sequence[str], most: int) -> str:
    return ", ".join(names[:most]) + "".join(more(len(names), most, " "))
