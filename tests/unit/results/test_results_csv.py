"""results.csv and failures.csv: the input's cells come back as they were, whatever is in them."""

from __future__ import annotations

import codecs
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patternmill.catalog.rows import ADDED_COLUMNS, restore
from patternmill.results.row_files import CELL_LIMIT, table
from patternmill.sheets.csv_reader import parse_catalog
from patternmill.sheets.sheet_reader import read_table
from patternmill.states import RowStatus, Stage

from .builders import ALL_COLUMNS, HEADER, RUN, item, published, refused, row, table_of

NASTY = st.sampled_from(
    ["=1+1", "+1", "-3", "@x", "\tx", "\rx", "'", "'=x", "''=x", "a\rb", "a\nb", 'a"b', ",", " "]
)
TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=12)
CELL = st.one_of(TEXT, NASTY, st.sampled_from(["NA", "null", "007", "1e5", "TRUE", "🪿", "שלום"]))

#: The file has a column `note` of its own.
OURS = [name for name in ADDED_COLUMNS if name not in HEADER]


@given(cells=st.lists(st.tuples(CELL, CELL, CELL, CELL), min_size=1, max_size=6))
def test_every_cell_is_read_back_unchanged(cells: list[tuple[str, str, str, str]]) -> None:
    """The catalog's own reader finds in results.csv what was in the input, row by row."""
    rows = [replace(row("A"), cells=line) for line in cells]
    raw = b"".join(table(RUN, HEADER, ALL_COLUMNS, rows))
    again = parse_catalog(raw, name="results.csv")
    assert again.header == (*HEADER, *OURS)
    assert [record.cells[: len(HEADER)] for record in again.records] == cells
    assert again.columns.kept == tuple(ALL_COLUMNS)


def test_result_columns_of_an_earlier_result_are_replaced() -> None:
    """Only carried columns are kept, then the new result columns."""
    header = ("sku", "status", "prompt", "category", "error_code")
    rows = [replace(row("A"), cells=("A", "failed", "herons", "Cushion", "old"))]
    raw = b"".join(table(RUN, header, (0, 2, 3), rows)).decode("utf-8-sig")
    assert raw == (
        "sku,prompt,category,status,product_id,pattern_id,error_code,error,decision,note,run\r\n"
        "A,herons,Cushion,succeeded,prd-A,pat-A,,,,,run-7\r\n"
    )


def test_rows_keep_their_order(tmp_path: Path) -> None:
    """Also across the batches in which they are written."""
    skus = [f"S{n}" for n in range(2500, 0, -1)]
    published([row(sku) for sku in skus], tmp_path)
    assert [line[0] for line in table_of(tmp_path / "results.csv")[1:]] == skus


def test_malformed_rows_shift_nothing(tmp_path: Path) -> None:
    """Missing cells are empty; the text of surplus ones is added to the error, so that the table is rectangular."""
    surplus = ("A", "b", "c", "d", "one, two", 'say "x"')
    published([refused("A", cells=("A", "herons")), refused("A", cells=surplus)], tmp_path)
    _, short, long = table_of(tmp_path / "results.csv")
    assert short[:6] == ["A", "herons", "", "", "refused", ""]
    assert len(long) == len(HEADER) + len(OURS)
    assert long[8] == 'unknown value `Linnen`; Write `linen`. Surplus cells: ["one, two", "say \\"x\\""]'


def test_failures_have_the_rows_that_need_a_person(tmp_path: Path) -> None:
    """Failed, refused and held; not what the next run resumes by itself. It is read as a catalog of these rows."""
    published([*(row(status.value, status) for status in RowStatus), refused("=B")], tmp_path)
    lines = table_of(tmp_path / "failures.csv")
    assert lines[0] == table_of(tmp_path / "results.csv")[0]
    again = parse_catalog((tmp_path / "failures.csv").read_bytes(), name="failures.csv")
    assert [record.cells[0] for record in again.records] == ["failed", "refused", "held", "=B"]


def test_formulas_of_the_service_are_defused(tmp_path: Path) -> None:
    """An ID or a reason is text from outside like any other."""
    hostile = {"error_code": "@code", "error": '=HYPERLINK("http://x")'}
    items = (item(Stage.PATTERN, "A", result_id="+p"), item(Stage.PRODUCT, "A", result_id="=ID"))
    published([row("A", RowStatus.FAILED, items=items, **hostile)], tmp_path)
    line = table_of(tmp_path / "results.csv")[1]
    assert line[5:9] == ["'=ID", "'+p", "'@code", '\'=HYPERLINK("http://x")']


@pytest.mark.parametrize("error", ["nul \0 within half a pair \ud83d", "x" * (CELL_LIMIT * 5)])
def test_texts_of_the_service_never_make_the_file_unreadable(tmp_path: Path, error: str) -> None:
    """NUL, half a character, or a text without end."""
    published([row("A", RowStatus.FAILED, error=error)], tmp_path)
    again = parse_catalog((tmp_path / "results.csv").read_bytes(), name="results.csv")
    assert again.records[0].cells[0] == "A"


@pytest.mark.parametrize(("encoding", "delimiter"), [("utf-16", ";"), ("cp1252", "\t"), (None, None)])
def test_tables_are_for_the_program_that_wrote_the_sheet(encoding: str | None, delimiter: str | None) -> None:
    """In its delimiter; begun with a byte order mark, without which Excel reads `LÃ¼neburg`, and saves that."""
    run = replace(RUN, input_encoding=encoding, options={"reading": {"format": "x", "delimiter": delimiter}})
    raw = b"".join(table(run, HEADER, ALL_COLUMNS, [row("A")]))
    assert raw.startswith(codecs.BOM_UTF8) and raw.count(codecs.BOM_UTF8) == 1
    assert raw.decode("utf-8-sig").splitlines()[0] == (delimiter or ",").join([*HEADER, *OURS])


def test_failures_of_a_workbook_are_one_too(tmp_path: Path) -> None:
    """All of it is text, formulas included; it reads back as it was, and is the same whenever it is written."""
    run = replace(RUN, options={"reading": {"format": "Excel workbook"}})
    odd = ("007", "=1+1 \x01", "'x", "")
    rows = [refused("007", cells=odd), row("B")]
    for folder in ("one", "two"):
        published(rows, tmp_path / folder, run)
    first, second = ((tmp_path / folder / "failures.xlsx").read_bytes() for folder in ("one", "two"))
    assert first == second
    table = read_table(first, "failures.xlsx")
    assert table.header == (*HEADER, *OURS)
    ((_, cells),) = table.records
    assert [restore(cell) for cell in cells[:4]] == ["007", "=1+1 \ufffd", "'x", ""]
