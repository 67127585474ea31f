"""Workbooks that a run wrote and that come back from Excel: corrected rows are found, skus are as shown."""

from pathlib import Path

import pytest
from openpyxl import Workbook, load_workbook

from patternmill.states import Outcome, Status
from tests.test_runs import HEADER, catalog, double, made, run  # noqa: F401

#: Numbers in formats, and one as it is.
FORMATS = {"price": "#,##0.00 €", "stock": "00000", "weight": "General"}


def workbook(*rows, name="spring.xlsx", skus="@"):
    book = Workbook()
    for line in ((*HEADER, *FORMATS), *rows):
        book.active.append(line)
    for cells in book.active.iter_rows(min_row=2):
        cells[0].number_format = skus
        for cell, code in zip(cells[-3:], FORMATS.values(), strict=True):
            cell.number_format = code
    book.save(name)


def good(sku, size="m", prompt=None):
    return (sku, prompt or f"herons {sku}", "Tote", size, "", 1234.5, 42, 0.1)


def edited(path, old, new, *, to=None):
    """Correct a cell as a person does in Excel, which saves every other cell as it is."""
    book = load_workbook(path)
    for line in book.active.iter_rows():
        for cell in line:
            if cell.value == old:
                cell.value = new
    book.save(to or path)
    return str(to or path)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["failures.xlsx", "sheet.xlsx"])
def test_corrected_rows_of_a_workbook_are_found_though_numbers_keep_their_formats(double, name):  # noqa: F811
    workbook(good("A-1"), good("A-2", "huge"), good("A-3"))
    end = run(file="spring.xlsx")
    path = Path("results/spring" if name == "sheet.xlsx" else end.summary.folder) / name
    assert run(file=edited(path, "huge", "s", to="corrected.xlsx")).outcome is Outcome.COMPLETED
    assert made(double) == (3, 3)
    cells = {key: one.cells for key, one in catalog().items()}
    assert cells["a-2"] == cells["a-1"].replace("A-1", "A-2").replace('"m"', '"s"')
    end = run("refresh", file="spring.xlsx")
    assert (end.outcome, made(double)) == (Outcome.COMPLETED, (3, 3)), end.message
    assert catalog()["a-2"].status == Status.SUCCEEDED


@pytest.mark.slow
def test_skus_that_are_numbers_are_given_back_as_shown_and_found_again(double):  # noqa: F811
    workbook(good(12), good(13, "huge"), good(14), skus="00000")
    Path("spring.mapping.toml").write_text('[reading]\nnumbers = "as shown"\n')
    end = run(file="spring.xlsx")
    assert list(catalog()) == ["00012", "00013", "00014"]
    for path in (Path(end.summary.folder) / "failures.xlsx", Path("results/spring/sheet.xlsx")):
        skus = [line[0].value for line in load_workbook(path).active.iter_rows(min_row=2)]
        assert skus == (["00013"] if path.name == "failures.xlsx" else ["00012", "00013", "00014"])
    bought = made(double)
    assert (
        run(file=edited("results/spring/sheet.xlsx", "huge", "s", to="corrected.xlsx")).outcome
        is Outcome.COMPLETED
    )
    assert (bought, made(double)) == ((2, 2), (3, 3))
    assert list(catalog()) == ["00012", "00013", "00014"]
    assert run("refresh", file="spring.xlsx").outcome is Outcome.COMPLETED
    assert made(double) == (3, 3)
