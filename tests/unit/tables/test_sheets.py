"""Text files: each is read exactly as it is written, with spreadsheet row numbers, or refused with its place."""

from __future__ import annotations

import codecs
import csv
import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patternmill.errors import InputRefused
from patternmill.reading import FileCode
from patternmill.tables.text_encodings import likely_encodings

from .samples import cells, read, rows
from .sheet_files import HEADER, ROWS, TABLE, delimited

HEAD = "sku,prompt,category\n"
GOOD = "A,herons,Mug\n"
CELL = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)


def refused(raw: bytes | str, **choices: Any) -> InputRefused:
    with pytest.raises(InputRefused) as caught:
        read(raw, **choices)
    return caught.value


def headed(header: str) -> str:
    return f"{header}\n{','.join('x' for _ in header.split(','))}\n"


ENCODINGS = {"no such encoding": "klingon", "an encoding of host names": "punycode"}
REFUSED: dict[str, tuple[str | bytes, FileCode]] = {
    "no bytes": ("", FileCode.EMPTY_FILE),
    "only a line that names its delimiter": ("sep=;\n", FileCode.EMPTY_FILE),
    "a quote for its delimiter": ('sep="\nsku\n', FileCode.WRONG_DELIMITER),
    "only a mark": (codecs.BOM_UTF8, FileCode.EMPTY_FILE),
    "header and blank rows": (HEAD + "\n,,\n  \n", FileCode.HEADER_ONLY),
    "no sku": (headed("prompt,category"), FileCode.MISSING_COLUMN),
    "double sku": (headed("sku,prompt,category,sku"), FileCode.DUPLICATE_HEADER),
    "double option": (headed("sku,prompt,category,option:size,Option: SIZE"), FileCode.DUPLICATE_HEADER),
    "category twice over": (headed("sku,prompt,category,category_id"), FileCode.CONFLICTING_COLUMNS),
    "selections twice over": (
        headed("sku,prompt,category,selections,option:size"),
        FileCode.CONFLICTING_COLUMNS,
    ),
    "option without a name": (headed("sku,prompt,category,option:"), FileCode.BAD_HEADER),
    "option with a hidden turn": (headed("sku,prompt,category,option:si\u202eze"), FileCode.BAD_HEADER),
    "a NUL character": (HEAD + "A,he\0rons,Mug\n", FileCode.NUL_BYTES),
    "UTF-16 without its mark": ((HEAD + GOOD).encode("utf-16-le"), FileCode.NUL_BYTES),
    "cp1252": ((HEAD + "A,café,Mug\n").encode("cp1252"), FileCode.UNREADABLE_ENCODING),
    "a surrogate in UTF-8": (b"sku,prompt,category\nA,\xed\xa0\x80,Mug\n", FileCode.UNREADABLE_ENCODING),
    "no such encoding": (HEAD + GOOD, FileCode.UNKNOWN_ENCODING),
    "an encoding of host names": (HEAD + GOOD, FileCode.UNKNOWN_ENCODING),
    "a quote open to the end": (HEAD + GOOD + 'B,"herons,Mug\nC,foxes,Mug\n', FileCode.OPEN_QUOTE),
    "a quote open for megabytes": (
        HEAD + 'B,"herons,Mug\n' + "C,foxes,Mug\n" * 20000,
        FileCode.CELL_TOO_LONG,
    ),
    "text after a closing quote": (HEAD + 'A,"herons" in reeds,Mug\n', FileCode.STRAY_QUOTE),
    "their own status column": ("sku,prompt,category,Status\nA,b,Mug,active\n", FileCode.RESERVED_COLUMN),
}


@pytest.mark.parametrize("name", REFUSED)
def test_unreadable_file_is_refused_whole(name: str) -> None:
    """The refusal has its code, and a message and a remedy that help a person."""
    raw, code = REFUSED[name]
    fault = refused(raw, encoding=ENCODINGS.get(name))
    assert fault.code == code
    assert "spring.csv" in fault.message and fault.remedy


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ('A,b,Mug\nB,"open,Mug\nC,c,Mug\n', "row 3 is not closed"),
        ('A,"two\nlines",Mug\nB,"open,Mug\nC,c,Mug\n', "row 3 (line 4 of the text file)"),
        ('A,b,Mug\nB,"open,Mug\nC,c,Mug\nD,"foxes",Mug\n', "row 3 is not closed"),
    ],
)
def test_open_quote_is_located(body: str, place: str) -> None:
    """The message has the row of the spreadsheet, and the line of the text file where that differs."""
    assert place in refused(HEAD + body).message


#: Files by what is in them, each with the numbers of its rows below the header.
READ: dict[str, tuple[str | bytes, list[int]]] = {
    "mixed line breaks": ("sku,prompt,category\r\nA,b,Mug\nB,c,Mug\rC,d,Mug", [2, 3, 4]),
    "UTF-8 with its mark": (codecs.BOM_UTF8 + (HEAD + GOOD).encode(), [2]),
    "a line that names the delimiter": (b"\xef\xbb\xbfsep=;\r\n" + delimited(TABLE, ";"), [2, 3]),
    "header after blank rows": ("\n,,\n" + HEAD + GOOD, [4]),
    "blank rows": (HEAD + "\nA,b,Mug\n\n,,\nB,c,Nope\n\n", [3, 6]),
    # More rows than are searched for the header.
    "many rows": (HEAD + GOOD * 1100 + "\n,,\n", list(range(2, 1102))),
    "line breaks within quotes": (HEAD + 'A,"one\ntwo\r\nthree",Mug\nB,b,Nope\n', [2, 3]),
    "quotes": (HEAD + 'A,"the ""big"" heron, again",Mug\nB,5" tall herons,Mug\n', [2, 3]),
    "titles": (delimited([["Spring list"], ["by", "Ann"], [], *TABLE]), [5, 6]),
    **{
        f"a sign that ends a file of DOS {end!r} in {encoding}": ((HEAD + GOOD + end).encode(encoding), [2])
        for end, encoding in (("\x1a", "utf-8"), ("\n\x1a\x1a\r\n\r\n", "utf-16"), ("\x1a\n", "cp1252"))
    },
}


@pytest.mark.parametrize("name", READ)
def test_each_row_has_the_number_of_a_spreadsheet(name: str) -> None:
    """The first row is 1, blank rows count, and a cell of several lines is still one row."""
    raw, numbers = READ[name]
    sheet = read(raw).sheet
    assert list(sheet.rows.index) == numbers
    assert sheet.blank_rows == {"blank rows": 4, "many rows": 2}.get(name, 0)


@given(st.text('ab,,\n\n\r"" ', max_size=40))
def test_no_row_is_lost(body: str) -> None:
    """A file is refused, or has as many rows as the independent count, each at its own row number."""
    try:
        sheet = read(HEAD + body).sheet
    except InputRefused as fault:
        assert fault.code in {FileCode.HEADER_ONLY, FileCode.OPEN_QUOTE, FileCode.STRAY_QUOTE}
    else:
        assert len(sheet.rows) == count_rows(HEAD + body) - 1
        assert len(sheet.rows) + sheet.blank_rows + 1 >= sheet.rows.index[-1]


def count_rows(text: str) -> int:
    """Count filled rows without a CSV reader, by the place of the next character."""
    count, content, place = 0, False, "start"
    for character in text.replace("\r\n", "\n").replace("\r", "\n") + "\n":
        if character == '"' and place in {"start", "quoted", "after quote"}:
            content = content or place == "after quote"
            place = "after quote" if place == "quoted" else "quoted"
        elif place == "quoted":
            content = content or not character.isspace()
        elif character == "\n":
            count, content, place = count + content, False, "start"
        else:
            content = content or not (character == "," or character.isspace())
            place = "start" if character == "," else "plain"
    return count


@given(st.lists(st.tuples(CELL.filter(str.strip), CELL, CELL, CELL), min_size=1, max_size=6))
def test_cells_are_kept_exactly(written: list[tuple[str, ...]]) -> None:
    """Whatever a CSV writer can write is read back character by character."""
    text = io.StringIO(newline="")
    csv.writer(text, quoting=csv.QUOTE_ALL).writerows([("sku", "prompt", "category", "note"), *written])
    assert cells(read(text.getvalue())) == written


def test_short_and_long_rows_lose_nothing() -> None:
    """Cells that a row lacks are empty; those beyond the header are kept."""
    catalog = read(f"{HEAD}A\nB,blue, red, green,Mug\nC,b,Mug,,\n'-12,'=b,Mug\n")
    assert cells(catalog) == [
        ("A", "", ""),
        ("B", "blue", " red", " green", "Mug"),
        ("C", "b", "Mug", "", ""),
        # A leading quote in a file that is not ours is part of the text.
        ("'-12", "'=b", "Mug"),
    ]
    assert (catalog.sheet.short, catalog.sheet.surplus) == ({2: 1}, {3: (" green", "Mug"), 4: ("", "")})


def test_columns_are_found_in_any_spelling() -> None:
    """Known columns, options, results and carried ones are distinguished; the header stays as written."""
    columns = read(
        "Note,\u200b SKU,Option : Size,PROMPT\u200b \u2060,\u00adcategory_ID,RUN,status\nx,A,S,b,Mug,,\n"
    ).columns
    assert columns.named == {"sku": 1, "prompt": 3, "category": 4}
    assert columns.options == {2: "Size"}
    assert (columns.results, columns.carried, columns.run) == ((5, 6), (0,), 5)
    assert columns.header[1] == "\u200b SKU"


# --- delimiters, encodings, headers


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize(
    ("mark", "encoding"),
    [(b"", "utf-8"), (codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le")],
)
def test_table_is_read_in_every_dialect(delimiter: str, mark: bytes, encoding: str) -> None:
    """Excel writes CSV with the system's delimiter, and Unicode text."""
    catalog = read(mark + delimited(TABLE, delimiter, encoding))
    assert catalog.sheet.header == HEADER
    assert cells(catalog) == list(ROWS)


def test_german_excel_needs_the_encoding_alone() -> None:
    """It writes semicolons and cp1252. A UTF-8 file is read as UTF-8, whatever encoding is named."""
    raw = delimited([["Frühjahr 2025"], [], *TABLE], ";", "cp1252")
    sheet = read(raw, encoding="cp1252").sheet
    assert list(sheet.rows.index) == [4, 5]
    assert sheet.layout.text == "CSV, columns separated by semicolons, CP1252, header in row 3"
    assert rows(read(delimited(TABLE), encoding="cp1252")) == rows(read(delimited(TABLE)))


def test_exact_header_decides_between_delimiters() -> None:
    table = [("sku", "prompt", "category", "a,b,c"), ("A", "x", "Mug", "1,2,3")]
    assert cells(read("\n".join(";".join(row) for row in table))) == table[1:]


def test_delimiter_may_be_chosen() -> None:
    assert len(cells(read(delimited(TABLE, "~"), delimiter="~"))) == 2
    assert refused(delimited(TABLE, ";"), delimiter="semicolon").code == FileCode.WRONG_DELIMITER


def test_header_is_found_by_its_names_or_chosen() -> None:
    """A note tells of a table above it."""
    table = [["x", "y", "z"], ["1", "2", "3"], *TABLE]
    assert read(delimited(table)).sheet.notes == ("2 rows of a table above the header not read.",)
    columns = {"Art.": "sku", "Text": "prompt", "Typ": "category"}
    catalog = read(delimited([["Liste"], ["Art.", "Text", "Typ"], ["A", "Rosen", "Mug"]], ";"), columns)
    assert (catalog.columns.prompt, list(catalog.sheet.rows.index)) == (1, [3])
    assert list(read(delimited([*TABLE, *TABLE]), header=4).sheet.rows.index) == [5, 6]
    assert refused(delimited(TABLE), header=9).code == FileCode.MISSING_COLUMN


@pytest.mark.parametrize(
    ("text", "codec", "certain"),
    [
        ("Größe,weiß,Kissenhülle", "cp1252", True),
        ("žluťoučký kůň", "cp1250", True),
        ("café “x” für 5 €", "cp1252", True),
        ("鷺と葦の水辺,Mug\nB,青い波|x", "cp932", True),
        ("Catégorie,Référence", "mac_roman", True),
        # Both read as words: a person sees which is meant.
        ("crème,Matière", "cp1252", False),
        ("Größe", "mac_roman", False),
    ],
)
def test_encoding_is_certain_where_no_other_reads_as_words(text: str, codec: str, certain: bool) -> None:
    likely = [name for name, _, are_words in likely_encodings(text.encode(codec)) if are_words]
    assert codec in likely and (likely == [codec]) is certain
