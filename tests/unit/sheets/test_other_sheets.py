"""JSON, Parquet and Shopify exports become the same rows; and whatever a table holds, every format gives it back."""

from __future__ import annotations

import gzip
import io
import json
from typing import Any

import pandas
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patternmill.catalog.column_mapping import ColumnMapping
from patternmill.catalog.problems import FileCode
from patternmill.catalog.read_limits import ReadLimits
from patternmill.catalog.row_checks import check_rows
from patternmill.errors import InputRefused
from tests.unit.catalog.samples import OFFER, codes

from .sheet_files import (
    HEADER,
    ROWS,
    TABLE,
    archive,
    delimited,
    ods_row,
    open_document,
    raw_workbook,
    read,
    workbook,
    xml_row,
)

OBJECTS = [dict(zip(HEADER, row, strict=True)) for row in ROWS]


def parquet(columns: dict[str, list[Any]]) -> bytes:
    content = io.BytesIO()
    pandas.DataFrame(columns).to_parquet(content)
    return content.getvalue()


@pytest.mark.parametrize(
    "raw",
    [
        "\n".join(map(json.dumps, OBJECTS)).encode(),
        "\ufeff\n".join(json.dumps(one, ensure_ascii=False) for one in OBJECTS[:1]).encode("utf-16")
        + ("\n" + json.dumps(OBJECTS[1])).encode("utf-16-le"),
        json.dumps(OBJECTS, indent=2).encode(),
        parquet({name: [row[i] for row in ROWS] for i, name in enumerate(HEADER)}),
        gzip.compress(delimited(TABLE, ";")),
    ],
    ids=["lines", "lines in UTF-16", "array", "parquet", "gzip"],
)
def test_records_are_rows_from_the_second_on(raw: bytes) -> None:
    file = read(raw)
    assert [(record.line, record.cells) for record in file.records] == [(2, ROWS[0]), (3, ROWS[1])]


def test_json_numbers_are_the_texts_that_are_written() -> None:
    """Nulls and missing keys are empty, objects stay JSON, blank lines count."""
    lines = '{"sku": 1.50, "prompt": 1e3, "category": "Mug"}\n\n{"sku": 7, "selections": {"size": "11oz"}, "x": null}\n'
    file = read(lines.encode())
    assert file.header == ("sku", "prompt", "category", "selections", "x")
    assert [record.line for record in file.records] == [2, 4]
    assert file.records[0].cells == ("1.50", "1e3", "Mug", "", "")
    assert file.records[1].cells == ("7", "", "", '{"size": "11oz"}', "")


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        (b'{"sku": "A"\n{"sku": "B"}', "line 1"),
        (b'{"sku": "A", "sku": "B"}', "twice"),
        (b'{"sku": "A"}\n["B"]', "item 2 is no object"),
        (b'{"sku": ' + b"[" * 100_000, "nested too deeply"),
        (b"[" * 200_000, "nested too deeply"),
        (b'{"sku": 1' + b"0" * 5000 + b"}", "line 1: a number has more than 4,000 digits"),
        (b'{"sku": "\\ud83d", "prompt": "a", "category": "Mug"}', "half a character"),
    ],
)
def test_malformed_json_is_refused_in_a_sentence(raw: bytes, shown: str) -> None:
    with pytest.raises(InputRefused, match=shown) as caught:
        read(raw)
    assert caught.value.code in (FileCode.MALFORMED_JSON, FileCode.UNREADABLE_ENCODING)


def test_array_in_one_long_line_is_read() -> None:
    """Longer than a row of text may be."""
    many = json.dumps([OBJECTS[0] | {"sku": f"A-{n}", "note": "x" * 5000} for n in range(1000)])
    assert len(read(many.encode()).records) == 1000


def test_title_in_brackets_is_no_json() -> None:
    assert len(read(delimited([["[Draft] spring"], *TABLE])).records) == 2


def test_parquet_numbers_with_fractions_are_no_skus() -> None:
    """A column of whole numbers with a gap is one of fractions to pandas."""
    raw = parquet({"sku": [1, 2], "prompt": ["a", "b"], "category": ["Mug"] * 2, "price": [1.5, None]})
    assert [record.cells for record in read(raw).records] == [
        ("1", "a", "Mug", "1.5"),
        ("2", "b", "Mug", ""),
    ]
    raw = parquet({"sku": [1.0, 2.0], "prompt": ["a", "b"], "category": ["Mug"] * 2})
    found = check_rows(read(raw), OFFER, prompt_limit=100)
    assert codes(found) == {2: ["not_text"], 3: ["not_text"]}


SHOPIFY = """Handle,Title,Type,Option1 Name,Option1 Value,Option2 Name,Option2 Value,Variant SKU,Image Src,Status
heron,Blue herons,Mug,Size,11oz,Fabric,linen,H-1,http://x/1,active
heron,,,,15oz,,cotton,H-2,http://x/2,
heron,,,,,,,,http://x/3,
rose,Roses,Mug,Title,Default Title,,,R-1,,draft
"""


def test_variants_of_a_shopify_product_have_what_its_first_row_says() -> None:
    """Each option is a column; further pictures are no rows; without a mapping nothing is read."""
    with pytest.raises(InputRefused) as caught:
        read(SHOPIFY.encode())
    assert caught.value.code == FileCode.NO_KNOWN_COLUMNS
    mapping = ColumnMapping.of(
        {"Variant SKU": "sku", "Title": "prompt", "Type": "category", "Size": "option:size"}
    )
    file = read(SHOPIFY.encode(), mapping)
    found = check_rows(file, OFFER, prompt_limit=100)
    assert codes(found) == {}
    assert [(row.line, row.sku, row.prompt, row.selections) for row in found.rows] == [
        (2, "H-1", "Blue herons", {"size": "11oz"}),
        (3, "H-2", "Blue herons", {"size": "15oz"}),
        (5, "R-1", "Roses", {}),
    ]
    assert file.header[-3:] == ("note:Status", "Size", "Fabric")
    assert file.notes == ("Skipped, as further pictures of a product: 1 row.",)


def test_results_of_a_shopify_export_are_read_as_results() -> None:
    mapping = ColumnMapping.of({"Variant SKU": "sku", "Title": "prompt", "Type": "category"})
    header = "Handle,Title,Type,Option1 Name,Option1 Value,Variant SKU,status,run\n"
    file = read(f"{header}heron,Blue herons,Mug,,,H-1,failed,r\nheron,,,,,,not_started,r\n".encode(), mapping)
    assert file.columns.is_results_file and file.layout is None
    assert [record.cells[1] for record in file.records] == ["Blue herons", ""]


CELL = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufeff"), max_size=8)
XML_CELL = CELL.filter(lambda cell: "\ufffe" not in cell and "\uffff" not in cell and "_x" not in cell)


@settings(max_examples=25)
@given(st.lists(st.tuples(CELL.filter(str.strip), CELL, CELL), min_size=1, max_size=4))
def test_texts_survive_every_text_format(rows: list[tuple[str, ...]]) -> None:
    table = [("sku", "prompt", "category"), *rows]
    objects = [dict(zip(table[0], row, strict=True)) for row in rows]
    for raw in (
        delimited(table, ";"),
        delimited(table, "\t", "utf-16"),
        "\n".join(map(json.dumps, objects)).encode(),
        json.dumps(objects).encode(),
        parquet({name: [row[i] for row in rows] for i, name in enumerate(table[0])}),
    ):
        assert [record.cells for record in read(raw).records] == rows


@settings(max_examples=15)
@given(st.lists(st.tuples(XML_CELL.filter(str.strip), XML_CELL, XML_CELL), min_size=1, max_size=3))
def test_texts_survive_workbooks(rows: list[tuple[str, ...]]) -> None:
    rows = [tuple(cell.lstrip("=") or "x" for cell in row) for row in rows]
    file = read(workbook({"Artikel": [("sku", "prompt", "category"), *rows]}))
    assert [record.cells for record in file.records] == rows


FEW = ReadLimits(size=200_000, rows=1000, columns=50, cells=5000)
HEAD = xml_row(1, HEADER[:3])
BOMBS: dict[str, bytes] = {
    "zip bomb": raw_workbook(HEAD + "<x/>" * 100_000),
    "last cell": raw_workbook(HEAD + '<row r="900"><c r="AX900"><v>1</v></c></row>'),
    "column beyond all": raw_workbook(HEAD + '<row r="2"><c r="ZZZZZZ2"><v>1</v></c></row>'),
    "row beyond all": raw_workbook(HEAD + '<row r="99999999999"><c><v>1</v></c></row>'),
    "one text named often": raw_workbook(
        HEAD + '<row r="2">' + '<c t="s"><v>0</v></c>' * 40 + "</row>", f"<si><t>{'x' * 10_000}</t></si>"
    ),
    "repeated cell": open_document(
        ods_row(HEADER)
        + ods_row(
            ['<table:table-cell table:number-columns-repeated="99999"><text:p>x</text:p></table:table-cell>']
        )
    ),
    "repeated row": open_document(ods_row(HEADER) + ods_row(ROWS[0], 'table:number-rows-repeated="99999"')),
    "repeated text": open_document(
        ods_row(HEADER) + ods_row(["x" * 1000] * 5, 'table:number-rows-repeated="500"')
    ),
    "keys of JSON": "\n".join(json.dumps({f"k{i}": 1}) for i in range(60)).encode(),
    "rows of Parquet": parquet({"sku": ["A"] * 2000, "prompt": ["x"] * 2000, "category": ["Mug"] * 2000}),
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_limits_hold_for_every_format(bomb: str) -> None:
    with pytest.raises(InputRefused) as caught:
        read(BOMBS[bomb], limits=FEW)
    assert caught.value.code == FileCode.FILE_TOO_LARGE
    assert caught.value.remedy


ENTITIES = '<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]>'
DAMAGED: dict[str, bytes] = {
    "entities": archive({"content.xml": f"{ENTITIES}<x>&b;</x>"}),
    "no XML": archive({"content.xml": b"\0\1\2"}),
    "a number that is none": open_document('<table:table-row table:number-rows-repeated="x"/>'),
    "a place that is none": raw_workbook('<row r="1"><c r="12AB"><v>1</v></c></row>'),
    "no worksheet": archive({"xl/workbook.xml": b"<workbook/>"}),
    "parquet": b"PAR1" + b"\0" * 40 + b"PAR1",
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_files_are_refused_in_a_sentence(name: str) -> None:
    with pytest.raises(InputRefused) as caught:
        read(DAMAGED[name])
    assert caught.value.code in (FileCode.FILE_UNREADABLE, FileCode.EMPTY_FILE)
    assert caught.value.remedy


@settings(max_examples=60)
@given(st.data())
def test_no_change_of_a_file_ends_in_a_traceback(data: st.DataObject) -> None:
    """A byte changed, or the end cut off: read, or refused in a sentence."""
    raw = bytearray(data.draw(st.sampled_from([_BOOK, _DOCUMENT, _PARQUET, delimited(TABLE, ";", "utf-16")])))
    for _ in range(data.draw(st.integers(1, 3))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    try:
        read(bytes(raw[: data.draw(st.integers(1, len(raw)))] if data.draw(st.booleans()) else raw))
    except InputRefused as refused:
        assert refused.remedy


_BOOK, _DOCUMENT = workbook({"Artikel": TABLE}), open_document("".join(map(ods_row, TABLE)))
_PARQUET = parquet({name: [row[i] for row in ROWS] for i, name in enumerate(HEADER)})
