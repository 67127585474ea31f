"""The products of the rows that a person picked, by the ledger and not by what a file says."""

from __future__ import annotations

import shlex
from pathlib import Path

from patternmill.catalog.changes import CurrentRow
from patternmill.catalog.rows import tidy
from patternmill.errors import InputRefused
from patternmill.identifiers import RunId
from patternmill.ledger.decisions import last_decisions
from patternmill.ledger.ledger import Ledger
from patternmill.ledger.records import PickedLine, RunRecord
from patternmill.looking.decision_files import decided_run, read_decisions
from patternmill.looking.pictures import Pictures
from patternmill.looking.takes import takes_made
from patternmill.results.picks import Pick, Picks, picks_refused, read_picks, repeated
from patternmill.results.row_filter import RowFilter, catalog_rows_meant
from patternmill.runs.request import OrderRequest
from patternmill.states import Decided
from patternmill.text import moment, plain, shown

#: Of the filter, besides what names rows one by one.
_FIELDS = ("status", "code", "category", "changed_since")


def named_picks(request: OrderRequest) -> tuple[RunId | None, Picks | None]:
    """The run that a file of decisions is on, or the rows that are named otherwise; neither: what else is asked for.

    Raises InputRefused when the file as a whole cannot be read. Where nothing is named, decisions count.
    """
    if request.sku and request.picks is not None:
        raise InputRefused(
            "Rows are named one by one and in a file of picks.",
            code="picked_twice",
            remedy="Use either --sku or --picks.",
        )
    if request.picks is not None:
        run_id = decided_run(request.picks)
        return run_id, None if run_id is not None else read_picks(request.picks, request.quantity)
    if not request.sku:
        return None, None
    named = tuple(Pick(tidy(sku), request.quantity, f"--sku {plain(sku)}") for sku in request.sku)
    return None, Picks(named, tuple(repeated(named)))


def decided_picks(ledger: Ledger, record: RunRecord, request: OrderRequest, home: Path) -> Picks:
    """The rows whose pattern was picked: in a file of decisions or, where there is none, in the ledger.

    Raises InputRefused when nothing is picked, or the file cannot be used.
    """
    if request.picks is not None:
        where = plain(request.picks.name)
        found = read_decisions(ledger, record, request.picks, Pictures(home)).decided(Decided.PICK)
    else:
        where = f"the decisions on {record.catalog}"
        last = last_decisions(ledger, record.environment, record.catalog)
        takes = takes_made(ledger, record.environment, record.catalog)
        picked = {take.pattern_id for item, take in takes.items() if item in last and last[item].is_pick}
        now = ledger.catalogs.rows(record.environment, record.catalog)
        found = tuple(row.sku for row in now if row.pattern_id in picked and row.retired_at is None)
    if not found:
        raise _nothing_picked(f"Nothing is picked in {where}.")
    return Picks(tuple(Pick(sku, request.quantity, f"{where}, {plain(sku)}") for sku in found))


def fitting_picks(ledger: Ledger, record: RunRecord, request: OrderRequest, named: Picks | None) -> Picks:
    """Of the named rows, or else of all with a product, those that fit, as the catalog is now."""
    wanted = RowFilter(**{name: getattr(request, name) for name in _FIELDS})
    if wanted.is_empty and named is not None:
        return named
    now = catalog_rows_meant(ledger, record.environment, record.catalog, wanted)
    fitting = [row.sku for row in now if row.retired_at is None]
    if named is not None:
        fits = set(fitting)
        found = Picks(tuple(pick for pick in named.picks if pick.sku in fits), named.problems, named.file)
    else:
        found = Picks(tuple(Pick(sku, request.quantity, f"row {plain(sku)}") for sku in fitting))
    if not found.picks and not found.problems:
        raise _nothing_picked("No row with a product fits.")
    return found


def _nothing_picked(message: str) -> InputRefused:
    return InputRefused(
        message,
        code="nothing_picked",
        remedy="Name rows with --sku or --category, or pick with `patternmill look`, or name a file with --picks.",
    )


def picked_lines(ledger: Ledger, environment: str, catalog: str, found: Picks) -> tuple[PickedLine, ...]:
    """The lines to order, by sku: in whatever order a person names them, they are the same ones.

    Raises InputRefused with everything that is wrong.
    """
    current = {row.sku: row for row in ledger.catalogs.rows(environment, catalog)}
    lines: list[PickedLine] = []
    problems = list(found.problems)
    for pick in found.picks:
        now = current.get(pick.sku)
        fault = _fault(pick, now, catalog)
        if fault or now is None:
            problems.append(f"{pick.place}: {fault}")
        else:
            lines.append(PickedLine(pick.sku, now.product_key, now.product_id, pick.quantity, pick.note))
    if problems:
        raise picks_refused(problems, found.file)
    return tuple(sorted(lines, key=lambda line: line.sku))


def _fault(pick: Pick, now: CurrentRow | None, catalog: str) -> str | None:
    if now is None:
        why = f"see `patternmill explain {shlex.quote(plain(pick.sku))}`"
        remedy = "name several as --sku A --sku B" if "," in pick.sku else why
        return f"the catalog {catalog!r} has no product for {shown(pick.sku)}; {remedy}"
    if now.retired_at is not None:
        return f"{shown(pick.sku)} was retired on {moment(now.retired_at)}; leave it out"
    return None
