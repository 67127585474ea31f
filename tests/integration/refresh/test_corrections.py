"""What is corrected in failures.csv stays so while the source has the mistake."""

from __future__ import annotations

import asyncio
import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from patternmill.catalog.row_corrections import CorrectionEnd
from patternmill.ledger.ledger import Ledger, open_ledger
from patternmill.runs.pipeline import Pipeline
from patternmill.runs.request import ImportRequest
from patternmill.runs.spec import import_spec
from patternmill.settings import load_settings
from tests.integration.refresh.conftest import Desk

Row = dict[str, str]
GOOD = [
    "C-1,Blue herons,Cushion,50x50,linen,x",
    "C-2,Lemon branches,Cushion,40x40,cotton,x",
]
#: An unknown category, an empty prompt, an unknown value, and a comma too many.
BAD = [
    "C-3,Blue herons,Cusion,50x50,linen,x",
    "C-4,,Cushion,50x50,linen,x",
    "C-5,Lemon branches,Cushion,99x99,linen,x",
    "C-9,Ferns, in rain,Cushion,50x50,linen,x",
]
SOURCE = [*GOOD, *BAD]


def rows_of(file: Path) -> list[Row]:
    with file.open(encoding="utf-8-sig", newline="") as lines:
        return list(csv.DictReader(lines))


def latest(desk: Desk) -> Path:
    return desk.folder / "results" / desk.catalog / "latest"


def import_file(desk: Desk, file: Path) -> Path:
    """Import a file as the command line does; returns the folder of the run."""

    async def main() -> Path:
        async with Pipeline(import_spec(ImportRequest(file=file))) as work:
            await work.run_through()
            return work.published.out

    return asyncio.run(asyncio.wait_for(main(), 60))


def edit(file: Path, change: Callable[[Row], None]) -> None:
    """As a person does in a spreadsheet."""
    rows = rows_of(file)
    for row in rows:
        change(row)
    with file.open("w", encoding="utf-8-sig", newline="") as lines:
        writer = csv.DictWriter(lines, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


FERNS = {"prompt": "Ferns, in rain", "category": "Cushion", "option:size": "50x50", "option:fabric": "linen"}
CORRECT: dict[str, Row] = {
    "C-3": {"category": "Cushion"},
    "C-4": {"prompt": "Orange poppies"},
    "C-5": {"option:size": "50x50"},
    "C-9": FERNS,
}


def correct(row: Row) -> None:
    row.update(CORRECT[row["sku"]])


@pytest.fixture
def corrected(desk: Desk) -> Desk:
    """A catalog with six rows, four of which were refused, and then corrected in failures.csv."""
    desk.write(*SOURCE)
    first = desk.refresh()
    assert first.ending.rows == {"succeeded": 2, "refused": 4}
    failures = first.out / "failures.csv"
    edit(failures, correct)
    import_file(desk, latest(desk) / "failures.csv")
    return desk


def with_ledger(see: Callable[[Ledger], object]) -> object:
    with open_ledger(load_settings()) as ledger:
        return see(ledger)


def test_refresh_from_an_unchanged_source_keeps_the_corrections(corrected: Desk) -> None:
    """Nothing is refused, nothing bought or retired; the results have the rows as corrected."""
    desk = corrected
    before, products = desk.creates(), desk.products()
    assert sorted(products) == ["C-1", "C-2", "C-3", "C-4", "C-5", "C-9"]
    night = desk.refresh()
    assert night.counts == {"unchanged": 6}
    assert (desk.creates(), desk.products()) == (before, products)
    assert [row["sku"] for row in rows_of(night.out / "results.csv")] == sorted(products)
    assert {row["status"] for row in rows_of(night.out / "results.csv")} == {"succeeded"}
    notes = " ".join(night.manifest()["options"]["notes"])
    assert "applied to the source's rows: C-3, category `Cusion` -> `Cushion`" in notes
    lines = [json.loads(line) for line in (night.out / "results.jsonl").read_text("utf-8").splitlines()]
    assert [line.get("corrected") for line in lines[:3]] == [None, None, {"category": "Cusion"}]
    assert desk.refresh().counts == {"unchanged": 6}


def test_the_same_corrections_imported_twice(desk: Desk) -> None:
    """As after a kill: in the second round too, what is corrected stays so."""
    desk.write(*SOURCE)
    failures = desk.refresh().out / "failures.csv"
    edit(failures, correct)
    import_file(desk, failures)
    before, products = desk.creates(), desk.products()
    import_file(desk, failures)
    assert desk.refresh().counts == {"unchanged": 6}
    assert (desk.creates(), desk.products()) == (before, products)


def test_the_source_wins(corrected: Desk) -> None:
    """A correction ends when the source has the corrected text, or a third one; the others hold."""
    desk = corrected
    fixed = [*GOOD, BAD[0].replace("Cusion", "Cushion"), BAD[1].replace(",,", ",Purple thistles,"), *BAD[2:]]
    night = desk.night(*fixed)
    assert night.counts == {"unchanged": 5, "changed": 1}
    assert night.changes()["C-4"]["fields"] == "prompt"
    notes = " ".join(night.manifest()["options"]["notes"])
    assert "1 correction done, because the source has the corrected text itself: C-3" in notes
    assert "1 correction given up, because the source has another text now: C-4" in notes
    # Back to the mistake: what was overtaken is not applied again.
    back = desk.night(*SOURCE)
    assert back.counts == {"unchanged": 4, "refused": 2}
    assert len(desk.products()) == 6


def test_undone_corrections_are_refused_again(corrected: Desk) -> None:
    desk = corrected

    def undo(ledger: Ledger) -> None:
        scope = (load_settings().environment, desk.catalog)
        found = [one for one in ledger.corrections(*scope) if one.sku == "C-3"]
        with ledger.transaction():
            ledger.end_corrections(*scope, [(one, CorrectionEnd.UNDONE) for one in found])

    with_ledger(undo)
    products = desk.products()
    night = desk.refresh()
    assert night.counts == {"unchanged": 5, "refused": 1}
    assert desk.products() == products
    assert [row["sku"] for row in rows_of(latest(desk) / "failures.csv")] == ["C-3"]
