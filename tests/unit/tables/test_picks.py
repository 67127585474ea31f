"""What a person picked: named, or in a file; everything that is wrong is refused at once, with its place."""

from __future__ import annotations

from pathlib import Path

import openpyxl
import pytest
from pydantic import ValidationError

from patternmill.errors import InputRefused
from patternmill.orders.picked_rows import named_picks
from patternmill.runs.request import OrderRequest
from patternmill.tables.picks import Pick, Picks, read_picks


def file(folder: Path, text: str | bytes) -> Path:
    path = folder / "picks.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_rows_are_named_one_by_one_or_in_a_file(tmp_path: Path) -> None:
    """Where nothing is named, the decisions in the ledger say what was picked."""
    found = named_picks(OrderRequest(sku=("A", " B "), quantity=3))
    assert found == Picks((Pick("A", 3, "--sku A"), Pick("B", 3, "--sku  B ")))
    assert named_picks(OrderRequest()) is None
    with pytest.raises(InputRefused, match="one by one and in a file"):
        named_picks(OrderRequest(sku=("A",), picks=file(tmp_path, "sku,picked\nB,yes\n")))
    # No ledger could hold some of them.
    for quantity in (0, 100_001, 10**20):
        with pytest.raises(ValidationError, match="quantity"):
            OrderRequest(sku=("A",), quantity=quantity)


def test_quantity_note_and_other_columns(tmp_path: Path) -> None:
    """In any order and case; a row without a quantity has the one that was named."""
    text = "\ufeffNote,SKU,colour,Picked,Quantity\nfor Anna,A,red,x,2\n,B,blue,x,\n"
    found = read_picks(file(tmp_path, text), 5).picks
    assert found == (
        Pick("A", 2, "picks.csv, row 2, column sku", "for Anna"),
        Pick("B", 5, "picks.csv, row 3, column sku"),
    )


@pytest.mark.parametrize(
    "text",
    [
        "sku,picked\nA,yes\nB,Y\nC,X\nD,1\nE,TRUE\nF, yes \nG,✓\nH,no\nI,\n",
        "Auswahl\n\nsku\tpicked\nI\t\n" + "".join(f"{sku}\tx\n" for sku in "ABCDEFG"),
        "sep=|\nsku|picked\n" + "".join(f"{sku}|x\n" for sku in "ABCDEFG"),
    ],
)
def test_any_sheet_may_have_picks(tmp_path: Path, text: str) -> None:
    """As a catalog may: other delimiters, a title; marked in any usual way."""
    assert "".join(pick.sku for pick in read_picks(file(tmp_path, text), 1).picks) == "ABCDEFG"


def test_number_is_no_picked_sku_of_a_workbook(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    for row in (("sku", "picked", "quantity"), (12, "yes", 1), ("012", "yes", 2)):
        book.worksheets[0].append(row)
    book.save(tmp_path / "picks.xlsx")
    found = read_picks(tmp_path / "picks.xlsx", 1)
    assert [(pick.sku, pick.quantity) for pick in found.picks] == [("012", 2)]
    assert "Sheet!A2 holds a number" in found.problems[0]


def test_everything_wrong_is_named_at_once(tmp_path: Path) -> None:
    text = "sku,picked,quantity\nA,maybe,\n,yes,1\nB,yes,1.5\nC,yes,0\nD,yes,\nd ,yes,\n\nE,yes,100001\n"
    problems = read_picks(file(tmp_path, text), 1).problems
    assert [problem.partition(":")[0] for problem in problems] == [
        "picks.csv, row 2, column picked",
        "picks.csv, row 3, column sku",
        "picks.csv, row 4, column quantity",
        "picks.csv, row 5, column quantity",
        "picks.csv, row 9, column quantity",
        "picks.csv, row 6, column sku",
        "picks.csv, row 7, column sku",
    ]
    assert all("; " in problem for problem in problems), "each has a remedy"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "empty_file"),
        ("sku,prompt\nA,herons\n", "missing_column"),
        ("sku,picked,Picked\nA,yes,no\n", "duplicate_header"),
        (b"sku,picked\n\xff,yes\n", "unreadable_encoding"),
        ("sku,picked\nA,no\n", "nothing_picked"),
    ],
)
def test_file_that_is_none_of_picks(tmp_path: Path, text: str | bytes, code: str) -> None:
    with pytest.raises(InputRefused) as refused:
        read_picks(file(tmp_path, text), 1)
    assert refused.value.code == code
