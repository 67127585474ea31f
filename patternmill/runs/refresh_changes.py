"""What makes a run a refresh: the terms it was asked for on, and its source held against what the catalog has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from patternmill.catalog.changes import (
    Changes,
    ChangeVerdict,
    Content,
    CurrentRow,
    RequestedRow,
    RetireLimit,
    detect,
)
from patternmill.catalog.remote import shown_address
from patternmill.identifiers import ItemKey
from patternmill.ledger.catalog_rows import CHANGES
from patternmill.ledger.ledger import Ledger
from patternmill.ledger.records import RunRecord
from patternmill.planning.items import Scope
from patternmill.planning.plan import Plan, PlannedRow, Reason

_NOT_MADE = frozenset({Reason.FAILED_BEFORE, Reason.BLOCKED, Reason.HELD})


@dataclass(frozen=True)
class RefreshTerms:
    """Where the rows come from, how many may go, and where else the results are wanted."""

    #: A path or an address; with its secrets, so it is never shown.
    address: str = field(repr=False)
    limit: RetireLimit = field(default_factory=RetireLimit)
    #: A person's word on how many rows may be retired, in place of the limit.
    retire: int | None = None
    #: An address that the results are copied to.
    place: str | None = field(default=None, repr=False)

    @property
    def shown(self) -> str:
        return shown_address(self.address)


def find_changes(ledger: Ledger | None, scope: Scope, plan: Plan, terms: RefreshTerms) -> Changes:
    """Hold the plan's rows against what the catalog has; without a ledger it has nothing."""
    has = _has(ledger, scope) if ledger is not None else {}
    return detect(has, asked_for(plan), terms.limit, ceiling=terms.retire)


def asked_for(plan: Plan) -> list[RequestedRow]:
    """What the plan's rows ask for, the refused ones too."""
    return [_asked(row, plan) for row in plan.rows]


def put_changes_on_record(ledger: Ledger, record: RunRecord, changes: Changes) -> None:
    """After the run itself is on record."""
    ledger.add_changes(record.run_id, changes.told())


def with_counts(record: RunRecord, changes: Changes) -> RunRecord:
    return replace(record, options={**record.options, CHANGES: changes.counts()})


def counts_of(record: RunRecord) -> Mapping[str, int] | None:
    """What a refresh found, by kind; None for a run that is none."""
    counts: Mapping[str, int] | None = record.options.get(CHANGES)
    return counts


def is_whole(record: RunRecord) -> bool:
    """Whether what a run's source did not have was gone: a refresh's, unless so much was missing that it waits."""
    counts = counts_of(record)
    return counts is not None and not counts.get(ChangeVerdict.WITHHELD.value, 0)


def withheld_reason(record: RunRecord) -> str | None:
    """Why rows that the source has no longer were not retired, and what lets them go."""
    counts = counts_of(record) or {}
    withheld = counts.get(ChangeVerdict.WITHHELD.value, 0)
    if not withheld:
        return None
    empty = sum(counts.values()) == withheld + counts.get(ChangeVerdict.RETIRED.value, 0)
    said = "The source is empty" if empty else "The source is smaller than may go unasked"
    rows = "1 row waits" if withheld == 1 else f"{withheld} rows wait"
    return f"{said}: {rows} to be retired (withheld). Let them go with --retire {withheld}."


def _has(ledger: Ledger, scope: Scope) -> dict[str, CurrentRow]:
    return {current.sku: current for current in ledger.catalog_rows(scope.environment, scope.catalog)}


def _asked(row: PlannedRow, plan: Plan) -> RequestedRow:
    entry, product = row.entry, row.product
    if entry.row is None or product is None:
        return RequestedRow(row_sku(row))
    content = Content(entry.row.prompt, entry.row.category_id or entry.row.category, entry.row.selections)
    return RequestedRow(entry.row.sku, content, ItemKey(product), plan.products[product].reason in _NOT_MADE)


def row_sku(row: PlannedRow) -> str:
    """The row's sku, also where it is refused; empty where it has none."""
    return row.sku or next((problem.sku for problem in row.entry.problems if problem.sku), "")


def change_lines(changes: Changes, most: int) -> Iterator[str]:
    """Each change that is worth a line, as far as a screen bears it."""
    told = list(changes.told())
    for change in told[:most]:
        fields = f"  ({', '.join(change.fields)})" if change.fields else ""
        replaces = f"  replaces {change.before.product_id}" if change.fields and change.before else ""
        word = change.verdict or change.kind
        yield f"  {word.value.replace('_', ' '):14} {change.sku}{fields}{replaces}"
        yield from (f"  {'':14} {line}" for line in change.old_and_new())
    if len(told) > most:
        yield f"  … and {len(told) - most} more"


def counts_line(counts: Mapping[str, int]) -> str:
    """`2 added, 1 changed, 96 unchanged, 0 retired, 0 withheld, 1 failed before`."""
    always = ("added", "changed", "unchanged", "retired", "withheld")
    return ", ".join(
        f"{count} {word.replace('_', ' ')}" for word, count in _ordered(counts) if count or word in always
    )


def _ordered(counts: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    words = ("added", "changed", "unchanged", "retired", "withheld", "failed_before", "refused")
    return ((word, counts.get(word, 0)) for word in words)
