"""The changes that a source makes to its catalog, and how people are told of them."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Mapping

from patternmill.ledger.catalogs import RequestedContent, counts_of
from patternmill.ledger.ledger import Ledger
from patternmill.ledger.records import RunRecord
from patternmill.planning.changes import Changes, ChangeVerdict, RequestedRow, compare, noteworthy
from patternmill.planning.plan import WITHOUT_PRODUCT, Plan, PlannedRow
from patternmill.planning.rows import Content, sku_key
from patternmill.runs.spec import RunSpec
from patternmill.text import more, plural, readable

_MOST_SKUS = 3
_MOST_CATEGORIES = 2


def find_changes(ledger: Ledger | None, spec: RunSpec, plan: Plan) -> Changes:
    """Return the changes between a plan and what the catalog has; without a ledger it has nothing."""
    scope = spec.scope
    rows = ledger.catalogs.rows(scope.environment, scope.catalog) if ledger is not None else ()
    current = {sku_key(row.sku): row for row in rows}
    is_any_undecided = plan.counts(WITHOUT_PRODUCT).total() and ledger is not None
    before = ledger.catalogs.requested_rows(*vars(scope).values()) if ledger and is_any_undecided else {}
    requested = [_requested(row, plan, before.get(sku_key(row.known_sku))) for row in plan.rows]
    return compare(current, requested, spec.retire_limit, ceiling=spec.retire)


def withheld_reason(record: RunRecord) -> str | None:
    """Return why rows that the source no longer has were not retired, and how to retire them; None: all were."""
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
        return RequestedRow(row.known_sku, has_sku=row.has_sku)
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
        yield f"  {readable(kind.value):14} {change.sku}{fields}{replaces}"
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
    skus = ", ".join(change.sku for change in replaced[:_MOST_SKUS])
    rest = "".join(more(len(replaced), _MOST_SKUS, " "))
    lines = [f"It would replace {plural(len(replaced), 'product')} that the catalog has: {skus}{rest}."]
    if not all(change.always_asks for change in replaced):
        lines.append("More are replaced than --change-at-most allows.")
    if unsafe := " ".join((*_other_ids(replaced), *_unchecked(replaced))):
        lines.append(unsafe)
    return tuple(lines)


def _other_ids(replaced: Changes) -> Iterator[str]:
    pairs = Counter(
        (change.now.category_name, change.before.content.category, change.now.category)
        for change in replaced
        if change.has_other_id and change.now is not None and change.before is not None
    )
    named = [f"{name} ({old} -> {new})" for name, old, new in list(pairs)[:_MOST_CATEGORIES]]
    rest = "".join(more(len(pairs), _MOST_CATEGORIES, " "))
    if named:
        yield f"The category has another ID under the same name: {', '.join(named)}{rest}."


def _unchecked(replaced: Changes) -> Iterator[str]:
    count = sum(change.became_checked for change in replaced)
    if count:
        yield f"Made while the offer could not be read, which is readable now: {plural(count, 'product')}."
