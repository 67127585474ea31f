"""What a refresh finds: the changes between its source and what the catalog has."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import replace

from patternmill.catalog.changes import ChangeKind, Changes, ChangeVerdict, RequestedRow, detect
from patternmill.catalog.rows import Content, sku_key
from patternmill.catalog.source_rows import SourceRow
from patternmill.ledger.catalogs import counts_of
from patternmill.ledger.ledger import Ledger
from patternmill.ledger.records import RunRecord
from patternmill.planning.plan import Plan, PlannedRow, Reason
from patternmill.runs.spec import RunSpec
from patternmill.text import more, plural, readable

_NOT_MADE = frozenset({Reason.FAILED_BEFORE, Reason.BLOCKED, Reason.HELD})


def find_changes(ledger: Ledger | None, spec: RunSpec, plan: Plan) -> Changes:
    """The changes between a refresh's plan and what the catalog has; without a ledger it has nothing."""
    assert spec.retire_limit is not None, "only a refresh changes its catalog"
    scope = spec.scope
    own = scope.environment, scope.catalog
    current = {row.sku: row for row in ledger.catalogs.rows(*own)} if ledger is not None else {}
    is_any_undecided = plan.counts({Reason.UNDECIDED}).total()
    kept = ledger.catalogs.source_rows(*own) if ledger is not None and is_any_undecided else {}
    return detect(current, requested_rows(plan, kept), spec.retire_limit, ceiling=spec.retire)


def requested_rows(plan: Plan, kept: Mapping[str, SourceRow]) -> list[RequestedRow]:
    """`kept`: what the catalog keeps of its source so far, where rows wait for a choice between takes."""
    return [_requested(row, plan, kept.get(sku_key(row.known_sku))) for row in plan.rows]


def withheld_reason(record: RunRecord) -> str | None:
    """Why rows that the source has no longer were not retired, and how to retire them."""
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


def _requested(row: PlannedRow, plan: Plan, kept: SourceRow | None) -> RequestedRow:
    entry, product = row.entry, row.product
    if entry.row is None or product is None:
        return RequestedRow(row.known_sku)
    reason, content = plan.items[product].reason, Content.of(entry.row)
    kind = ChangeKind.FAILED_BEFORE if reason in _NOT_MADE else None
    if reason is Reason.UNDECIDED and kept is not None and _asks_for(kept, content):
        kind = ChangeKind.UNCHANGED
    return RequestedRow(entry.row.sku, content, product, kind)


def _asks_for(kept: SourceRow, content: Content) -> bool:
    """Whether the source asked for this before, whatever take it is to be."""
    before = kept.content
    return (
        not kept.is_gone and before is not None and replace(before, take=None) == replace(content, take=None)
    )


def change_lines(changes: Changes, most: int) -> Iterator[str]:
    """A line for each noteworthy change, at most so many, with its details."""
    found = [change for change in changes if change.kind is not ChangeKind.UNCHANGED]
    for change in found[:most]:
        fields = f"  ({', '.join(change.fields)})" if change.fields else ""
        replaces = f"  replaces {change.before.product_id}" if change.fields and change.before else ""
        kind = change.verdict or change.kind
        yield f"  {readable(kind.value):14} {change.sku}{fields}{replaces}"
        yield from (f"  {'':14} {field}: {text}" for field, text in change.old_and_new().items() if text)
    yield from more(len(found), most)


def counts_line(counts: Mapping[str, int]) -> str:
    """`2 added, 1 changed, 96 unchanged, 0 retired, 0 withheld, 1 failed before`."""
    always = ("added", "changed", "unchanged", "retired", "withheld")
    return ", ".join(
        f"{counts.get(kind, 0):,} {readable(kind)}"
        for kind in (*always, "failed_before", "refused")
        if counts.get(kind) or kind in always
    )
