"""The plan of a run: what its sheet wants, what the ledger has, and how much may change without a person."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from patternmill import items
from patternmill.changes import Changes, RowLimit, compare
from patternmill.contract import Contract
from patternmill.items import Item, Row, Stage
from patternmill.ledger import catalogs
from patternmill.ledger.attempts import last_attempts
from patternmill.ledger.decisions import Decision, Verdict, decisions_of
from patternmill.plan import Plan, make_plan
from patternmill.records import content_of
from patternmill.run import Run
from patternmill.text import counted, sku_key

if TYPE_CHECKING:
    from patternmill.tables.checks import Checked


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
    refused = set(map(sku_key, filter(None, checked.problems["sku"])))
    unsold = map(attrgetter("product"), _rows(run, checked.unsold, decisions))
    return compare(
        catalogs.known_rows(database, environment, run.catalog),
        dict(zip(map(sku_key, map(attrgetter("sku"), plan.rows)), plan.rows, strict=True)),
        refused,
        set(map(items.likeness_of, unsold)),
        catalogs.retired_skus(database, environment, run.catalog),
        lambda row: plan.is_bought(row.product),
        lambda row: content_of(checked, row.number),
    )
