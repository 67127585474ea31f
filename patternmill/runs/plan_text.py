"""A plan as plain lines, for the terminal and for the page of a run that waits for approval."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from patternmill.errors import ConfigurationError
from patternmill.planning.changes import change_counts
from patternmill.planning.plan import WITHOUT_PRODUCT, Plan, Reason
from patternmill.runs.approval import LEAST_DIGEST
from patternmill.runs.preview import Preview, change_lines, counts_line, make_preview
from patternmill.runs.request import RemakeRequest
from patternmill.runs.spec import run_spec
from patternmill.settings import Settings
from patternmill.states import Stage
from patternmill.text import counted, goods, more, plural, worth_naming

_MOST_ITEMS = 60
_MOST_CHANGED = 20
_UNTOUCHED = frozenset({Reason.DONE, Reason.LEFT_OUT})


@dataclass(frozen=True)
class ShownPlan:
    """A plan as the page shows it: what it makes and for how much, its lines, and its digest."""

    sum: str
    lines: tuple[str, ...]
    digest: str


def plan_lines(planned: Preview, *, is_whole: bool = False) -> Iterator[str]:
    """Yield every item with its reason, up to a screenful, then what deserves a look, then the plan's summary.

    `is_whole`: the source is the whole catalog, so that its changes come first.
    """
    plan, checked = planned.plan, planned.checked
    scope = plan.scope
    yield f"Plan for catalog {scope.catalog} ({scope.environment}): {plural(len(plan.rows), 'row')}"
    if is_whole:
        yield f"The source: {counts_line(change_counts(planned.changes))}"
        yield from change_lines(planned.changes, _MOST_ITEMS)
    if planned.named:
        yield f"Taken over from results of another ledger: {plural(len(planned.named), 'item')}."
    yield from _item_lines(plan)
    yield from _replaced_lines(planned)
    yield ""
    if checked.refused_count:
        # Imported here because it loads pandas, which only refused rows need.
        from patternmill.tables.report import report_lines

        yield from report_lines(checked)
        yield ""
    notes = () if checked.refused_count else checked.notes  # the report has them
    yield from (f"Note: {note}" for note in filter(None, (plan.sent_once, *notes)))
    if planned.duplicates is not None:
        yield f"Note: {planned.duplicates.message}"
    for stage in plan.stages:
        yield f"{f'{stage}s:':10} {counted({reason.value: n for reason, n in plan.reasons_of(stage).items()})}"
    if plan.refused():
        yield f"refused:   {plural(plan.refused(), 'row')}"
    yield from sum_lines(planned)
    yield f"Digest of this plan: {planned.proposal.digest[:LEAST_DIGEST]}"


def sum_lines(planned: Preview) -> Iterator[str]:
    """Yield what the plan buys, what follows once a person has decided, how far limits reach, and the cost."""
    plan, cost = planned.plan, planned.proposal.cost
    yield f"To buy: {goods(plan.purchases())}."
    if undecided := plan.counts(WITHOUT_PRODUCT):
        later = f" for {planned.later}" if planned.later.worst else ""
        yield f"Once a person has decided: {goods(undecided)}{later}."
    if planned.pause is not None:
        yield f"Nothing of it now: {planned.pause.message}"
    if planned.limited:
        yield f"Limit: {planned.limited[1]}"
    if cost is not None and cost.worst:
        yield f"Cost: {cost}."


def _replaced_lines(planned: Preview) -> Iterator[str]:
    """Yield the rows whose product would be replaced, each with what is different."""
    replaced = [change for change in planned.changes if change.replaces]
    for change in replaced[:_MOST_CHANGED]:
        if change.renamed_from:
            yield f"  {change.sku} has the content of {change.renamed_from}, which is gone: renamed?"
            continue
        yield f"  {change.sku} differs from what the catalog has:"
        yield from (f"    {field}: {text}" for field, text in change.old_and_new().items())
    yield from more(len(replaced), _MOST_CHANGED)


def _item_lines(plan: Plan) -> Iterator[str]:
    items = [
        planned
        for stage in plan.stages
        for planned in plan.of_stage(stage).values()
        if planned.rows or planned.reason not in _UNTOUCHED
    ]
    for planned in items[:_MOST_ITEMS]:
        # Several rows may share any item but a product.
        rows = "" if planned.item.stage is Stage.PRODUCT else f"  (rows: {planned.rows})"
        yield f"  {planned.reason.value:14} {planned.item.describe()}{rows}"
    yield from more(len(items), _MOST_ITEMS)


def plan_remake(settings: Settings, catalog: str, environment: str) -> ShownPlan | None:
    """Return what `patternmill remake` would do now, for the page, by the command's own plan; None if nothing.

    `settings` name the service, which is not asked. Writes nothing. Raises ConfigurationError.
    """
    try:
        spec = run_spec(RemakeRequest(catalog=catalog, environment=environment))
    except ConfigurationError as refused:
        if refused.code == "nothing_to_remake":
            return None
        raise
    remake = spec.remake
    assert remake is not None, "a remake has its rows from the ledger"
    if spec.settings.service is None and settings.service is not None:
        spec = replace(spec, settings=spec.settings.at(settings.service))
    planned = make_preview(spec, remake.checked)
    proposal, bought = planned.proposal, planned.plan.purchases()
    named = [plural(count, stage) for stage, count in worth_naming(bought) if count]
    price = f" for {proposal.cost}" if proposal.cost is not None and proposal.cost.worst else ""
    what = f"{' and '.join(named)}{price}" if named else "nothing new, at no cost"
    return ShownPlan(what, (*remake.lines(), *sum_lines(planned)), proposal.digest)
