"""The verbs `offer` and `template`: what can be made, and a workbook that passes a check once it is filled in."""

from __future__ import annotations

from pathlib import Path

import pytest
from openpyxl import load_workbook

from cli import main

FILLED = {
    "sku": "0012",
    "prompt": "blue herons",
    "category": "Mug",
    "option:size": "11oz",
    "option:finish": "matte",
}


def test_offer_fits_a_terminal(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every category with its options, what has to be chosen, and the values."""
    assert main.run(["offer"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert "Mug  (cat_stg_mug)" in lines
    assert "  colour  optional  white, black, navy, red, sage" in lines


def test_offer_of_named_categories(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """However they are spelled."""
    assert main.run(["offer", "tote-bag", "cat_stg_mug"]) == 0
    found = capsys.readouterr().out
    assert found.index("Tote bag  (") < found.index("Mug  (cat_stg_mug)") and "Cushion" not in found
    assert "  size    required  11oz, 15oz" in found


def test_category_that_is_not_offered(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The nearest one is named."""
    assert main.run(["offer", "cusion"]) == 2
    assert "Did you mean `Cushion`?" in capsys.readouterr().err


def test_filled_template_passes_a_check(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """At once, with leading zeros, and without a question about its other worksheets."""
    assert main.run(["offer", "Mug", "tote bag", "--template", "catalog.xlsx"]) == 0
    book = load_workbook("catalog.xlsx")
    sheet = book["Catalog"]
    header = [cell.value for cell in sheet[1]]
    assert header[:3] == ["sku", "prompt", "category"]
    for name, text in FILLED.items():
        sheet.cell(2, header.index(name) + 1, text)
    book.save("catalog.xlsx")
    capsys.readouterr()
    assert main.run(["check", "catalog.xlsx"]) == 0
    assert "catalog.xlsx: 1 row, all accepted." in capsys.readouterr().out


def test_template_has_drop_downs_and_text_cells(home: Path) -> None:
    """Of the categories, and of each option by the row's category; the lists are in a hidden worksheet."""
    assert main.run(["offer", "Mug", "Cushion", "--template", "catalog.xlsx"]) == 0
    book = load_workbook("catalog.xlsx")
    sheet = book["Catalog"]
    assert {str(one.sqref) for one in sheet.data_validations.dataValidation} == {
        f"{letter}2:{letter}501" for letter in "CDEFGH"
    }
    assert sheet.column_dimensions["A"].number_format == "@"
    assert book["lists"].sheet_state == "hidden"
    assert [cell.value for cell in book["lists"]["A"]][:4] == ["category", "required", "Mug", "Cushion"]


@pytest.mark.parametrize("out", ["there.xlsx", "rows.txt"])
def test_template_replaces_nothing(home: Path, out: str) -> None:
    """Nor does it write a format that it cannot."""
    Path("there.xlsx").write_text("filled in")
    assert main.run(["offer", "Mug", "--template", out]) == 2
    assert Path("there.xlsx").read_text() == "filled in"
