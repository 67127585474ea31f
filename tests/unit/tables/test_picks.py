"""What a person picked: named, or in a file; everything that is wrong is refused at once, with its place."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from patternmill.errors import InputRefused
from patternmill.orders.picked_rows import named_picks
from patternmill.runs.request import OrderRequest
from patternmill.tables.picks import Pick, Picks, read_picks

from .sheet_files import workbook


def file(folder: Path, text: str) -> Path:
    path = folder / "picks.csv"
    path.write_text(text, encoding="utf-8")
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


def test_columns_are_in_any_order_and_case_and_sheet(tmp_path: Path) -> None:
    """A row without a quantity has the one that was named; a pick is marked in any usual way."""
    text = "\ufeffNote,SKU,colour,Picked,Quantity\nfor Anna,A,red,x,2\n,B,blue,x,\n"
    assert read_picks(file(tmp_path, text), 5).picks == (
        Pick("A", 2, "picks.csv, row 2, column sku", "for Anna"),
        Pick("B", 5, "picks.csv, row 3, column sku"),
    )
    text = "Auswahl\n\nsku\tpicked\nA\tyes\nB\tY\nC\tX\nD\t1\nE\tTRUE\nF\t yes \nG\t✓\nH\tno\nI\t\n"
    assert "".join(pick.sku for pick in read_picks(file(tmp_path, text), 1).picks) == "ABCDEFG"


def test_number_is_no_picked_sku_of_a_workbook(tmp_path: Path) -> None:
    path = tmp_path / "picks.xlsx"
    path.write_bytes(workbook({"Sheet": [("sku", "picked", "quantity"), (12, "yes", 1), ("012", "yes", 2)]}))
    found = read_picks(path, 1)
    assert [(pick.sku, pick.quantity) for pick in found.picks] == [("012", 2)]
    assert "Sheet!A2 holds a number" in found.problems[0]


def test_everything_wrong_is_named_at_once(tmp_path: Path) -> None:
    text = "sku,picked,quantity\nA,maybe,\n,yes,1\nB,yes,1.5\nC,yes,0\nD,yes,\nd ,yes,\n\nE,yes,100001\n"
    problems = read_picks(file(tmp_path, text), 1).problems
    assert [problem.partition(":")[0].removeprefix("picks.csv, ") for problem in problems] == [
        "row 2, column picked",
        "row 3, column sku",
        "row 4, column quantity",
        "row 5, column quantity",
        "row 9, column quantity",
        "row 6, column sku",
        "row 7, column sku",
    ]
    assert all("; " in problem for problem in problems), "each has a remedy"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("sku,prompt\nA,herons\n", "missing_column"),
        ("sku,picked,Picked\nA,yes,no\n", "duplicate_header"),
        ("sku,picked\nA,no\n", "nothing_picked"),
    ],
)
def test_file_that_is_none_of_picks(tmp_path: Path, text: str, code: str) -> None:
    with pytest.raises(InputRefused) as refused:
        read_picks(file(tmp_path, text), 1)
    assert refused.value.code == code
