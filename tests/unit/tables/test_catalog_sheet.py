"""A catalog's sheet reads back as what it was, whatever is in its cells."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from patternmill.identifiers import ItemKey, RunId
from patternmill.planning.changes import CurrentRow
from patternmill.planning.rows import RowRecord
from patternmill.states import RowStatus
from patternmill.tables.catalog import Catalog, read_catalog
from patternmill.tables.catalog_sheet import catalog_sheet, products_frame
from patternmill.tables.checks import Checked, check_rows
from patternmill.tables.results import RunResults

RUN = "20260301-093000-abcdef"
OWN = ("note", "Größe", "decision", "since")
CELL = st.one_of(
    st.text(st.characters(exclude_characters="\0\ufffe\uffff", exclude_categories=["Cs", "Cc"]), max_size=8),
    st.sampled_from(
        [
            "=1+1",
            "'=x",
            "''=x",
            "-3",
            "@x",
            "\tx",
            " = 1",
            "007",
            "1e5",
            "NA",
            "null",
            "TRUE",
            "2026-05-01",
            "a\nb",
            'a"b',
            "a;b,c",
        ]
    ),
)


def catalog(header: Sequence[str], rows: Sequence[Sequence[str]], delimiter: str) -> Catalog:
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=delimiter, lineterminator="\r\n").writerows([header, *rows])
    return read_catalog(text.getvalue().encode(), "spring.csv")


def part(checked: Checked) -> RunResults:
    """Return a file as its run left it: every accepted row was made."""
    rows = []
    for entry in checked.entries:
        sku = entry.row.sku if entry.row is not None else ""
        item = {"key": f"item-{sku}", "stage": "product", "attempts": 1} | dict.fromkeys(
            ("state", "request_id", "job_id", "result_id", "picture_url", "since")
        )
        outcome = {
            "status": RowStatus.SUCCEEDED if sku else RowStatus.REFUSED,
            "items": [item] * 2 if sku else [],
        }
        text = json.dumps(
            {"error_code": None, "error": None, "remedy": None, "kept": [], "takes": []} | outcome
        )
        rows.append(RowRecord(entry.line, sku, "{}", text))
    return RunResults(RUN, checked.catalog, rows).read()


def products(checked: Checked) -> list[CurrentRow]:
    return [
        CurrentRow(row.sku, row, ItemKey(f"item-{row.sku}"), "=P", "+p", 1e9, RunId(RUN))
        for row in checked.accepted
    ]


ROWS_OF_A_SHEET = {
    "rows": st.lists(st.tuples(CELL, CELL, CELL, CELL, CELL), min_size=1, max_size=6),
    "own": st.lists(st.sampled_from(OWN), unique=True),
}


@settings(max_examples=40)
@given(**ROWS_OF_A_SHEET, delimiter=st.sampled_from(",;\t"))
def test_every_own_cell_comes_back(rows: list[tuple[str, ...]], own: list[str], delimiter: str) -> None:
    """And the rows mean what they meant: the same is bought for each, or it is refused again."""
    check_round_trip(rows, own, delimiter, is_book=False)


@settings(max_examples=4)
@given(**ROWS_OF_A_SHEET)
def test_every_own_cell_of_a_workbook_comes_back(rows: list[tuple[str, ...]], own: list[str]) -> None:
    """A process of its own parses each, so there are fewer of them."""
    check_round_trip(rows, own, ",", is_book=True)


def check_round_trip(rows: list[tuple[str, ...]], own: list[str], delimiter: str, *, is_book: bool) -> None:
    header = ("sku", *own[:2], "prompt", "category", *own[2:], "=1")
    written = [(f"S-{number}", *row) for number, row in enumerate(rows)]
    before = check_rows(catalog(header, [row[: len(header)] for row in written], delimiter), None)
    table = catalog_sheet([part(before)], products_frame(products(before)), {}, 7)
    raw = table.workbook() if is_book else b"".join(table.csv(delimiter))
    after = check_rows(read_catalog(raw, "sheet.csv"), None)
    kept = after.catalog.columns.kept
    assert [after.catalog.header[at] for at in kept] == list(header)
    read, given_cells = (
        [tuple(cells[at] for at in places) for _, cells in one.catalog.sheet.records()]
        for one, places in ((after, kept), (before, range(len(header))))
    )
    if is_book:
        # Of a workbook, a cell of nothing but spaces is read as an empty one.
        given_cells = [tuple("" if cell.isspace() else cell for cell in cells) for cells in given_cells]
    assert read == given_cells
    bought = [[(row.sku, row.identity) for row in checked.accepted] for checked in (before, after)]
    assert bought[0] == bought[1]
    codes = [list(checked.problems["code"]) for checked in (before, after)]
    assert codes[0] == codes[1]
