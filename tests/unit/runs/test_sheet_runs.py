"""A run of a workbook: its rows come back under the workbook's numbers, from what the ledger keeps."""

from __future__ import annotations

from datetime import date
from pathlib import Path

from patternmill.catalog.catalog_file import CatalogFile
from patternmill.results.row_results import input_file
from patternmill.sheets.sheet_reader import read_source
from patternmill.states import RowStatus
from tests.unit.sheets.sheet_files import workbook

from .fake_studio import Service
from .workshop import Workshop


class SheetWorkshop(Workshop):
    def file(self, catalog: str) -> CatalogFile:
        return read_source(str(self.home / catalog))


ROWS = (
    ["Frühjahr"],
    [],
    ["sku", "prompt", "category", "option:name"],
    ["A", "herons", "Tote", "A"],
    ["B", date(2026, 3, 1), "Tote", "B"],
    ["12", "roses", "Tote", "12"],
)


def test_workbook_is_rebuilt_from_the_ledger(home: Path, service: Service) -> None:
    """Its layout is on record, and a cell that is a date refuses its row."""
    home.mkdir()
    (home / "spring.xlsx").write_bytes(workbook({"Artikel": ROWS}))
    shop = SheetWorkshop(home, service)
    first = shop.run("spring.xlsx")
    assert {sku: (row.line, row.status) for sku, row in first.rows.items()} == {
        "A": (4, RowStatus.SUCCEEDED),
        "B": (5, RowStatus.REFUSED),
        "12": (6, RowStatus.SUCCEEDED),
    }
    assert first.rows["B"].error_code == "not_text"
    record = first.ending.record
    assert record.options["reading"].items() >= {"worksheet": "Artikel", "header_row": 3}.items()
    (home / "spring.xlsx").unlink()
    with shop.ledger() as ledger:
        kept = input_file(ledger, record)
    assert [(one.line, one.cells[0]) for one in kept.records] == [(4, "A"), (5, "B"), (6, "12")]
