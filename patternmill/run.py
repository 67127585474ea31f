"""The steps of a run, in the order in which they are taken."""

import asyncio
import contextlib
import difflib
import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from patternmill.changes import NO_SKU
from patternmill.contract import Contract, read_contract
from patternmill.engine import Engine
from patternmill.errors import Halted, Refusal
from patternmill.fanout import Fanout, Maker
from patternmill.halt import Admission, Halt, stops
from patternmill.items import Stage
from patternmill.ledger import catalogs, decisions
from patternmill.ledger.connections import Connection
from patternmill.ledger.database import Database
from patternmill.ledger.decisions import Decision, decisions_of
from patternmill.ledger.leases import Lease
from patternmill.ledger.purchases import Purchases, check_environment
from patternmill.logs import set_up
from patternmill.mark import write_marks
from patternmill.offer import read_offer
from patternmill.plan import Plan, affordable
from patternmill.records import Stored, records, wanted_by
from patternmill.remake import rows_to_remake
from patternmill.request import Request
from patternmill.service.client import Client
from patternmill.service.pacing import Polling
from patternmill.service.sources import Source, find_source, name_of, read_source
from patternmill.settings import STUDIO, Settings, read_settings
from patternmill.states import NEEDS_A_PERSON, Outcome, Status
from patternmill.text import counted, normal, parse_amount
from patternmill.vocabulary import category_synonyms

if TYPE_CHECKING:
    from patternmill.tables.checks import Checked
    from patternmill.tables.columns import Columns
    from patternmill.tables.sheet import Sheet

#: The most rows that one transaction writes.
_ROWS_AT_ONCE = 5_000


@dataclass
class Run:
    """What the steps of one run share."""

    request: Request
    settings: Settings
    database: Database
    client: Client
    halt: Halt = field(default_factory=Halt)
    catalog: str = ""
    #: Whether the sheet is results of ours, and so perhaps a part of its catalog.
    is_part: bool = False
    #: What the sheet's mapping says of columns and words, as JSON.
    mapping: str = "{}"
    lease: Lease | None = None
    engine: Engine | None = None
    #: What the service answered about its offer, to be kept once the run begins.
    answers: Mapping[str, Any] = field(default_factory=dict)
    contract: Contract = field(default_factory=Contract)
    #: The keys of the sheet's rows in the catalog, in the sheet's order; of a retry or remake, what they wanted before.
    keys: list[str] = field(default_factory=list)
    wanted: list[str] = field(default_factory=list)
    #: The takes to which a remake moves patterns, by what was seen to be decided.
    moves: list[tuple[Decision, int]] = field(default_factory=list)
    #: What of the plan is left as it is, in words.
    left: list[str] = field(default_factory=list)
    #: How many items have been made or followed to their end, of how many.
    made: int = 0
    work: int = 0

    @property
    def source(self) -> Source:
        """Return where the sheet is. Raises Refusal."""
        if not self.request.file:
            raise Refusal("no_file", "No sheet is named.", "Name a CSV file or a workbook.")
        return find_source(self.request.file, self.settings.sources)

    @property
    def shelf(self) -> Path:
        """Return the folder of what is about the catalog, not about one run."""
        return self.request.out or Path("results") / self.catalog

    @property
    def shelves(self) -> list[Path]:
        """Return the folders whose marks count: that of the results, and that of the catalog."""
        usual = Path("results") / self.catalog
        return [self.shelf, *([usual] if usual != self.shelf and usual.is_dir() else [])]

    @property
    def out(self) -> Path:
        """Return the folder of the results."""
        return self.request.out or self.shelf / (self.lease.driver if self.lease else "latest")


@contextlib.asynccontextmanager
async def open_run(request: Request) -> AsyncIterator[Run]:
    """Open the ledger and the connection to the service for one run."""
    settings = read_settings()
    set_up(settings.log_format)
    check_name(request.environment, settings)
    database = Database(settings.ledger_address)
    try:
        check_environment(database, settings)
        async with Client(settings) as client:
            run = Run(request, settings, database, client, contract=read_contract(settings.service_file))
            if stops.is_stopped:
                run.halt.stop()
            yield run
    finally:
        await database.close()


def check_name(asked: str | None, settings: Settings) -> None:
    """Raise Refusal for an environment that these settings are not about."""
    if asked in (None, settings.service):
        return
    near = difflib.get_close_matches(str(asked), [settings.service, STUDIO], n=1)
    message = f"The environment {asked} is not configured: the settings are those of {settings.service}."
    remedy = f"Did you mean {near[0]}?" if near else "Set PATTERNMILL_ENVIRONMENT, its address and its key."
    raise Refusal("unknown_environment", message, remedy)


async def check_sheet(run: Run) -> "Checked":
    """Read the sheet and what is offered, and check every row; for a retry or remake, take the rows on record."""
    if run.request.is_of_record:
        return _kept_rows(run)
    from patternmill.tables.checks import category_words, check_rows
    from patternmill.tables.columns import read_columns, run_column
    from patternmill.tables.extras import Extras
    from patternmill.tables.mapping import read_mapping
    from patternmill.tables.sheet import read_sheet

    mapping = read_mapping(run.source.path, run.request.mapping)
    sheet = read_sheet(await read_source(run.source), run.source.name, mapping)
    of_run = run_column(sheet.header, mapping)
    run.is_part = of_run is not None
    run.catalog = _named(run.request.catalog) or _catalog_of(run, sheet.rows, of_run)
    if run.is_part:
        sheets = catalogs.sheets(run.database, run.settings.service, run.catalog)
        known = list(map(attrgetter("mapping"), sheets))
        remembered = mapping.over(known, ())
        if any(remembered.reading.encoding in doubt.meanings for doubt in sheet.doubts):
            sheet = read_sheet(await read_source(run.source), run.source.name, remembered)
        mapping = mapping.over(known, sheet.header)
    run.mapping = mapping.model_dump_json(
        include={"columns": True, "values": True, "reading": {"encoding"}}, exclude_none=True
    )
    columns = read_columns(sheet, mapping, run.contract)
    sheet = _as_known(run, sheet, columns)
    recall = partial(catalogs.recall_offer, run.database, run.settings.service)
    words = category_words(sheet, columns, mapping.words)
    offer = await read_offer(run.client.read, recall, words, category_synonyms)
    run.answers = offer.answers
    extras = Extras(run.contract, run.source.path.parent)
    return check_rows(sheet, columns, offer, mapping.words, extras)


def _as_known(run: Run, sheet: "Sheet", columns: "Columns") -> "Sheet":
    """Return the sheet with what its catalog knows better of some rows."""
    from patternmill.tables.kept import with_corrections, with_whole_skus

    place = (run.database, run.settings.service, run.catalog)
    if run.is_part:
        stored = catalogs.stored_rows(*place).values()
        return with_whole_skus(sheet, columns, map(attrgetter("sku"), stored))
    return with_corrections(sheet, columns, catalogs.corrections(*place))


def _kept_rows(run: Run) -> "Checked":
    """Return rows of the catalog as they are on record: those that did not end well, or whose patterns are remade."""
    from patternmill.tables.kept import kept_sheet

    run.catalog = _named(run.request.catalog)
    rows = catalogs.catalog_rows(run.database, run.settings.service, run.catalog)
    if not rows:
        message = f"There is no catalog {run.catalog} in {run.settings.service}."
        raise Refusal("no_catalog", message, "`patternmill status` lists the catalogs.")
    living = [row for row in rows if row.retired is None]
    if run.request.verb == "remake":
        decided = decisions_of(run.database, run.settings.service)
        chosen, run.moves = rows_to_remake(living, decided, run.request)
    else:
        chosen = [row for row in living if row.status != Status.SUCCEEDED and run.request.chooses(row)]
    if not chosen:
        message = f"{run.catalog} has no row to {run.request.verb}."
        raise Halted(Outcome.COMPLETED, f"nothing_to_{run.request.verb}", message)
    run.keys, run.wanted = [row.key for row in chosen], [row.wants for row in chosen]
    return kept_sheet(chosen)


def _named(catalog: str | None) -> str:
    """Return the catalog that is asked for; empty: none. Raises Refusal for a name that no folder can have."""
    if catalog and not re.fullmatch(r"\w[\w.-]{0,99}", catalog):
        message = f"{catalog!r} cannot be the name of a catalog."
        raise Refusal("wrong_catalog", message, "Use letters, digits, `-`, `_` and `.`.")
    return catalog or ""


def _catalog_of(run: Run, rows: Any, column: int | None) -> str:
    """Return the catalog of a results file, by its runs, or the one that is named as the file is."""
    if named := set(rows[column].dropna()) - {""} if column is not None else set():
        query = "SELECT DISTINCT catalog FROM runs WHERE id IN (:names...) AND environment = :environment"
        found = run.database.read(query, sorted(named), environment=run.settings.service)
        if len(found) != 1:
            message = f"The column `run` of {run.source.name} names no catalog of {run.settings.service}."
            raise Refusal("unknown_run", message, "Say it with --catalog.")
        return str(found[0].catalog)
    stem = normal(Path(run.source.path.name.removesuffix(".gz")).stem)
    return re.sub(r"[^\w]+", "-", stem.casefold()).strip("-") or "catalog"


async def begin(run: Run, checked: "Checked", plan: Plan) -> None:
    """Take the lease of the catalog and put the run and its rows on record. From here on, results are written."""
    from patternmill.tables.kept import header_of

    settings, request, environment = run.settings, run.request, run.settings.service
    write_marks(run.shelves, run.database, environment)
    lease = Lease(run.database, environment, run.catalog)
    rows: list[dict[str, Any]] = []
    replaced, kept_takes, moved = list[str](), dict[str, int](), list[dict[str, Any]]()
    if request.is_of_record:
        moved = _moved(run, checked, plan)
    else:
        stored = _stored(run)
        rows = records(checked, plan, stored, lease.driver, run.is_part)
        run.keys = list(map(itemgetter("key"), rows))
        replaced = list(filter(None, map(itemgetter("replaces"), rows)))
        if run.is_part:
            kept_takes = {row.pattern: row.take for row in plan.rows if row.take > 1 and not row.decided}
        else:
            replaced = [name for name in stored.rows.keys() - set(run.keys) if name.startswith(NO_SKU)]
    differing = list(filter(itemgetter("differs"), rows))
    gone = plan.changes.gone if request.verb == "refresh" else frozenset()

    def write(connection: Connection) -> None:
        catalogs.remember_offers(connection, environment, run.answers)
        if gone or replaced:
            catalogs.drop_rows(connection, environment, run.catalog, gone, replaced)
        catalogs.write_rows(connection, environment, run.catalog, differing[:_ROWS_AT_ONCE])
        for seen, take in run.moves:
            decisions.move(connection, environment, seen, take)
        if kept_takes:
            decisions.keep_takes(connection, environment, kept_takes)
        if moved:
            catalogs.want_rows(connection, environment, run.catalog, moved)

    about = {
        "verb": request.verb, "source": name_of(request.file or ""), "max_items": request.max_items,
        "budget": parse_amount(request.budget), "currency": settings.currency, "delimiter": checked.sheet.delimiter,
        "header": header_of(checked.columns), "mapping": run.mapping, "folder": str(run.shelf),
    }  # fmt: skip
    await lease.take(about, write)
    run.lease = lease
    for start in range(_ROWS_AT_ONCE, len(differing), _ROWS_AT_ONCE):
        part = differing[start : start + _ROWS_AT_ONCE]
        await run.database.write(
            partial(catalogs.write_rows, environment=environment, catalog=run.catalog, rows=part)
        )
    purchases = Purchases(lease, settings)
    run.client.ready, run.client.confirm, run.client.halted = lease.renew, lease.confirm, run.halt.__bool__
    for stage in (Stage.PATTERN, Stage.PRODUCT):
        run.client.polling[stage] = Polling(purchases.last_durations(stage))
    limit = settings.in_doubt_limit.total_seconds()
    run.engine = Engine(purchases, run.client, run.halt, Admission(run.halt, purchases.standings), limit)


def _moved(run: Run, checked: "Checked", plan: Plan) -> list[dict[str, Any]]:
    """Return the rows on record that want another item by now, with what they want."""
    before = dict(zip(checked.sheet.rows.index.tolist(), zip(run.keys, run.wanted, strict=True), strict=True))
    return [
        {"key": before[row.number][0], **wanted_by(row)}
        for row in plan.rows if row.product.id != before[row.number][1]
    ]  # fmt: skip


def _stored(run: Run) -> Stored:
    """Return what the catalog has, as far as the rows of a sheet are compared with it."""
    place = (run.database, run.settings.service, run.catalog)
    if not (stored := catalogs.stored_rows(*place)):
        return Stored({}, {})
    headers = dict(map(attrgetter("id", "header"), catalogs.sheets(*place)))
    unwell = set[str]()
    if run.is_part:
        states = catalogs.catalog_rows(*place)
        unwell = {row.key for row in states if row.status in NEEDS_A_PERSON}
    return Stored(stored, headers, unwell)


async def make_rows(run: Run, plan: Plan, maker: Maker) -> None:
    """Make the rows and follow what is under way. Returns when all have ended, or the run was halted."""
    assert run.engine and run.lease
    purchases = run.engine.purchases
    most, left = parse_amount(run.request.budget), purchases.left_today()
    most = most if left is None else left if most is None else min(most, left)
    others = purchases.jobs_left(plan.steps)
    rows = list(affordable(plan, run.request.max_items, most))
    run.work = plan.work
    if plan.work or others:
        await purchases.stand({*map(itemgetter(1), plan.counts), *map(attrgetter("stage"), others)} - {None})
        fanout = Fanout(plan, run.engine, maker, run.settings.max_in_flight, run)
        write_marked = partial(write_marks, run.shelves, run.database, run.settings.service)
        beating = asyncio.create_task(run.lease.keep(run.halt.set, write_marked))
        try:
            with stops.watched(run.halt):
                async with maker.watching(run):
                    await fanout.make(rows, others)
        finally:
            beating.cancel()
    if len(rows) < len(plan.rows):
        message = f"{counted(len(plan.rows) - len(rows), 'row')} did not fit into the limits of this run."
        run.halt.set(Halted(Outcome.BUDGET_REACHED, "budget_reached", message, "Run it again for the rest."))
