"""Finds out what a person asked to order: which rows of which catalog."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

from patternmill.errors import InputRefused, SeveralCatalogs
from patternmill.ledger.ledger import Ledger, open_ledger
from patternmill.ledger.records import RunRecord
from patternmill.ledger.reports.run_lookup import LATEST, find_run
from patternmill.orders.order_plan import Order, OrderableRows, plan_lines
from patternmill.orders.ordering import Ordering
from patternmill.planning.items import Scope
from patternmill.planning.rows import tidy
from patternmill.runs.decision_files import decided_run, read_decisions
from patternmill.runs.origin import require_environment
from patternmill.runs.plan_text import ShownPlan
from patternmill.runs.request import OrderRequest
from patternmill.settings import Settings, in_environment, read_settings
from patternmill.states import Decided
from patternmill.tables.picks import Pick, Picks, read_picks, repeated
from patternmill.tables.row_filter import RowFilter, catalog_rows_meant
from patternmill.text import plain

#: The fields of the filter, but for those that name single rows.
_FIELDS = ("status", "code", "category", "changed_since")


def read_order(request: OrderRequest) -> Order:
    """Return the order that a request asks for, given its file of picks, the catalog and people's decisions.

    Raises ConfigurationError, and InputRefused if a file cannot be read or nothing is picked.
    """
    settings, file = read_settings(), request.picks
    run_id = decided_run(file) if file is not None and not request.sku else None
    named = named_picks(request) if run_id is None else None
    with open_ledger(in_environment(settings, request.environment), must_exist=True) as ledger:
        if file is not None and run_id is not None:
            record = find_run(ledger, run_id, environment=request.environment, catalog=request.catalog)
            require_environment(file.name, record, request.environment, settings)
            catalog = Scope(record.environment, record.catalog)
            picks = _decided_in_file(ledger, record, file, request.quantity)
        else:
            catalog = _catalog(ledger, request, named)
            picks = _picked_rows(ledger, catalog, request, named)
    if not picks.picks and not picks.problems:
        where = plain(file.name) if file is not None else f"the catalog {catalog.catalog}, or no row fits"
        raise InputRefused(
            f"Nothing is picked in {where}. {picks.note}".strip(),
            code="nothing_picked",
            remedy="Name rows with --sku or --category, pick with `patternmill look`, or name a file with --picks.",
        )
    return Order(catalog, picks, request.order, request.lines)


def named_picks(request: OrderRequest) -> Picks | None:
    """Return the rows that --sku or a sheet of picks names; None if the request names none.

    Raises InputRefused if the sheet as a whole cannot be read.
    """
    if request.sku and request.picks is not None:
        raise InputRefused(
            "Rows are named one by one and in a file of picks.",
            code="picked_twice",
            remedy="Use either --sku or --picks.",
        )
    if request.picks is not None:
        return read_picks(request.picks, request.quantity)
    named = tuple(Pick(tidy(sku), request.quantity, f"--sku {plain(sku)}") for sku in request.sku)
    return Picks(named, tuple(repeated(named))) if named else None


def _catalog(ledger: Ledger, request: OrderRequest, named: Picks | None) -> Scope:
    """Return the catalog that is named, or the one that has the rows, or the only one.

    Raises ConfigurationError, which lists them, if there are several.
    """
    skus = named.skus if named is not None and request.catalog is None else ()
    having = [ledger.catalogs.having(sku, request.environment) for sku in skus]
    if having and (scopes := set.intersection(*having) or set.union(*having)):
        if len(scopes) > 1:
            raise SeveralCatalogs((name, environment) for environment, name in scopes)
        return Scope(*scopes.pop())
    record = find_run(ledger, LATEST, environment=request.environment, catalog=request.catalog)
    return Scope(record.environment, record.catalog)


def _decided_in_file(ledger: Ledger, record: RunRecord, path: Path, quantity: int) -> Picks:
    """Return the rows that a file of decisions picks, each with the take that it picks."""
    file = read_decisions(ledger, record, path)
    picks = {
        sku: Pick(sku, quantity, f"{plain(path.name)}, {plain(sku)}", take=decision.item)
        for decision in sorted(file.decisions, key=lambda decision: decision.at)
        if decision.verdict is Decided.PICK
        for sku in file.skus[decision.item]
    }
    return Picks(tuple(picks.values()), note=file.note)


def _picked_rows(ledger: Ledger, catalog: Scope, request: OrderRequest, named: Picks | None) -> Picks:
    """Return the named rows that match the filter; without names all that match, or all whose pattern is picked."""
    wanted = RowFilter(**{name: getattr(request, name) for name in _FIELDS})
    if named is not None and wanted.is_empty:
        return named
    rows = catalog_rows_meant(ledger.catalogs.rows(catalog.environment, catalog.catalog), wanted)
    fitting = dict.fromkeys(row.sku for row in rows if row.retired_at is None)
    if named is not None:
        return replace(named, picks=tuple(pick for pick in named.picks if pick.sku in fitting))
    skus = filter(OrderableRows(ledger, catalog).is_picked, fitting) if wanted.is_empty else fitting
    picks = tuple(Pick(sku, request.quantity, f"row {plain(sku)}") for sku in skus)
    return Picks(picks, are_named=False)


def plan_picked(settings: Settings, catalog: str, environment: str) -> ShownPlan | None:
    """Return what `patternmill order` would do for everything picked in a catalog; None if nothing.

    Asks the service what was paid. Raises PatternmillError.
    """

    async def planned(order: Order) -> Order:
        async with Ordering(settings) as work:
            return await work.plan(order)

    try:
        order = asyncio.run(planned(read_order(OrderRequest(catalog=catalog, environment=environment))))
    except InputRefused as refused:
        if refused.code in ("nothing_picked", "ordered_already"):
            return None
        raise
    proposal = order.proposal
    what = str(proposal) if proposal.to_buy else "what is open already"
    return ShownPlan(what, tuple(plan_lines(order)), proposal.digest)
