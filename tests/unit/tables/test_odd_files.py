"""Odd files of every kind: each is refused whole for the right reason, or each of its rows is accounted for."""

from __future__ import annotations

import codecs
import json
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patternmill.errors import InputRefused
from patternmill.reading import FileCode

from .samples import checked, codes, read

HEAD = "sku,prompt,category\n"
GOOD = "A,herons,Mug\n"
OPTIONS = "sku,prompt,category,option:size,option:fabric\n"
JSON = "sku,prompt,category,selections\n"
OURS = "sku,prompt,category,note,status,product_id,pattern_id,error_code,error,run\n"


def bytes_of(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode()


ENCODINGS = {"no such encoding": "klingon", "an encoding of host names": "punycode"}
REFUSED: dict[str, tuple[str | bytes, FileCode]] = {
    "no bytes": ("", FileCode.EMPTY_FILE),
    "only a line that names its delimiter": ("sep=;\n", FileCode.EMPTY_FILE),
    "a quote for its delimiter": ('sep="\nsku\n', FileCode.WRONG_DELIMITER),
    "only a mark": (codecs.BOM_UTF8, FileCode.EMPTY_FILE),
    "header only": (HEAD, FileCode.HEADER_ONLY),
    "header and blank rows": (HEAD + "\n,,\n  \n", FileCode.HEADER_ONLY),
    "unknown columns": ("name,colour\nA,red\n", FileCode.MISSING_COLUMN),
    "no sku": ("prompt,category\nherons,Mug\n", FileCode.MISSING_COLUMN),
    "double sku": ("sku,prompt,category,sku\nA,b,Mug,A\n", FileCode.DUPLICATE_HEADER),
    "double option": ("sku,prompt,category,option:size,Option: SIZE\nA,b,Mug,,\n", FileCode.DUPLICATE_HEADER),
    "category twice over": ("sku,prompt,category,category_id\nA,b,Mug,1\n", FileCode.CONFLICTING_COLUMNS),
    "selections twice over": (
        "sku,prompt,category,selections,option:size\nA,b,Mug,{},\n",
        FileCode.CONFLICTING_COLUMNS,
    ),
    "option without a name": ("sku,prompt,category,option:\nA,b,Mug,\n", FileCode.BAD_HEADER),
    "option with a hidden turn": ("sku,prompt,category,option:si\u202eze\nA,b,Mug,\n", FileCode.BAD_HEADER),
    "a NUL character": (HEAD + "A,he\0rons,Mug\n", FileCode.NUL_BYTES),
    "UTF-16 without its mark": ((HEAD + GOOD).encode("utf-16-le"), FileCode.NUL_BYTES),
    "cp1252": ((HEAD + "A,café,Mug\n").encode("cp1252"), FileCode.UNREADABLE_ENCODING),
    "a surrogate in UTF-8": (b"sku,prompt,category\nA,\xed\xa0\x80,Mug\n", FileCode.UNREADABLE_ENCODING),
    "no such encoding": (HEAD + GOOD, FileCode.UNKNOWN_ENCODING),
    "an encoding of host names": (HEAD + GOOD, FileCode.UNKNOWN_ENCODING),
    "a quote open to the end": (HEAD + GOOD + 'B,"herons,Mug\nC,foxes,Mug\n', FileCode.OPEN_QUOTE),
    "a quote open until the next": (HEAD + 'B,"herons,Mug\nC,"foxes",Mug\n', FileCode.OPEN_QUOTE),
    "a quote open for megabytes": (
        HEAD + GOOD + 'B,"herons,Mug\n' + "C,foxes,Mug\n" * 20000,
        FileCode.CELL_TOO_LONG,
    ),
    "text after a closing quote": (HEAD + 'A,"herons" in reeds,Mug\n', FileCode.STRAY_QUOTE),
    "a cell of 200,000 characters": (HEAD + "A," + "x" * 200_000 + ",Mug\n", FileCode.CELL_TOO_LONG),
    "their own status column": ("sku,prompt,category,Status\nA,b,Mug,active\n", FileCode.RESERVED_COLUMN),
}


@pytest.mark.parametrize("name", REFUSED)
def test_unreadable_file_is_refused_whole(name: str) -> None:
    """With its code, and a message and a remedy that help a person."""
    raw, code = REFUSED[name]
    with pytest.raises(InputRefused) as refused:
        read(raw, encoding=ENCODINGS.get(name))
    assert refused.value.code == code
    assert "spring.csv" in refused.value.message
    assert refused.value.remedy


@dataclass(frozen=True)
class Odd:
    """An odd file that is read: how many rows it has, and which of them are refused."""

    raw: str | bytes
    rows: int
    refused: dict[int, list[str]] = field(default_factory=dict)
    encoding: str | None = None


def selections(text: str) -> str:
    return JSON + 'A,b,Mug,"' + text.replace('"', '""') + '"\n'


READ: dict[str, Odd] = {
    "mixed line breaks": Odd("sku,prompt,category\r\nA,b,Mug\nB,c,Mug\rC,d,Mug", 3),
    "UTF-8 with its mark": Odd(codecs.BOM_UTF8 + (HEAD + GOOD).encode(), 1),
    "UTF-16 little": Odd(codecs.BOM_UTF16_LE + (HEAD + "A,héron 🐦,Mug\n").encode("utf-16-le"), 1),
    "cp1252 by name": Odd((HEAD + "A,café “x”,Mug\n").encode("cp1252"), 1, encoding="cp1252"),
    "shouting header": Odd(" SKU ,PROMPT,\tCategory\nA,b,Mug\n", 1),
    "header after blank rows": Odd("\n,,\n" + HEAD + GOOD, 1),
    "blank rows between": Odd(HEAD + "\nA,b,Mug\n\n,,\nB,c,Nope\n", 2, {6: ["unknown_category"]}),
    "line breaks within quotes": Odd(HEAD + 'A,"one\ntwo\r\nthree",Mug\nB,b,Nope\n', 2, {3: ["unknown_category"]}),
    "doubled quotes": Odd(HEAD + 'A,"the ""big"" heron, again",Mug\n', 1),
    "a quote within an unquoted cell": Odd(HEAD + 'A,5" tall herons,Mug\n', 1),
    "lookalike texts": Odd(
        HEAD + "007,NA,Mug\n1e5,1e5,Mug\nTRUE,TRUE,Mug\n-12,=1+1,Mug\nnull,nulls,Mug\n", 5, {2: ["placeholder"]}
    ),
    "emoji and right to left": Odd(HEAD + "A👩‍🎨,عصافير زرقاء 🐦,Mug\n", 1),
    "line separators within cells": Odd(HEAD + "A,one\u2028two\x85three\x0cfour,Mug\n", 1),
    "a surplus cell": Odd(HEAD + "A,b,Mug,x\n" + "B,b,Mug\n", 2, {2: ["surplus_cells"]}),
    "surplus cells in every row": Odd(
        HEAD + "A,b,Mug,\nB,b,Mug,\n", 2, {2: ["surplus_cells"], 3: ["surplus_cells"]}
    ),
    "a missing cell": Odd(HEAD + "A,b\n" + "B,b,Mug\n", 2, {2: ["missing_cells"]}),
    "no sku": Odd(HEAD + " ,b,Mug\n", 1, {2: ["empty_sku"]}),
    "an invisible sku": Odd(HEAD + "\u200b,b,Mug\n", 1, {2: ["empty_sku"]}),
    "no prompt": Odd(HEAD + "A, \t ,Mug\n", 1, {2: ["empty_prompt"]}),
    "an invisible prompt": Odd(HEAD + "A,\u200b\u200b,Mug\n", 1, {2: ["empty_prompt"]}),
    "a prompt at the limit": Odd(HEAD + f"A,{'é' * 100},Mug\n", 1),
    "a prompt over the limit": Odd(HEAD + f"A,{'é' * 101},Mug\n", 1, {2: ["prompt_too_long"]}),
    "no category": Odd(HEAD + "A,b,\n", 1, {2: ["empty_category"]}),
    "everything wrong at once": Odd(
        OPTIONS + ",,Mug,XL,silk\n", 1, {2: ["empty_sku", "empty_prompt", "unknown_value", "unknown_option"]}
    ),
    "a category in another case": Odd(HEAD + "A,b, mUG \nB,b,TOTE_BAG\n", 2),
    "a missing option": Odd(OPTIONS + "A,b,Cushion,S,\n", 1, {2: ["missing_option"]}),
    "the same sku in another case": Odd(
        HEAD + "Ab 1,b,Mug\n aB1 ,c,Mug\nC,c,Mug\n", 3, {2: ["duplicate_sku"], 3: ["duplicate_sku"]}
    ),
    "the same sku composed otherwise": Odd(
        HEAD + "e\u0301,b,Mug\n\u00e9,c,Mug\n", 2, {2: ["duplicate_sku"], 3: ["duplicate_sku"]}
    ),
    "a sku again in a broken row": Odd(
        HEAD + "A,b,Mug\nA,b\n", 2, {2: ["duplicate_sku"], 3: ["missing_cells", "duplicate_sku"]}
    ),
    "a line break in a sku": Odd(HEAD + '"A\nB",b,Mug\n', 1, {2: ["unsafe_characters"]}),
    "a hidden turn in a sku": Odd(HEAD + "A\u202eB,b,Mug\n", 1, {2: ["unsafe_characters"]}),
    "a zero-width space in a category": Odd(HEAD + "A,b,Mu\u200bg\n", 1, {2: ["unsafe_characters"]}),
    "a hidden turn in a value": Odd(OPTIONS + "A,b,Mug,11\u2066oz,\n", 1, {2: ["unsafe_characters"]}),
    "a control character in a prompt": Odd(HEAD + "A,her\x07ons,Mug\n", 1),
    "selections": Odd(selections('{"size": "11oz"}'), 1),
    "empty selections": Odd(JSON + "A,b,Mug,\nB,b,Mug,{}\n", 2),
    "selections with an empty value": Odd(selections('{"size": ""}'), 1),
    "selections with a repeated name": Odd(
        selections('{"size": "11oz", "size": "15oz"}'), 1, {2: ["malformed_selections"]}
    ),
    "selections with a name in two cases": Odd(
        selections('{"size": "11oz", "SIZE": "15oz"}'), 1, {2: ["duplicate_option"]}
    ),
    "selections with a lone surrogate": Odd(
        selections(json.dumps({"size": "\ud800"})), 1, {2: ["unsafe_characters"]}
    ),
    "selections nested 50,000 deep": Odd(selections("[" * 50_000), 1, {2: ["malformed_selections"]}),
    "selections with a number of 5,000 digits": Odd(
        selections('{"size": ' + "9" * 5000 + "}"), 1, {2: ["malformed_selections"]}
    ),
    "our own results": Odd(OURS + "'-12,'=b,Mug,'@n,succeeded,p1,q1,,,r\nB,b,Nope,,refused,,,unknown_category,x,r\n", 2,
                           {3: ["unknown_category"]}),
    "an empty product_id column": Odd("sku,prompt,category,product_id\nA,b,Mug,\n", 1),
}  # fmt: skip


@pytest.mark.parametrize("name", READ)
def test_each_row_of_an_odd_file_is_accounted_for(name: str) -> None:
    """Rows in are rows out, and exactly the faulty ones are refused, each at its spreadsheet row."""
    odd = READ[name]
    catalog = read(odd.raw, encoding=odd.encoding)
    sheet = catalog.sheet
    assert (
        len(sheet.rows) == odd.rows == count_rows(bytes_of(odd.raw).decode(sheet.layout.encoding or "")) - 1
    )
    found = checked(catalog)
    assert codes(found) == odd.refused
    assert len(found.rows) + found.refused_count == odd.rows
    assert found.refused_count == len(odd.refused)


@given(st.text('ab,,\n\n\r"" ', max_size=40))
def test_no_row_is_lost(body: str) -> None:
    """A file is refused, or has as many rows as the independent count, each at its own row number."""
    try:
        sheet = read(HEAD + body).sheet
    except InputRefused as refused:
        assert refused.code in {FileCode.HEADER_ONLY, FileCode.OPEN_QUOTE, FileCode.STRAY_QUOTE}
    else:
        assert len(sheet.rows) == count_rows(HEAD + body) - 1
        assert len(sheet.rows) + sheet.blank_rows + 1 >= sheet.rows.index[-1]


def count_rows(text: str) -> int:
    """Rows with something in them, counted without a CSV reader, by the place of the next character."""
    rows, content, place = 0, False, "start"
    for character in text.replace("\r\n", "\n").replace("\r", "\n") + "\n":
        if character == '"' and place in {"start", "quoted", "after quote"}:
            content = content or place == "after quote"
            place = "after quote" if place == "quoted" else "quoted"
        elif place == "quoted":
            content = content or not character.isspace()
        elif character == "\n":
            rows, content, place = rows + content, False, "start"
        else:
            content = content or not (character == "," or character.isspace())
            place = "start" if character == "," else "plain"
    return rows
