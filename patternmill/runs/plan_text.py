"""A plan as plain lines, for the terminal and for the page of a run that waits for approval."""

from __future__ import annotations

from collections.abc import Iterator

from patternmill.catalog.check_report import report_lines
from patternmill.planning.plan import Plan, Reason
from patternmill.runs.approval import LEAST_DIGEST
from patternmill.runs.preview import Preview
from patternmill.states import Stage
from patternmill.text import counted, goods, more, plural

_MOST_ITEMS = 60
_UNTOUCHED = frozenset({Reason.DONE, Reason.LEFT_OUT})


def plan_lines(preview: Preview) -> Iterator[str]:
    """Every item with its reason, up to a screenful, and what is to be looked at; the plan's summary comes last."""
    plan, cost, checked = preview.plan, preview.proposal.cost, preview.checked
    scope = plan.scope
    yield f"Plan for catalog {scope.catalog} ({scope.environment}): {plural(len(plan.rows), 'row')}"
    if preview.named:
        yield f"Taken over from results of another ledger: {plural(len(preview.named), 'item')}."
    yield from _item_lines(plan)
    for sku, fields in preview.changed:
        yield f"  {sku} differs from what the catalog has:"
        yield from (f"    {field}" for field in fields)
    yield ""
    if checked.refused_count:
        yield from report_lines(checked)
        yield ""
    notes = () if checked.refused_count else checked.notes  # of the report
    yield from (f"Note: {note}" for note in filter(None, (plan.sent_once, *notes)))
    if preview.duplicates is not None:
        yield f"Note: {preview.duplicates.message}"
    for stage in plan.stages:
        yield f"{f'{stage}s:':10} {counted({one.value: n for one, n in plan.reasons_of(stage).items()})}"
    if plan.refused():
        yield f"refused:   {plural(plan.refused(), 'row')}"
    yield f"To buy: {goods(plan.purchases())}."
    if undecided := plan.counts({Reason.UNDECIDED}):
        later = f" for {preview.later}" if preview.later.worst else ""
        yield f"Once a person has decided: {goods(undecided)}{later}."
    if preview.limited:
        yield f"Limit: {preview.limited[1]}"
    if cost is not None and cost.worst:
        yield f"Cost: {cost}."
    yield f"Digest of this plan: {preview.proposal.digest[:LEAST_DIGEST]}"


def _item_lines(plan: Plan) -> Iterator[str]:
    items = [
        planned
        for stage in plan.stages
        for planned in plan.of_stage(stage).values()
        if planned.rows or planned.reason not in _UNTOUCHED
    ]
    for planned in items[:_MOST_ITEMS]:
        # Of what several rows may share.
        rows = "" if planned.item.stage is Stage.PRODUCT else f"  (rows: {planned.rows})"
        yield f"  {planned.reason.value:14} {planned.item.describe()}{rows}"
    yield from more(len(items), _MOST_ITEMS)
