"""The plan of a run: what its sheet wants, what the ledger has, how that is told, and what needs a person's word."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from patternmill import items
from patternmill.changes import Changes, RowLimit, compare
from patternmill.contract import Contract
from patternmill.errors import Refusal
from patternmill.fanout import Maker
from patternmill.items import Item, Row, Stage
from patternmill.ledger import catalogs
from patternmill.ledger.attempts import last_attempts
from patternmill.ledger.decisions import Decision, Verdict, decisions_of
from patternmill.mark import check_marks
from patternmill.plan import Action, Plan, make_plan
from patternmill.records import content_of
from patternmill.request import Agreement, Question
from patternmill.run import Run
from patternmill.settings import STUDIO
from patternmill.text import counted, money, sku_key

if TYPE_CHECKING:
    from patternmill.tables.checks import Checked

_REASONS = {
    Action.MAKE: "to make",
    Action.FOLLOW: "under way, followed",
    Action.RESEND: "refused before, sent again",
    Action.EXISTS: "made before, free",
    Action.HELD: "held: `patternmill settle`",
    Action.FAILED: "failed before: `patternmill retry`",
    Action.REJECTED: "on rejected patterns, not made",
}


def plan_run(run: Run, checked: "Checked") -> Plan:
    """Return what is to be made for the rows, why, and what the sheet changes. Writes nothing."""
    settings, request = run.settings, run.request
    decisions = decisions_of(run.database, settings.service)
    for seen, take in run.moves:
        decisions[seen.pattern] = replace(seen, take=take, verdict=Verdict.NONE)
    rows = list(_rows(run, checked.rows, decisions))
    wanted = set[str]()
    for row in rows:
        wanted.update(map(attrgetter("id"), row.chain))
    prices = dict(zip(Stage, map(settings.price, Stage), strict=True))
    last = last_attempts(run.database, settings.service, wanted)
    plan = make_plan(rows, last, settings.attempts, prices, request.is_of_record)
    if request.is_of_record:
        return plan
    changes = _changes(run, checked, plan, decisions)
    return _within_limits(run, replace(plan, changes=changes))


def _within_limits(run: Run, plan: Plan) -> Plan:
    """Return the plan with as many renamed and retired rows as was agreed to; say what is left as it is."""
    changes, request, gone = plan.changes, run.request, len(plan.changes.gone)
    run.left = []
    if len(changes.renamed) > (request.rename or 0):
        number, skus = len(changes.renamed), ", ".join(list(changes.renamed.values())[:5])
        run.left.append(
            f"{counted(number, 'row')} {'looks' if number == 1 else 'look'} renamed (from {skus}), and would be "
            f"bought again; left as before. --rename {number} buys them."
        )
        left, kept = frozenset(changes.renamed), {sku_key(sku) for sku in changes.renamed.values()}
        plan = replace(plan.without(left), changes=replace(changes, gone=changes.gone - kept))
    else:
        plan = replace(plan, changes=replace(changes, renamed={}))
    if request.verb != "refresh" or not gone:
        return plan
    is_within = RowLimit.parse(run.settings.retire_at_most).allows(gone, changes.total)
    if gone > request.retire if request.retire is not None else not is_within:
        run.left.append(
            f"{counted(gone, 'row')} gone from the sheet left as before. --retire {gone} retires them."
        )
        plan = replace(plan, changes=replace(plan.changes, gone=frozenset()))
    return plan


def _rows(run: Run, cells: Any, decisions: Mapping[str, Decision]) -> Iterator[Row]:
    bases: dict[tuple[str, str], Base] = {}
    choices: dict[tuple[str, str], items.Choice] = {}
    wanted = cells[["sku", "prompt", "category_id", "selections", "extras"]]
    for number, sku, prompt, category, selections, extras in wanted.itertuples(name=None):
        if (prompt, extras) not in bases:
            bases[prompt, extras] = base_of(run.settings.service, prompt, extras, decisions, run.contract)
        if (category, selections) not in choices:
            choices[category, selections] = items.choice_of(category, json.loads(selections))
        base = bases[prompt, extras]
        product = items.product_item(base.item, sku, choices[category, selections])
        yield Row(number, sku, product, base.pattern, base.take, base.decided, base.is_rejected)


class Base(NamedTuple):
    """The item that rows which ask for the same build their products on. `pattern` is the first take of its pattern."""

    pattern: str
    take: int
    item: Item
    decided: bool = False
    is_rejected: bool = False


def base_of(
    environment: str, prompt: str, extras: str, decisions: Mapping[str, Decision], contract: Contract
) -> Base:
    """Return what a row's product is built on. `extras`: what its content has beside, as JSON, or empty.

    Its own take counts first, then the one that is decided. `kept_take` is of results, and counts where nothing is.
    """
    asked: dict[str, str] = json.loads(extras) if extras else {}
    first = contract.pattern(environment, prompt, asked, 1)
    decision = decisions.get(first.id)
    written, kept = asked.get("take"), asked.get("kept_take")
    take = int(written or (decision.take if decision else kept or 1))
    pattern = contract.pattern(environment, prompt, asked, take) if take > 1 else first
    is_about = decision is not None and decision.take == take
    is_rejected = is_about and decision.verdict is Verdict.REJECT  # type: ignore[union-attr]
    return Base(first.id, take, contract.refined(pattern, asked), is_about and not written, is_rejected)


def _changes(run: Run, checked: "Checked", plan: Plan, decisions: Mapping[str, Decision]) -> Changes:
    """Return what the sheet has otherwise than its catalog."""
    environment, database = run.settings.service, run.database
    wanted = dict(zip(map(sku_key, map(attrgetter("sku"), plan.rows)), plan.rows, strict=True))
    known = catalogs.known_rows(database, environment, run.catalog)
    retired_elsewhere = catalogs.retired_skus(database, environment, run.catalog)
    if not (known or retired_elsewhere):
        return Changes(added=frozenset(wanted))
    unsold = map(attrgetter("product"), _rows(run, checked.unsold, decisions))
    return compare(
        known,
        wanted,
        set(map(sku_key, filter(None, checked.problems["sku"]))),
        set(map(items.likeness_of, unsold)),
        retired_elsewhere,
        lambda row: plan.is_bought(row.product),
        lambda row: content_of(checked, row.number),
    )


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
