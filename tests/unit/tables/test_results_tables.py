"""results.csv and failures.csv: the input's cells come back as they were, whatever is in them."""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patternmill.states import RowStatus, Stage
from patternmill.tables.catalog import read_catalog
from patternmill.tables.checks import check_rows
from patternmill.tables.columns import ADDED_COLUMNS
from patternmill.tables.written import CELL_LIMIT, restore
from tests.row_results import RowResult

from .builders import ALL_COLUMNS, HEADER, RUN, item, published, refused, results_of, row, table_of

NASTY = st.sampled_from(
    ["=1+1", "+1", "-3", "@x", "\tx", "\rx", "'", "'=x", "''=x", "a\rb", "a\nb", 'a"b', ",", " "]
)
#: Without NUL, which no file may have, and without Ctrl-Z, which ends a file of some old programs.
TEXT = st.text(st.characters(exclude_characters="\0\x1a", exclude_categories=["Cs"]), max_size=12)
CELL = st.one_of(TEXT, NASTY, st.sampled_from(["NA", "null", "007", "1e5", "TRUE", "🪿", "שלום"]))

#: The file has a column `note` of its own.
OURS = [name for name in ADDED_COLUMNS if name not in HEADER]


def table(rows: Sequence[RowResult], header: Sequence[str] = HEADER) -> bytes:
    results = results_of(rows, header).read()
    return b"".join(results.table(RUN.run_id).csv(","))


@given(cells=st.lists(st.tuples(st.just("A"), CELL, CELL, CELL), min_size=1, max_size=6))
def test_every_cell_is_read_back_unchanged(cells: list[tuple[str, str, str, str]]) -> None:
    """The catalog's own reader finds in results.csv what was in the input, row by row."""
    rows = [replace(row("A"), cells=line) for line in cells]
    raw = table(rows)
    again = read_catalog(raw, "results.csv")
    assert again.header == (*HEADER, *OURS)
    assert [line[: len(HEADER)] for _, line in again.sheet.records()] == cells
    assert again.columns.kept == tuple(ALL_COLUMNS)


def test_result_columns_of_an_earlier_result_are_replaced() -> None:
    """Only carried columns are kept, then the new result columns."""
    header = ("sku", "status", "prompt", "category", "error_code", "run")
    rows = [replace(row("A"), cells=("A", "failed", "herons", "Cushion", "old", "run-6"))]
    raw = table(rows, header).decode("utf-8-sig")
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
    """Missing cells are empty; surplus ones have columns of their own, behind the others of their row."""
    surplus = ("A", "b", "c", "d", "one, two", 'say "x"')
    published([refused("A", cells=("A", "herons")), refused("A", cells=surplus)], tmp_path)
    header, short, long = table_of(tmp_path / "results.csv")
    assert header == [*HEADER, "surplus:1", "surplus:2", *OURS]
    assert short[:8] == ["A", "herons", "", "", "", "", "refused", ""]
    assert tuple(long[:6]) == surplus and len(long) == len(header)


def test_row_with_surplus_cells_stays_refused_until_they_are_put_in_their_place(tmp_path: Path) -> None:
    """None of its cells is lost when failures.csv is imported again, and it is not bought without them."""
    published([refused("A", cells=("A", "blue", " red", "Mug", "a note"))], tmp_path)
    path = tmp_path / "failures.csv"
    found = check_rows(read_catalog(path.read_bytes(), "failures.csv"), None)
    assert list(found.problems["code"]) == ["surplus_cells"]
    assert list(found.problems["message"]) == ["the row has 5 cells, but the header has 4"]
    ((_, cells),) = found.catalog.sheet.records()
    assert (cells[:4], cells[-1]) == (("A", "blue", " red", "Mug"), "a note")
    corrected = path.read_bytes().replace(b"A,blue, red,Mug,a note", b'A,"blue, red",Mug,a note,')
    found = check_rows(read_catalog(corrected, "failures.csv"), None)
    assert [row.prompt for row in found.accepted] == ["blue, red"]


def test_failures_have_the_rows_that_need_a_person(tmp_path: Path) -> None:
    """Failed, refused and held; not what the next run resumes by itself. It is read as a catalog of these rows."""
    published([*(row(status.value, status) for status in RowStatus), refused("=B")], tmp_path)
    lines = table_of(tmp_path / "failures.csv")
    assert lines[0] == table_of(tmp_path / "results.csv")[0]
    again = read_catalog((tmp_path / "failures.csv").read_bytes(), "failures.csv")
    assert list(again.sheet.column(0)) == ["failed", "refused", "held", "=B"]


def test_formulas_of_the_service_are_defused(tmp_path: Path) -> None:
    """An ID or a reason is text from outside like any other."""
    hostile = {"error_code": "@code", "error": '=HYPERLINK("http://x")'}
    items = (item(Stage.PATTERN, "A", result_id="+p"), item(Stage.PRODUCT, "A", result_id="=ID"))
    published([row("A", RowStatus.FAILED, items=items, **hostile)], tmp_path)
    line = table_of(tmp_path / "results.csv")[1]
    assert line[5:9] == ["'=ID", "'+p", "'@code", '\'=HYPERLINK("http://x")']


@pytest.mark.parametrize("error", ["nul \0", "x" * (CELL_LIMIT * 5)])
def test_texts_of_the_service_never_make_the_file_unreadable(tmp_path: Path, error: str) -> None:
    """NUL, or a text without end."""
    published([row("A", RowStatus.FAILED, error=error)], tmp_path)
    again = read_catalog((tmp_path / "results.csv").read_bytes(), "results.csv")
    assert list(again.sheet.column(0)) == ["A"]


@pytest.mark.parametrize(("encoding", "delimiter"), [("utf-16", ";"), ("cp1252", "\t"), (None, None)])
def test_tables_are_for_the_program_that_wrote_the_sheet(
    tmp_path: Path, encoding: str | None, delimiter: str | None
) -> None:
    """In its delimiter; begun with a byte order mark, without which Excel reads `LÃ¼neburg`, and saves that."""
    run = replace(RUN, input_encoding=encoding, options={"reading": {"format": "x", "delimiter": delimiter}})
    published([row("A")], tmp_path, run)
    raw = (tmp_path / "results.csv").read_bytes()
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
    book = read_catalog(first, "failures.xlsx")
    assert book.header == (*HEADER, *OURS)
    ((_, cells),) = book.sheet.records()
    assert [restore(cell) for cell in cells[:4]] == ["007", "=1+1 \ufffd", "'x", ""]
