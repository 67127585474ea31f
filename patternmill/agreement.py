"""What a plan would do, shown before it does anything, and what of it needs a person's word."""

from collections.abc import Iterator

from patternmill.changes import RowLimit
from patternmill.errors import Refusal
from patternmill.fanout import Maker
from patternmill.items import Stage
from patternmill.mark import check_marks
from patternmill.money import money
from patternmill.plan import Action, Plan
from patternmill.request import Agreement, Question
from patternmill.run import Run
from patternmill.settings import STUDIO
from patternmill.text import counted

_REASONS = {
    Action.MAKE: "to make",
    Action.FOLLOW: "under way, followed",
    Action.RESEND: "refused before, sent again",
    Action.EXISTS: "made before, free",
    Action.HELD: "held: `patternmill settle`",
    Action.FAILED: "failed before: `patternmill retry`",
    Action.REJECTED: "on rejected patterns, not made",
}


async def agree(run: Run, plan: Plan, maker: Maker) -> Agreement | None:
    """Return what a person has agreed to just now, or None where nothing needs asking. Raises Refusal.

    What is beyond the limits of retired rows or renames is left as it is, and the run goes on with the rest.
    """
    check_marks(run.shelves, run.database, run.settings.service)
    budget = run.request.budget if run.settings.day_budget is None else run.settings.day_budget
    is_priced = any(plan.prices.values()) or run.settings.service == STUDIO
    if budget is not None and plan.purchases and not is_priced:
        message = "A budget is given and no price, so that nothing would count towards it."
        raise Refusal("no_price", message, "Set PATTERNMILL_PRICE_PATTERN and PATTERNMILL_PRICE_PRODUCT.")
    if needs := list(open_questions(run, plan)):
        text = "\n".join([*plan_lines(run, plan), *(message for _, message, _ in needs)])
        proposed = Agreement(max_items=plan.purchases, change=len(plan.changes.replaced))
        asked = Question(run.catalog, run.settings.service, text, plan.digest, proposed)
        agreed = await maker.ask(asked)
        if agreed is None:
            code, message, option = needs[0]
            raise Refusal(code, message, f"If that is meant: {option}.")
        return agreed
    if run.left and not plan.work:
        raise Refusal("left", " ".join(run.left))
    return None


def open_questions(run: Run, plan: Plan) -> Iterator[tuple[str, str, str]]:
    """Yield what of a plan was not agreed to: a code, a sentence, and the options that would allow it."""
    request, changes = run.request, plan.changes
    is_capped = request.max_items is not None or request.budget is not None
    if plan.purchases > run.settings.confirm_above and not is_capped:
        cost = f" for {money(plan.cost, run.settings.currency)}" if plan.cost else ""
        message = f"It would make {counted(plan.purchases, 'item')}{cost}, more than {run.settings.confirm_above:,}."
        yield "unconfirmed", message, f"--max-items {plan.purchases}"
    replaced = len(changes.replaced)
    most = RowLimit.parse(run.settings.change_at_most) if replaced else None
    if most and (
        replaced > request.change if request.change is not None else not most.allows(replaced, changes.total)
    ):
        message = f"It would replace the products of {replaced:,} of {changes.total:,} rows."
        yield "many_changes", message, f"--change {replaced}"
    elif changes.recategorized and request.change is None:
        message = f"{counted(len(changes.recategorized), 'row')} would change to another category ID of the same name."
        yield "recategorized", message, f"--change {replaced}"


def plan_lines(run: Run, plan: Plan) -> Iterator[str]:
    """Yield what a plan would do, why, and what that costs."""
    for stage in Stage:
        counts = ""
        for action, reason in _REASONS.items():
            if number := plan.counts[action, stage]:
                counts += f", {number:,} {reason}"
        if counts:
            yield f"{stage}s: {counts[2:]}"
    changes = plan.changes
    if changes.total:
        absent = "gone" if run.request.verb == "refresh" else "not in this sheet"
        yield (
            f"catalog {run.catalog}: {len(changes.added):,} added, {len(changes.changed):,} changed, "
            f"{len(changes.gone):,} {absent}"
        )
    yield from run.left
    if plan.cost:
        yield f"cost: {money(plan.cost, run.settings.currency)}"
