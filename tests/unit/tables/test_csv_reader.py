"""The reader returns exactly what is written, with spreadsheet row numbers, or names the fault and its place."""

from __future__ import annotations

import csv
import io
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patternmill.errors import InputRefused
from patternmill.reading import FileCode, stable_bytes

from .samples import cells, read

ROWS = "sku,prompt,category\nA,herons,Mug\n"
CELL = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)


def test_missing_file_is_named(tmp_path: Path) -> None:
    """With the folder it was looked for in; an example, with its place in the checkout."""
    fault = refused(tmp_path / "nowhere.csv")
    assert fault.code == FileCode.FILE_MISSING
    assert f"nowhere.csv in {tmp_path}. Check" in str(fault)
    example = Path(__file__).resolve().parents[3] / "inputs" / "with_mistakes.csv"
    assert f"The example is {example}." in str(refused(tmp_path / "with_mistakes.csv"))


def refused(path: Path) -> InputRefused:
    with pytest.raises(InputRefused) as caught:
        stable_bytes(path)
    return caught.value


def test_folder_and_pipe_are_refused(tmp_path: Path) -> None:
    """What can be read only once cannot be checked for changes."""
    os.mkfifo(tmp_path / "pipe")
    assert refused(tmp_path).code == refused(tmp_path / "pipe").code == FileCode.NOT_A_FILE


@pytest.mark.parametrize("change", ["append", "rewrite", "replace", "touch"])
def test_file_that_changes_while_it_is_read_is_refused(tmp_path: Path, change: str) -> None:
    """Growing, rewriting in place with the old time, replacing and touching are all seen."""
    path = tmp_path / "spring.csv"
    path.write_text(ROWS)
    before = path.stat()

    def read_and_change(this: Path) -> bytes:
        raw = this.read_bytes()
        if change == "append":
            this.write_bytes(raw + b"B,b,Mug\n")
        elif change == "rewrite":
            this.write_bytes(raw.swapcase())
            os.utime(this, ns=(before.st_atime_ns, before.st_mtime_ns))
        elif change == "replace":
            (tmp_path / "new").write_bytes(raw)
            (tmp_path / "new").replace(this)
        else:
            os.utime(this, ns=(before.st_atime_ns, before.st_mtime_ns + 1_000_000_000))
        return raw

    with pytest.raises(InputRefused) as caught:
        stable_bytes(path, read=read_and_change)
    assert caught.value.code == FileCode.FILE_CHANGED


def test_row_numbers_are_those_of_a_spreadsheet() -> None:
    """The header is row 1, blank rows count, and a cell of several lines is still one row."""
    sheet = read('sku,prompt,category\n\nA,"one\ntwo\nthree",Mug\n,,\nB,b,Mug\n').sheet
    assert list(sheet.rows.index) == [3, 5]
    assert sheet.blank_rows == 2
    # Behind the last row too, in small files and in large ones.
    for count in (1, 100):
        assert read("sku,prompt,category\n" + "A,b,Mug\n" * count + "\n,,\n").sheet.blank_rows == 2


@given(st.lists(st.tuples(CELL.filter(str.strip), CELL, CELL, CELL), min_size=1, max_size=6))
def test_cells_are_kept_exactly(rows: list[tuple[str, ...]]) -> None:
    """Whatever a CSV writer can write is read back character by character."""
    text = io.StringIO(newline="")
    csv.writer(text, quoting=csv.QUOTE_ALL).writerows([("sku", "prompt", "category", "note"), *rows])
    assert cells(read(text.getvalue())) == rows


def test_quotes_of_other_files_are_kept() -> None:
    """A leading quote in a file that is not ours is part of the text."""
    assert cells(read("sku,prompt,category\n'-12,'=b,Mug\n")) == [("'-12", "'=b", "Mug")]


def test_columns_are_found_in_any_spelling() -> None:
    """Known columns, options, results and carried ones are distinguished; the header stays as written."""
    columns = read("Note, SKU,Option : Size,PROMPT,category_ID,RUN,status\nx,A,S,b,Mug,,\n").columns
    assert columns.named == {"sku": 1, "prompt": 3, "category": 4}
    assert columns.options == {2: "Size"}
    assert (columns.results, columns.carried, columns.run) == ((5, 6), (0,), 5)
    assert columns.header[1] == " SKU"


def test_what_nobody_sees_in_a_header_makes_no_other_column() -> None:
    """As web pages and chats leave it; the header stays as written."""
    columns = read("\u200bsku,prompt\u200b \u2060,\u00adcategory,\u200b note\nA,b,Mug,x\n").columns
    assert columns.named == {"sku": 0, "prompt": 1, "category": 2}
    assert columns.header[0] == "\u200bsku"


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ('A,b,Mug\nB,"open,Mug\nC,c,Mug\n', "row 3 is not closed"),
        ('A,"two\nlines",Mug\nB,"open,Mug\nC,c,Mug\n', r"row 3 \(line 4 of the text file\)"),
        ('A,b,Mug\nB,"open,Mug\nC,c,Mug\nD,"foxes",Mug\n', "row 3 is not closed"),
    ],
)
def test_open_quote_is_located(body: str, place: str) -> None:
    """The row of the spreadsheet, and the line of the text file where that differs."""
    with pytest.raises(InputRefused, match=place) as caught:
        read("sku,prompt,category\n" + body)
    assert caught.value.code == FileCode.OPEN_QUOTE
