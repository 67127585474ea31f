"""The rows of a run with what became of each: as its run left them, from the ledger alone."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from patternmill.catalog.catalog_file import CatalogFile
from patternmill.catalog.column_mapping import ColumnMapping
from patternmill.catalog.source_rows import with_texts
from patternmill.identifiers import ItemKey
from patternmill.ledger.ledger import Ledger
from patternmill.ledger.records import RunRecord, RunRow
from patternmill.ledger.row_outcomes import ItemOutcome, RowOutcome
from patternmill.sheets.csv_reader import parse_catalog
from patternmill.states import RowStatus


@dataclass(frozen=True, slots=True)
class RowResult:
    """One row as it came in, with what became of it: what results files, filters and retries are made of."""

    position: int
    #: The row number as a spreadsheet shows it; the header is 1.
    line: int
    sku: str
    #: The cells exactly as read, one a column of the input's header (fewer or more where the row was malformed).
    cells: tuple[str, ...]
    #: As the file has it where the row was refused.
    prompt: str
    #: As the file has it.
    category: str
    category_id: str
    selections: Mapping[str, str]
    outcome: RowOutcome
    #: When its product was ordered, and under which ID; empty where it was not.
    ordered: str = ""

    @property
    def status(self) -> RowStatus:
        return self.outcome.status

    @property
    def error_code(self) -> str | None:
        return self.outcome.error_code

    @property
    def error(self) -> str | None:
        return self.outcome.error

    @property
    def remedy(self) -> str | None:
        """What to do about it."""
        return self.outcome.remedy

    @property
    def items(self) -> tuple[ItemOutcome, ...]:
        """In the order in which they are made: the pattern and the product are the last two."""
        return self.outcome.items

    @property
    def product(self) -> ItemOutcome | None:
        """None where the row was refused."""
        return self.items[-1] if self.items else None

    @property
    def pattern(self) -> ItemOutcome | None:
        """What the product shows, refined or not."""
        return self.items[-2] if self.items else None

    @property
    def product_id(self) -> str | None:
        return self.product.result_id if self.product else None

    @property
    def pattern_id(self) -> str | None:
        return self.pattern.result_id if self.pattern else None

    @property
    def product_key(self) -> ItemKey | None:
        return self.product.key if self.product else None

    @property
    def changed_at(self) -> float | None:
        """When something was last requested or made for it, in Unix seconds; None: nothing was ever requested."""
        return max((item.since for item in self.items if item.since is not None), default=None)


def input_file(ledger: Ledger, record: RunRecord) -> CatalogFile:
    """The input of a run, with what people had corrected in it."""
    corrected = ledger.runs.texts_of(record.run_id, corrected=True)
    file = parsed_input(ledger, record, ColumnMapping.of_record(record.options))
    return with_texts(file, {line: texts for line, (_, texts) in corrected.items()})


def parsed_input(ledger: Ledger, record: RunRecord, mapping: ColumnMapping) -> CatalogFile:
    """The input of a run as it was, its columns found by a mapping. Raises InputRefused where that does not fit."""
    name, raw = record.source.rpartition("/")[2], ledger.runs.input_of(record)
    return parse_catalog(raw, name=name, encoding=record.input_encoding, mapping=mapping, empty=True)


def row_results(
    ledger: Ledger, record: RunRecord, file: CatalogFile, *, now: bool = False
) -> Iterator[RowResult]:
    """Every row of a run, in the order of its file: as its run left it, or as it is `now`, whatever came later."""
    for row, outcome in ledger.runs.rows_with_outcomes(record, now=now):
        yield _row_result(row, file, outcome)


def _row_result(row: RunRow, file: CatalogFile, outcome: RowOutcome) -> RowResult:
    cells, kept = file.records[row.position].cells, json.loads(row.row)
    prompt, category = (
        cells[index].strip() if index < len(cells) else ""
        for index in (file.columns.prompt, file.columns.category)
    )
    return RowResult(
        row.position,
        row.line,
        row.sku,
        cells,
        kept.get("prompt", prompt),
        category,
        kept.get("category", ""),
        kept.get("selections", {}),
        outcome,
    )
