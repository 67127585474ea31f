"""JSON lines become the same rows; and whatever a table holds, every format of text gives it back."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patternmill.catalog.problems import FileCode
from patternmill.catalog.read_limits import ReadLimits
from patternmill.errors import InputRefused

from .sheet_files import HEADER, ROWS, delimited, read

OBJECTS = [dict(zip(HEADER, row, strict=True)) for row in ROWS]


@pytest.mark.parametrize(
    "raw",
    [
        "\n".join(map(json.dumps, OBJECTS)).encode(),
        "\n".join(json.dumps(one, ensure_ascii=False) for one in OBJECTS).encode("utf-16"),
    ],
    ids=["UTF-8", "UTF-16"],
)
def test_objects_are_rows_from_the_second_on(raw: bytes) -> None:
    file = read(raw)
    assert [(record.line, record.cells) for record in file.records] == [(2, ROWS[0]), (3, ROWS[1])]
    assert file.layout is not None and file.layout.format == "JSON lines"


def test_json_numbers_are_the_texts_that_are_written() -> None:
    """Nulls and missing keys are empty, objects stay JSON, blank lines count."""
    lines = '{"sku": 1.50, "prompt": 1e3, "category": "Mug"}\n\n{"sku": 7, "selections": {"size": 1.5}, "x": null}\n'
    file = read(lines.encode())
    assert file.header == ("sku", "prompt", "category", "selections", "x")
    assert [record.line for record in file.records] == [2, 4]
    assert file.records[0].cells == ("1.50", "1e3", "Mug", "", "")
    assert file.records[1].cells == ("7", "", "", '{"size": "1.5"}', "")


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        (b'{"sku": "A"\n{"sku": "B"}', "line 1"),
        (b'{"sku": "A", "sku": "B"}', "twice"),
        (b'{"sku": "A"}\n["B"]', "no JSON object in line 2"),
        (b'{"sku": ' + b"[" * 100_000, "nested too deeply"),
        (b'{"sku": "\\ud83d", "prompt": "a", "category": "Mug"}', "half a character"),
    ],
)
def test_malformed_json_is_refused_in_a_sentence(raw: bytes, shown: str) -> None:
    with pytest.raises(InputRefused, match=shown) as caught:
        read(raw)
    assert caught.value.code in (FileCode.MALFORMED_JSON, FileCode.UNREADABLE_ENCODING)


def test_keys_are_limited_as_columns_are() -> None:
    raw = "\n".join(json.dumps({f"k{i}": 1}) for i in range(60)).encode()
    with pytest.raises(InputRefused, match="60 columns"):
        read(raw, limits=ReadLimits(columns=50))


CELL = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufeff"), max_size=8)


@settings(max_examples=25)
@given(st.lists(st.tuples(CELL.filter(str.strip), CELL, CELL), min_size=1, max_size=4))
def test_texts_survive_every_text_format(rows: list[tuple[str, ...]]) -> None:
    table = [("sku", "prompt", "category"), *rows]
    objects = [dict(zip(table[0], row, strict=True)) for row in rows]
    for raw in (
        delimited(table, ";"),
        delimited(table, "\t", "utf-16"),
        "\n".join(map(json.dumps, objects)).encode(),
    ):
        assert [record.cells for record in read(raw).records] == rows
