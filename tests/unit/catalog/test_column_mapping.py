"""Columns under other names: the header stays the file's own, the columns are found by the mapping."""

from __future__ import annotations

from patternmill.catalog.column_mapping import ColumnMapping
from patternmill.sheets.csv_reader import parse_catalog

RAW = b"Art. no.,Prompt text,Product type,Colour\nA1,roses,Cushion,red\n"
MAPPING = ColumnMapping.of(
    {"Art. No.": "sku", " prompt  TEXT": "prompt", "product type": "category", "Colour": "option:color"}
)


def test_columns_are_found_under_the_names_that_a_file_has() -> None:
    file = parse_catalog(RAW, name="spring.csv", mapping=MAPPING)
    assert file.header == ("Art. no.", "Prompt text", "Product type", "Colour")
    assert (file.columns.sku, file.columns.prompt, file.columns.category) == (0, 1, 2)
    assert [(option.index, option.name) for option in file.columns.options] == [(3, "color")]
    assert file.records[0].cells == ("A1", "roses", "Cushion", "red")


def test_a_file_in_the_names_of_the_contract_needs_no_mapping() -> None:
    file = parse_catalog(b"sku,prompt,category\nA1,roses,Cushion\n", name="spring.csv", mapping=MAPPING)
    assert (file.columns.sku, file.columns.prompt, file.columns.category) == (0, 1, 2)
