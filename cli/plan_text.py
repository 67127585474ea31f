"""What the command line says of a plan and of a run's end, as plain lines."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from patternmill.catalog.check_report import report_lines
from patternmill.catalog.row_checks import CheckedCatalog
from patternmill.planning.plan import Plan, Reason
from patternmill.results.summary import joined
from patternmill.runs.preview import Preview
from patternmill.runs.refresh_changes import counts_line, counts_of
from patternmill.runs.run import Run
from patternmill.states import RowStatus

_MOST_ITEMS = 60
_MOST_CAUSES = 10
_UNTOUCHED = frozenset({Reason.DONE, Reason.LEFT_OUT})


def plan_lines(preview: Preview, checked: CheckedCatalog, digest: str) -> Iterator[str]:
    """The plan: counts by reason, then every item with its reason, as far as a screen bears it."""
    plan, cost = preview.plan, preview.cost
    patterns, products = plan.purchases()
    yield f"Plan for catalog {plan.scope.catalog} ({plan.scope.environment}): {len(plan.rows)} rows"
    yield f"  patterns: {_counted({r.value: n for r, n in plan.pattern_counts().items()})}"
    yield f"  products: {_counted({r.value: n for r, n in plan.product_counts().items()})}"
    if plan.refused():
        yield f"  refused:  {plan.refused()} rows"
    yield f"To buy: {patterns} patterns and {products} products."
    if preview.duplicates is not None:
        yield f"Note: {preview.duplicates.sentence()}"
    if preview.limited:
        yield f"Limit: {preview.limited}"
    if cost.worst:
        yield f"Cost: {cost.expected} expected, {cost.worst} at worst (minor units)."
    if preview.time:
        yield f"Time: about {timedelta(seconds=round(preview.time.total_seconds()))}."
    yield from (f"Note: {note}" for note in checked.notes)
    yield ""
    yield from _item_lines(plan)
    for sku, fields in preview.changed:
        yield f"  {sku} was asked for before with other content:"
        yield from (f"    {field}" for field in fields)
    if checked.refused_count:
        yield ""
        yield from report_lines(checked)
    yield ""
    yield f"Digest of this plan: {digest}"


def _item_lines(plan: Plan) -> Iterator[str]:
    lines = [
        f"  {planned.reason.value:14} {planned.item.describe()}  (rows: {planned.rows})"
        for planned in plan.patterns.values()
        if planned.rows or planned.reason not in _UNTOUCHED
    ]
    lines += [
        f"  {planned.reason.value:14} {planned.item.describe()}"
        for planned in plan.products.values()
        if planned.reason not in _UNTOUCHED
    ]
    yield from lines[:_MOST_ITEMS]
    if len(lines) > _MOST_ITEMS:
        yield f"  … and {len(lines) - _MOST_ITEMS} more"


def ending_lines(run: Run | None, message: str, address: str | None, lasting: bool) -> Iterator[str]:
    """The last words of an import: how it ended, what was made, where the files are, where to look."""
    if run is None or run.ending is None or run.results is None:
        yield message or "The run ended before it was complete; run the same command again."
        return
    ending, results = run.ending, run.results
    yield f"{ending.outcome}: {_counted({s.value: ending.rows.get(s, 0) for s in RowStatus})}"
    if ending.record.reason:
        yield f"  {ending.record.reason}"
    progress = run.progress
    record = ending.record
    took = (record.ended_at - record.started_at).total_seconds() if record.ended_at else 0.0
    changes = counts_of(record)
    if changes is not None:
        yield f"The source: {counts_line(changes)}"
    yield f"Made in this run: {progress.patterns} patterns and {progress.products} products in {took:.0f} s"
    for cause in results.causes[:_MOST_CAUSES]:
        yield f"  {cause.count} × {cause.code}: {joined(cause.message, cause.remedy)}"
    out = results.out
    yield f"Results:  {out / 'results.csv'}"
    if results.causes:
        yield f"Failures: {out / 'failures.csv'}"
    if changes is not None:
        yield f"Changes:  {out / 'changes.csv'}"
    yield f"Gallery:  {out / 'gallery.html'}"
    yield f"Run:      {ending.record.run_id}"
    if address is not None:
        yield f"In the Prefect UI: {address}" + ("" if lasting else "  (open it with `patternmill ui`)")


def _counted(counts: dict[str, int]) -> str:
    parts = [f"{count} {name.replace('_', ' ')}" for name, count in counts.items() if count]
    return ", ".join(parts) or "none"
