"""A catalog's whole sheet comes back with its products, and imported again it buys nothing."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path

import openpyxl
import pytest

from patternmill.ledger.ledger import open_ledger
from patternmill.settings import load_settings
from patternmill.states import Decided
from patternmill.tables.columns import ADDED_COLUMNS, SHEET_COLUMNS

from .shop import Shop
from .shop import shop as shop

Rows = Sequence[Sequence[str]]
HEADER = ("Lagerplätze", "sku", "Motiv", "category", "option:name", "=Preis")
OWN = len(HEADER)
SHEET: Rows = (
    HEADER,
    ("klein", "007", "blaue Reiher", "Tote", "a", "=1+1"),
    ("'=x", "B-1", "grüne Eulen; nachts", "Tote", "b", "1e5"),
    ("NA", "", "rote Füchse", "Tote", "c", "0,5"),
    ("", "D", "ein Farn", "Tote", "d", "-3"),
    ("", "D", "zwei Farne", "Tote", "e", "\tx"),
    ("ß", "F", "drei Farne", "Mug", "f", "@x"),
)
ADDED = {*ADDED_COLUMNS, *SHEET_COLUMNS}


def write(path: Path, rows: Rows, delimiter: str = ",") -> Path:
    if path.suffix == ".xlsx":
        book = openpyxl.Workbook()
        assert book.active is not None
        for line, row in enumerate(rows, 1):
            for at, text in enumerate(row, 1):
                cell = book.active.cell(line, at)
                cell.value, cell.data_type = text, "s"
        book.save(path)
        return path
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=delimiter, lineterminator="\r\n").writerows(rows)
    path.write_bytes(text.getvalue().encode())
    return path


def read(path: Path, delimiter: str = ",") -> list[list[str]]:
    """Return a table as its file has it: texts of a workbook are texts, whatever they look like."""
    if path.suffix == ".xlsx":
        sheet = openpyxl.load_workbook(path).active
        assert sheet is not None
        lines = [list(line) for line in sheet.iter_rows()]
        assert {cell.data_type for line in lines for cell in line if cell.value is not None} == {"s"}
        return [[str(cell.value or "") for cell in line] for line in lines]
    return list(
        csv.reader(io.StringIO(path.read_bytes().decode("utf-8-sig"), newline=""), delimiter=delimiter)
    )


def by_sku(lines: list[list[str]]) -> dict[str, dict[str, str]]:
    rows = [dict(zip(lines[0], line, strict=True)) for line in lines[1:]]
    return {row["sku"]: row for row in rows}


@pytest.mark.parametrize(("name", "delimiter"), [("spring.csv", ";"), ("spring.xlsx", "")])
def test_whole_sheet_comes_back_and_buys_nothing(shop: Shop, name: str, delimiter: str) -> None:
    """In its format and its order, with every own column; rows that were not made say why."""
    (shop.folder / "spring.mapping.toml").write_text('[columns]\n"Motiv" = "prompt"\n', "utf-8")
    shop.load(write(shop.folder / name, SHEET, delimiter), catalog="spring")
    place = shop.folder / "results" / "spring" / f"sheet{Path(name).suffix}"
    first = read(place, delimiter)
    assert first[0][OWN:] == [
        *("status", "product_id", "pattern_id", "picture_url", "error_code", "error"),
        *("decided", "since", "decision", "note", "run"),
    ]
    is_text = name.endswith(".csv")
    quoted = {text: f"'{text}" for text in ("=Preis", "=1+1", "-3", "\tx", "@x")} if is_text else {}
    assert [line[:OWN] for line in first] == [
        [quoted.get(text, "''=x" if text == "'=x" else text) for text in line] for line in SHEET
    ]
    assert [line[OWN] for line in first[1:]] == ["succeeded"] * 2 + ["refused"] * 4
    with open_ledger(load_settings()) as ledger:
        products = {row.sku: row.product_id for row in ledger.catalogs.rows("staging", "spring")}
    assert [line[OWN + 1] for line in first[1:]] == [products["007"], products["B-1"], "", "", "", ""]
    assert [line[OWN + 4] for line in first[3:]] == ["empty_sku", *["duplicate_sku"] * 2, "unknown_category"]

    bought = len(shop.service.bought)
    (shop.folder / "elsewhere").mkdir()
    shop.load(place.rename(shop.folder / "elsewhere" / place.name))
    assert len(shop.service.bought) == bought
    again = read(place, delimiter)
    same = [at for at, column in enumerate(first[0]) if column not in ("run", "error")]
    assert [[line[at] for at in same] for line in again] == [[line[at] for at in same] for line in first]


def test_corrected_failures_are_in_their_places(shop: Shop) -> None:
    """Skus that were missing or double get new ones, and a row that a comma split is put together."""
    source = (
        "sku,prompt,category,option:name,remark\nA,herons,Tote,a,one\n,owls,Tote,b,two\nC,ferns,Tote,c,three\n"
        "C,foxes,Tote,d,four\nE,hens, at night,Tote,e,five\n"
    )
    shop.load(shop.file(source))
    failures = read(shop.folder / "results/spring/latest/failures.csv")
    assert [line[:6] for line in failures[1:]] == [
        ["", "owls", "Tote", "b", "two", ""],
        ["C", "ferns", "Tote", "c", "three", ""],
        ["C", "foxes", "Tote", "d", "four", ""],
        ["E", "hens", " at night", "Tote", "e", "five"],
    ]
    failures[1][0], failures[2][0] = "B", "C-2"
    failures[4][1:6] = ["hens, at night", "Tote", "e", "five", ""]
    shop.load(write(shop.folder / "corrected.csv", failures))
    assert set(shop.rows.values()) == {"succeeded"}
    sheet = read(shop.folder / "results/spring/sheet.csv")
    own = [[*line[:5], line[sheet[0].index("status")]] for line in sheet[1:]]
    assert own == [
        ["A", "herons", "Tote", "a", "one", "succeeded"],
        ["B", "owls", "Tote", "b", "two", "succeeded"],
        ["C-2", "ferns", "Tote", "c", "three", "succeeded"],
        ["C", "foxes", "Tote", "d", "four", "succeeded"],
        ["E", "hens, at night", "Tote", "e", "five", "succeeded"],
    ]
    bought = len(shop.service.bought)
    shop.load(shop.folder / "results/spring/sheet.csv")
    shop.refresh(retire=None)
    assert len(shop.service.bought) == bought
    # What was corrected lasts while its source is refused.
    assert shop.has().keys() == {"A", "B", "C", "C-2", "E"}


def test_sheet_names_what_was_made_anew_and_decided(shop: Shop) -> None:
    """A decision in its empty column is about the take that its row shows; what is told of one is not read."""
    shop.load_source({"a": {"prompt": "herons"}, "b": {"prompt": "owls"}})
    shop.decide(Decided.PICK, "owls")
    assert shop.remake("a")
    place = shop.folder / "results/spring/sheet.csv"
    rows = by_sku(read(place))
    assert (rows["a"]["decided"], rows["b"]["decided"]) == ("", "pick")
    assert [rows[sku]["run"].partition("@")[0] for sku in "ab"] == [shop.runs[-1], shop.runs[0]]
    bought = len(shop.service.bought)
    shop.load(place)
    assert len(shop.service.bought) == bought and shop.takes() == {"a": 2, "b": 1}

    lines = read(place)
    lines[1][lines[0].index("decision")] = "reject"
    shop.load(write(shop.folder / "decided.csv", lines))
    rows = by_sku(read(place))
    assert rows["a"]["decided"] == "reject" and rows["a"]["status"] == "discarded"
