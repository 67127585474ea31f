"""Corrections: what a person changed is found, composed, and merged into the very text that it corrected."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patternmill.catalog.catalog_file import CatalogFile
from patternmill.catalog.column_mapping import ColumnMapping
from patternmill.catalog.problems import Finding, RowCode
from patternmill.catalog.row_corrections import (
    Correction,
    CorrectionEnd,
    cells_of_rows,
    composed,
    differences,
)
from patternmill.sheets.csv_reader import parse_catalog
from patternmill.sheets.merged_rows import merge

HEADER = "sku,prompt,category,option:size,note"


def catalog(*rows: str, header: str = HEADER, mapping: dict[str, str] | None = None) -> CatalogFile:
    text = "\n".join([header, *rows]) + "\n"
    return parse_catalog(text.encode(), name="c.csv", mapping=ColumnMapping.of(mapping or {}), empty=True)


def found(before: CatalogFile, now: CatalogFile) -> list[Correction]:
    """As a run finds them in a results file."""
    old = {row.key: row for row in cells_of_rows(before) if row.key}
    return [one for row in cells_of_rows(now) if row.key in old for one in differences(old[row.key], row)]


def changes(before: CatalogFile, now: CatalogFile) -> list[tuple[str, str, str, str]]:
    return [(one.sku, one.column, one.was, one.value) for one in found(before, now)]


def cells(file: CatalogFile) -> list[tuple[str, ...]]:
    return [record.cells for record in file.records]


BEFORE = catalog("A,blue herons,Cusion,S,x", "B,TBD,Mug,S,y", ",ferns,Mug,S,z")


def test_changed_cells_of_the_contract_are_found() -> None:
    """Other columns, ends of lines, outer spaces, order and left out rows are no corrections."""
    now = catalog(",ferns,Mug,S,z", '"A"," blue herons ",Cushion,S,other')
    assert changes(BEFORE, now) == [("A", "category", "Cusion", "Cushion")]


def test_rows_are_known_by_their_sku() -> None:
    """Another sku is another row, and of rows that share one nobody knows which is which."""
    assert changes(BEFORE, catalog("C,ferns,Mug,S,z", "b,TBD,Mug,M,y")) == [
        ("b", "sku", "B", "b"),
        ("b", "option:size", "S", "M"),
    ]
    assert changes(catalog("A,geese,Mug,S,", "A,foxes,Mug,S,"), catalog("A,geese,Tote,S,")) == []


def test_corrections_are_merged_into_what_they_corrected() -> None:
    """Row numbers, blank rows, cells with line breaks and other columns stay."""
    source = catalog("A,blue herons,Cusion,S,x", "", 'B,"two\nlines",Mug,S,"a ""b"""')
    now = catalog("A,blue herons,Cushion,S,x")
    merged, overlay = merge(source, found(source, now))
    assert cells(merged) == [
        ("A", "blue herons", "Cushion", "S", "x"),
        ("B", "two\nlines", "Mug", "S", 'a "b"'),
    ]
    assert [record.line for record in merged.records] == [2, 4]
    assert (merged.header, merged.blank_rows, merged.encoding) == (source.header, 1, "utf-8-sig")
    assert [one.column for one in overlay.merged] == ["category"]


@pytest.mark.parametrize(
    ("cell", "end"), [("Cushion", CorrectionEnd.IN_SOURCE), ("Mug", CorrectionEnd.SOURCE_CHANGED)]
)
def test_the_source_wins(cell: str, end: CorrectionEnd) -> None:
    """Its file stays as it is; a row that it lacks ends nothing."""
    (one,) = found(BEFORE, catalog("A,blue herons,Cushion,S,x"))
    source = catalog(f"A,blue herons,{cell},S,x")
    merged, overlay = merge(source, [one, replace(one, source_row="sku:gone")])
    assert merged is source
    assert overlay.ended == ((one, end),)


def test_correction_of_a_correction_leads_from_the_source() -> None:
    """Back to the source's text it is none; and one that another file's old text led to begins there."""
    (first,) = found(BEFORE, catalog("A,blue herons,Cushin,S,x"))
    second = replace(first, was="Cushin", value="Cushion")
    added, replaced = composed([first], [second])
    assert ([(one.was, one.value) for one in added], replaced) == ([("Cusion", "Cushion")], [first])
    back = replace(first, was="Cushin", value="Cusion")
    assert composed([first], [back]) == ([], [first])
    stale = replace(first, was="Pillow", value="Mug")
    assert composed([first], [stale]) == ([stale], [first])


def test_the_same_file_once_more_leaves_what_its_first_time_found() -> None:
    """After a kill, or in a second round of one file: what holds leads from the source's text, once."""
    known = Correction("sku:a", "sku:a", "A", "category", "Cusion", "Cushion", "run-3")
    earlier = replace(known, value="Cushin", run_id="run-2", end=CorrectionEnd.REPLACED)
    again = replace(known, was="Cushin", run_id="")
    assert composed([earlier, known], [again]) == ([], [])
    other = replace(again, value="Mug")
    assert composed([earlier, known], [other]) == ([replace(other, was="Cusion")], [known])


texts = st.sampled_from(["", "A", "B", "a", "ferns", "two\nlines", "=1+1", 'quo"te', "x,y"])
rows = st.lists(st.tuples(texts, texts, texts), max_size=6)


def written(table: list[tuple[str, str, str]]) -> CatalogFile:
    lines = (",".join('"' + cell.replace('"', '""') + '"' for cell in row) for row in table)
    return catalog(*lines, header="sku,prompt,category")


@given(rows, st.lists(texts, min_size=18, max_size=18))
def test_whatever_is_corrected_is_what_the_next_run_reads(
    table: list[tuple[str, str, str]], news: list[str]
) -> None:
    """Row for row, where every row comes back with another prompt or category; twice gives the same."""
    source = written(table)
    edited = [
        (sku, news[3 * n] or prompt, news[3 * n + 1] or category)
        for n, (sku, prompt, category) in enumerate(table)
    ]
    pairs = dict.fromkeys(row.key for row in cells_of_rows(source))
    corrections = found(source, written(edited))
    merged, overlay = merge(source, corrections)
    assert {one.source_row for one in corrections} <= set(pairs)
    assert len(merged.records) == len(source.records)
    assert set(overlay.merged) == set(corrections)
    again, second = merge(source, corrections)
    assert (again.raw, second) == (merged.raw, overlay)


def test_corrected_cells_of_a_workbook_have_no_fault_any_more() -> None:
    """A cell that is displayed otherwise than it is refuses its row until its text is corrected; others still do."""
    date, number = (Finding(name, RowCode.NOT_TEXT, "a date", "") for name in ("prompt", "option:size"))
    source = replace(BEFORE, faults={2: (date, number), 3: (date,)}, notes=("from a workbook",))
    merged, _ = merge(source, found(BEFORE, catalog("A,blue herons at dawn,Cusion,S,x")))
    assert merged.faults == {2: (number,), 3: (date,)}
    assert merged.notes == source.notes
