"""The corrected copy: the source's own form with other texts in it, under a name that is free."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from patternmill.catalog.corrected_copy import source_stem, write_corrected
from patternmill.catalog.fixes import Edits
from patternmill.catalog.sheets import read_catalog


def copy_of(source: Path, edits: Edits) -> bytes:
    return write_corrected(source, read_catalog(source), edits).read_bytes()


def test_rows_keep_their_numbers_and_texts(tmp_path: Path) -> None:
    """Blank rows, quoted line breaks and the ends of lines too; in UTF-8 with its mark, as spreadsheets need it."""
    source = tmp_path / "spring.csv"
    source.write_bytes(b'sku,prompt,category\r\n\r\nA,"a\nb, c",Mugg\r\nB,b,Mug\r\n')
    assert copy_of(source, Edits(cells={(3, 2): "Mug"})) == (
        b'\xef\xbb\xbfsku,prompt,category\r\n\r\nA,"a\nb, c",Mug\r\nB,b,Mug\r\n'
    )


def test_other_encodings_become_utf_8(tmp_path: Path) -> None:
    source = tmp_path / "spring.csv"
    source.write_bytes("sku,prompt,category\nA,Lüneburg,Mugg\n".encode("utf-16"))
    assert (
        copy_of(source, Edits(cells={(2, 2): "Mug"})).decode("utf-8-sig").splitlines()[1] == "A,Lüneburg,Mug"
    )


def test_new_column_is_the_last_of_each_row(tmp_path: Path) -> None:
    """But not of one that does not fit the header."""
    source = tmp_path / "spring.csv"
    source.write_text("sku,prompt,category\nA,b,Cushion\nB,b\n")
    edits = Edits({3: "option:fabric"}, {(2, 3): "linen"})
    rows = list(csv.reader(io.StringIO(copy_of(source, edits).decode("utf-8-sig"))))
    assert rows == [
        ["sku", "prompt", "category", "option:fabric"],
        ["A", "b", "Cushion", "linen"],
        ["B", "b"],
    ]


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    """Neither the source nor an earlier copy; a copy of a copy is numbered."""
    source = tmp_path / "spring.csv"
    source.write_text("sku,prompt,category\nA,b,Mugg\n")
    edits = Edits(cells={(2, 2): "Mug"})
    first = write_corrected(source, read_catalog(source), edits)
    second = write_corrected(first, read_catalog(first), edits)
    assert [first.name, second.name] == ["spring.corrected.csv", "spring.corrected-2.csv"]
    assert source.read_text() == "sku,prompt,category\nA,b,Mugg\n"


def test_cells_of_results_stay_defused(tmp_path: Path) -> None:
    """A corrected failures.csv is one still."""
    source = tmp_path / "failures.csv"
    source.write_text("sku,prompt,category,status,error_code\n'=A,b,Mugg,refused,unknown_category\n")
    assert copy_of(source, Edits(cells={(2, 1): "=b"})).decode().splitlines()[1].startswith("'=A,'=b,Mugg")


@pytest.mark.parametrize("name", ["spring.csv", "spring.corrected.csv", "spring.Corrected-12.xlsx"])
def test_copies_belong_to_the_catalog_of_their_source(name: str) -> None:
    assert source_stem(Path(name)) == "spring"
