"""Reads what is on record in place of a sheet: rows of a run or of a catalog, and what became of them."""

from __future__ import annotations

import csv
import io
import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from patternmill.engine.item_attempts import FINAL_CODES, is_passing
from patternmill.engine.options import RunOptions
from patternmill.errors import ConfigurationError
from patternmill.identifiers import ItemKey
from patternmill.ledger.catalogs import RequestedContent
from patternmill.ledger.events import Decision, last_decisions, not_overtaken
from patternmill.ledger.ledger import Ledger
from patternmill.ledger.records import FORGOTTEN, Attempt, RunRecord, RunRow
from patternmill.ledger.reports.checkouts import checkouts_of_run
from patternmill.planning.extras import Extras, Picture
from patternmill.planning.items import Item, Scope
from patternmill.planning.memory import LastAttempt, LastDecision, Memory
from patternmill.planning.problems import Problem, RowCode
from patternmill.planning.rows import Content, Entry, Row
from patternmill.states import WRITTEN_OFF, AttemptState, Stage
from patternmill.tables.columns import OPTION_PREFIX, REFINE_PREFIX
from patternmill.tables.mapping import MAPPING, READING, SheetMapping
from patternmill.text import moment

if TYPE_CHECKING:
    from patternmill.tables.catalog import Catalog
    from patternmill.tables.checks import Checked
    from patternmill.tables.results import RunResults

#: The prefix of a cell in the column `reference` that names a picture of the ledger by its SHA-256.
_DIGEST = "sha256:"


def run_results(
    ledger: Ledger, record: RunRecord, file: Catalog | None = None, *, now: bool = False
) -> RunResults:
    """Return the rows of a run for its results, which are read as they are asked for.

    `file`: the run's input, if it is parsed already. `now`: the rows as they are now, after whatever followed the run.
    """
    # Imported here because it loads pandas.
    from patternmill.tables.results import RunResults

    # If a product was ordered several times, the last order counts.
    ordered = {
        line.product_key: f"{moment(checkout.order.since)} UTC, {checkout.order.order_id or checkout.checkout_id}"
        for checkout in checkouts_of_run(ledger, record.run_id)
        if checkout.is_ordered and checkout.order is not None
        for line in checkout.lines
    }
    records = ledger.runs.row_records(record, now=now)
    return RunResults(record.run_id, file or input_file(ledger, record), records, ordered)


def input_file(ledger: Ledger, record: RunRecord) -> Catalog:
    """Return the input of a run, from the bytes that the ledger kept, read as the run read them."""
    from patternmill.tables.catalog import read_catalog

    name, raw = record.source.rpartition("/")[2], ledger.runs.input_of(record)
    mapping = SheetMapping.model_validate(record.options.get(MAPPING, {}))
    read = record.options.get(READING, {"encoding": record.input_encoding})
    as_read = {name: read.get(name) for name in ("encoding", "delimiter", "worksheet")}
    reading = mapping.reading.model_copy(update={**as_read, "header": read.get("header_row")})
    return read_catalog(raw, name, mapping.model_copy(update={"reading": reading}), empty=True)


def rows_of_run(ledger: Ledger, record: RunRecord) -> Checked:
    """Return the rows of an earlier run as that run understood them: nothing is looked up anew."""
    from patternmill.tables.checks import recorded_rows

    file = input_file(ledger, record)
    rows = ledger.runs.rows_of(record.run_id)
    entries = tuple(map(_entry, rows))
    return recorded_rows(file, entries, _extras(ledger, entries))


def without_rows(checked: Checked, lines: Collection[int]) -> Checked:
    """Return the rows of a run without those at some lines of its sheet."""
    from patternmill.tables.checks import recorded_rows

    sheet = checked.catalog.sheet
    file = replace(checked.catalog, sheet=replace(sheet, rows=sheet.rows.drop(index=list(lines))))
    entries = tuple(entry for entry in checked.entries if entry.line not in lines)
    return recorded_rows(file, entries, checked.extras)


def rows_of_catalog(ledger: Ledger, catalog: str, rows: Sequence[RequestedContent]) -> Checked:
    """Return rows as they were last requested, with a sheet that says the same.

    Raises ConfigurationError where no sheet can: two rows are refined by the same operations in different orders.
    """
    from patternmill.tables.checks import recorded_rows

    file = _sheet(catalog, rows)
    entries = tuple(
        Entry(line, recorded_row(row.content, row.sku, line))
        for row, line in zip(rows, file.sheet.rows.index, strict=True)
    )
    return recorded_rows(file, entries, _extras(ledger, entries))


def _entry(row: RunRow) -> Entry:
    understood = json.loads(row.row)
    if (problems := understood.get("problems")) is not None:
        faults = ((None, RowCode(fault["code"]), fault["message"], fault["remedy"]) for fault in problems)
        return Entry(row.line, None, tuple(Problem(*fault).at(row.line, row.sku or None) for fault in faults))
    return Entry(row.line, recorded_row(Content.from_json(understood), row.sku, row.line))


def recorded_row(content: Content, sku: str, line: int = 0) -> Row:
    """Return a row as it was requested, before a take of its pattern is chosen."""
    fields = {name: getattr(content, name) for name in Content.__slots__}
    return Row(**fields | {"take": None}, line=line, sku=sku)


def _extras(ledger: Ledger, entries: Iterable[Entry]) -> Extras:
    references = {entry.row.reference for entry in entries if entry.row is not None and entry.row.reference}
    return Extras(pictures=recorded_pictures(ledger, {sha256: sha256 for sha256 in references}))


def recorded_pictures(ledger: Ledger, digests: Mapping[str, str]) -> dict[str, Picture]:
    """Return the pictures that the ledger has, by the names under which `digests` has their SHA-256."""
    documents = {sha256: ledger.document(sha256) for sha256 in sorted(set(digests.values()))}
    pictures = ((name, sha256, documents[sha256]) for name, sha256 in digests.items())
    return {name: Picture(sha256, raw) for name, sha256, raw in pictures if raw is not None}


def digests_named(cells: Iterable[str]) -> dict[str, str]:
    """Return the digests of the pictures that cells name, by cell."""
    return {cell: cell.removeprefix(_DIGEST) for cell in cells if cell.startswith(_DIGEST)}


def _sheet(catalog: str, rows: Sequence[RequestedContent]) -> Catalog:
    from patternmill.tables.catalog import read_catalog

    texts = [dict(_cells(row)) for row in rows]
    columns = dict.fromkeys(("sku", "prompt", "category", *(name for cells in texts for name in cells)))
    places = {name: place for place, name in enumerate(columns)}
    for row, cells in zip(rows, texts, strict=True):
        order = [places[name] for name in cells if name.startswith(REFINE_PREFIX)]
        if order != sorted(order):
            raise ConfigurationError(
                f"These rows cannot be remade in one run: {row.sku} is refined in another order.",
                code="remake_apart",
                remedy="Remake them one by one with --sku. Nothing was bought.",
            )
    text = io.StringIO()
    lines = csv.DictWriter(text, list(columns), restval="")
    lines.writeheader()
    lines.writerows(texts)
    return read_catalog(text.getvalue().encode("utf-8"), f"remake of {catalog}.csv", empty=True)


def _cells(row: RequestedContent) -> Iterator[tuple[str, str]]:
    content = row.content
    yield "sku", row.sku
    yield "prompt", content.prompt
    yield "category", content.category_name or content.category
    yield from ((f"{OPTION_PREFIX}{name}", value) for name, value in content.selections.items())
    if content.model is not None:
        yield "model", content.model
    if content.reference is not None:
        yield "reference", f"{_DIGEST}{content.reference}"
    yield from (
        (f"{REFINE_PREFIX}{refinement.operation}", str(refinement).partition(" ")[2])
        for refinement in content.refinements
    )


def remember(
    ledger: Ledger, scope: Scope, options: RunOptions, decisions: Collection[Decision] = ()
) -> Memory:
    """Return what the ledger knows of a catalog; `decisions`: what the run will record as it begins, in their order."""
    own = scope.environment, scope.catalog
    last = {attempt.item_key: attempt for attempt in ledger.purchases.last_attempts(*own)}
    if not last and not decisions:
        return Memory()
    trying = frozenset(
        key
        for key, attempt in last.items()
        if is_passing(attempt)
        or (
            attempt.state is AttemptState.FAILED
            and attempt.attempt < options.attempts
            and attempt.error_code not in FINAL_CODES
        )
    )
    written_off = frozenset(key for key, attempt in last.items() if attempt.error_code == WRITTEN_OFF)
    return Memory(
        last_attempts(last.values()),
        ledger.catalogs.products(*own),
        trying,
        written_off,
        _last_decisions(ledger, scope, decisions),
        further_takes(ledger, scope),
    )


def last_attempts(attempts: Iterable[Attempt]) -> dict[ItemKey, LastAttempt]:
    """Return the last attempts at items as a plan needs them."""
    return {last.item_key: LastAttempt(last.state, last.attempt, last.result_id) for last in attempts}


def _last_decisions(ledger: Ledger, scope: Scope, new: Iterable[Decision]) -> dict[ItemKey, LastDecision]:
    """Return the latest decision about each take; `new` ones come after all that are on record."""
    recorded = last_decisions(ledger, scope.environment, scope.catalog)
    last = max((decision.sequence for decision in recorded.values()), default=0)
    latest = {item: LastDecision(last.verdict, last.sequence) for item, last in recorded.items()}
    for sequence, decision in enumerate(not_overtaken(new, recorded), start=last + 1):
        latest[decision.item] = LastDecision(decision.verdict, sequence)
    return latest


def further_takes(ledger: Ledger, scope: Scope) -> Mapping[ItemKey, set[int]]:
    """Return the numbers of a pattern's other takes, by the item of its first take."""
    takes = defaultdict[ItemKey, set[int]](set)
    for content in ledger.purchases.contents_of_further_takes(scope.environment, scope.catalog):
        first = {name: value for name, value in content.items() if name != "take"}
        takes[content.get(FORGOTTEN) or Item(Stage.PATTERN, scope, first).key].add(content["take"])
    return takes
