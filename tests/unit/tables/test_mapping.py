"""A mapping: what is proposed for it, what it makes of a sheet, and the file that has it."""

from __future__ import annotations

from pathlib import Path

import pytest

from patternmill.errors import ConfigurationError, InputRefused
from patternmill.planning.offer import Offer
from patternmill.tables.mapping import NO_MAPPING, SheetMapping, find_mapping, read_mapping
from patternmill.tables.proposals import Question, column_questions, trade_score, word_questions
from patternmill.tables.sheet import parse_sheet
from patternmill.tables.trade_words import meant_by

from .samples import SHOP, checked, problems, read
from .sheet_files import delimited

ROWS = (
    ("A-1", "blue herons at dawn", "Kissen", "50x50"),
    ("A-2", "red roses in the rain", "Tasse", "11oz"),
    ("A-3", "green ferns", "Tasse", "11oz"),
)


def asked(header: str, *rows: tuple[str, ...], mapping: SheetMapping = NO_MAPPING) -> dict[str, Question]:
    raw = delimited([header.split(","), *(rows or ROWS)])
    sheet = parse_sheet(raw, "spring.csv", trade_score(mapping, SHOP), mapping.reading)
    return {question.name: question for question in column_questions(sheet, SHOP, mapping)}


@pytest.mark.parametrize(
    ("header", "column", "suggestion", "certain"),
    [
        # The trade's own names, in its languages, need no second look.
        ("Art.-Nr.,Prompttext,Produktart,Größe", "sku", "Art.-Nr.", True),
        ("Art.-Nr.,Prompttext,Produktart,Größe (cm)", "Größe (cm)", "option:size", True),
        ("品番,柄の説明,商品カテゴリ,サイズ", "category", "商品カテゴリ", True),
        # A name that means other things too is the category where its cells are categories.
        ("Code,Motif,Product,Taille", "category", "Product", True),
        # The others are asked about.
        ("Code,Motif,Product,Taille", "prompt", "Motif", False),
        # Words in each cell, under no name that is known.
        ("SKU,Promt text,Category,Size", "prompt", "Promt text", False),
        # The name says nothing, so the cells decide.
        ("aaa,bbb,ccc,ddd", "sku", "aaa", False),
        ("aaa,bbb,ccc,ddd", "category", "ccc", False),
        # The name of a result, in a sheet that is not a results file.
        ("sku,prompt,category,Status", "Status", "note", True),
    ],
)
def test_columns_are_proposed(header: str, column: str, suggestion: str, certain: bool) -> None:
    question = asked(header)[column]
    assert (question.suggestion, question.is_certain) == (suggestion, certain)


@pytest.mark.parametrize(
    ("header", "cells", "suggestion", "certain"),
    [
        # Each cell is a value of one option, not of the same one in all categories.
        ("Material/Finish", ("velvet", "glossy"), "option", True),
        ("Farbe", ("velvet", "white"), "option", True),
        # One option in all of them.
        ("Maße", ("50x50", "11oz"), "option:size", True),
        # The values of several options in one cell.
        ("Ausführung", ("50x50 / velvet", "11oz / glossy"), "option", True),
        # The name does not say it, but every cell is offered, so a person is asked.
        ("xyz", ("velvet", "glossy"), "option", False),
        # A value of two options leaves it open which is meant.
        ("Material/Finish", ("velvet", "matte"), "option", False),
        # A shop's handle is no handle of a bag.
        ("Handle", ("blue-herons", "red-roses"), "note", False),
        # It chooses nothing.
        ("Preis", ("12,90", "9,90"), None, False),
        ("note:Farbe", ("velvet", "white"), None, False),
    ],
)
def test_option_columns_are_proposed(
    header: str, cells: tuple[str, str], suggestion: str | None, certain: bool
) -> None:
    categories = ("Tote bag", "Tote bag") if header == "Handle" else ("Cushion", "Mug")
    rows = (("A-1", "blue herons", categories[0], cells[0]), ("A-2", "red roses", categories[1], cells[1]))
    question = asked(f"sku,prompt,category,{header}", *rows).get(header, Question("", "", {}))
    assert (question.suggestion, question.is_certain) == (suggestion, certain)


def test_what_is_said_is_not_asked_again_and_what_fits_alike_is_asked_openly() -> None:
    mapping = SheetMapping(columns={"Art.-Nr.": "sku", "Prompttext": "prompt", "Größe": "note"})
    assert set(asked("Art.-Nr.,Prompttext,Produktart,Größe", mapping=mapping)) == {"category"}
    question = asked("Titel,Motiv,Produktart,SKU", ("a b", "c d", "Mug", "1"), ("e f", "g h", "Mug", "2"))
    assert (question["prompt"].suggestion, list(question["prompt"].choices)[:2]) == (None, ["Titel", "Motiv"])


@pytest.mark.parametrize(
    ("word", "offered", "meant", "certain"),
    [
        # The trade's word for it.
        ("Kissenhülle", ("Cushion", "Mug"), "Cushion", True),
        ("オーガニックコットン", ("canvas", "organic cotton"), "organic cotton", True),
        # A slip of the finger.
        ("Cusion", ("Cushion", "Mug"), "Cushion", True),
        # The trade's word for two of them, or for another thing than the one that looks like it.
        ("normal", ("medium", "regular"), "medium", False),
        ("rot", ("rost", "blue"), "rost", False),
        # Other signs between the same numbers; a unit that nobody named; another number.
        ("50 × 50", ("40x40", "50x50"), "50x50", True),
        ("50 x 50 cm", ("40x40", "50x50"), "50x50", False),
        ("12oz", ("11oz", "15oz"), None, False),
        # Too little in common.
        ("organic cotton", ("cotton",), "cotton", False),
    ],
)
def test_words_are_proposed(word: str, offered: tuple[str, ...], meant: str | None, certain: bool) -> None:
    assert meant_by(word, offered) == (meant, certain)


def test_a_word_is_asked_about_once_however_many_rows_have_it() -> None:
    """With the replies, the same is bought as if the sheet had the words of the offer."""
    text = "sku,prompt,category,option:size,option:fabric\n" + "".join(
        f"A-{number},x,{category},50x50,Samt\n"
        for number, category in enumerate(["Kissen", "Cushion", "Kissen", "Cushion"])
    )
    first, second = word_questions(checked(text, SHOP))
    assert (first.line, first.about) == ('"Kissen" = "Cushion"', "category of 2 rows (2, 4)")
    assert list(first.choices) == ["Cushion", "Mug", "Tote bag"]
    assert (second.line, second.about) == ('"Samt" = "velvet"', "option:fabric of 2 rows (3, 5)")
    mapped = checked(read(text, words={"Kissen": "Cushion", "Samt": "velvet"}), SHOP)
    assert word_questions(mapped) == [] and mapped.refused_count == 0
    plain = checked(text.replace("Kissen", "Cushion").replace("Samt", "velvet"), SHOP)
    assert [row.identity for row in mapped.accepted] == [row.identity for row in plain.accepted]


def test_number_of_a_choice_is_no_choice() -> None:
    """Where values are numbers, `1` means the value, or nothing, and never the first choice."""
    assert Question("values", "one", {"4": "", "1": ""}).numbered == {"#1": "4", "#2": "1"}
    assert Question("values", "red", {"rust": "", "4 oz": ""}).numbered == {"1": "rust", "2": "4 oz"}


def test_column_that_nobody_confirmed_is_not_carried_in_silence() -> None:
    """An unattended run refuses the row, and its reason names the column or the word."""
    text = "sku,prompt,category,option:size,option:finish,Farbe\nA,x,Mug,11oz,glänzend,white\n"
    word, column = problems(checked(text, SHOP))
    assert (column.code, word.code) == ("option_column", "unknown_value")
    assert "`Farbe`" in column.message and "`glänzend`" in word.message
    mapped = read(text, {"Farbe": "note"}, {"glänzend": "glossy"})
    assert checked(mapped, SHOP).refused_count == 0
    assert checked(text, Offer(None, None)).refused_count == 1


RENAMED = {"Nr": "sku", "Text": "prompt", "Art": "category", "Stoff": "option:fabric", "Alt": "note"}


@pytest.mark.parametrize(
    ("header", "code"),
    [
        ("Nr,Text,Art,Stoff,Alt", None),
        # Remarks come and go; the contract's own names need no mapping.
        ("Nr,Text,Art,Stoff,Neu", None),
        ("sku,prompt,category", None),
        ("Nr,Text,Art,option:fabric", None),
        # What was bought by the column would be bought without it.
        ("Nr,Text,Art", "mapping_changed"),
        # Two columns for one thing.
        ("Nr,Text,Art,Stoff,option:fabric", "duplicate_header"),
    ],
)
def test_confirmed_columns_hold(header: str, code: str | None) -> None:
    text = f"{header}\n{','.join('x' for _ in header.split(','))}\n"
    if code is None:
        assert read(text, RENAMED).sheet.header == tuple(header.split(","))
        return
    with pytest.raises(InputRefused) as refused:
        read(text, RENAMED)
    assert refused.value.code == code


KISSEN, TASSE = '[values]\n"Kissen" = "Cushion"\n', '[values]\n"Tasse" = "Mug"\n'


@pytest.mark.parametrize(
    ("files", "found"),
    [
        ({}, "spring.mapping.toml"),
        ({"home/spring.mapping.toml": KISSEN}, "home/spring.mapping.toml"),
        (
            {"spring.mapping.toml": KISSEN, "home/spring.mapping.toml": f"# x\n{KISSEN}"},
            "spring.mapping.toml",
        ),
        ({"agreed.toml": KISSEN, "spring.mapping.toml": KISSEN}, "agreed.toml"),
        ({"spring.mapping.toml": KISSEN, "home/spring.mapping.toml": TASSE}, " differ."),
        ({"spring.mapping.toml": "[column]\n"}, "entry `column`: "),
        ({"spring.mapping.toml": "[reading]\nheader = 'x'\n"}, "entry `header` `reading`: "),
        ({"spring.mapping.toml": "[columns]\nX = 'colour'\n"}, "`colour`, for the column `X`, is no column"),
        (
            {"spring.mapping.toml": "[columns]\nrun = 'sku'\n"},
            "the results write a column `run`, so it can only",
        ),
        ({"spring.mapping.toml": "columns = ["}, "is no TOML"),
    ],
)
def test_first_mapping_counts_and_what_is_wrong_is_said(
    tmp_path: Path, files: dict[str, str], found: str
) -> None:
    """Two mappings that differ are refused."""
    (tmp_path / "home").mkdir()
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    named = tmp_path / "agreed.toml" if "agreed.toml" in files else None
    source, home = str(tmp_path / "spring.csv"), tmp_path / "home"
    if not found.endswith(".toml"):
        with pytest.raises(ConfigurationError) as refused:
            find_mapping(named, source, home, "spring", own_name=True)
        assert found in refused.value.message and refused.value.remedy
        return
    assert find_mapping(named, source, home, "spring", own_name=True).place == tmp_path / found


def test_catalog_of_an_address_or_another_name_has_its_mapping_in_the_home(tmp_path: Path) -> None:
    for source in ("https://example.com/spring.csv", str(tmp_path / "kw43.csv")):
        found = find_mapping(None, source, tmp_path / "home", "spring", own_name=False)
        assert found.place == tmp_path / "home" / "spring.mapping.toml"
        assert found.mapping == NO_MAPPING


def test_file_keeps_what_a_person_wrote_in_it(tmp_path: Path) -> None:
    """New entries come at the end of their section; a header may hold any sign."""
    written = '# Ours.\n[values]\n"Samt" = "velvet"  # not Velours\n\n[columns]\n"Nr" = "sku"\n'
    place = tmp_path / "spring.mapping.toml"
    place.write_text(written, encoding="utf-8")
    entries = [
        ("values", "Kissen", "Cushion"),
        ("columns", 'Größe "B"\n(cm)', "option:size"),
        ("reading", "encoding", "cp1252"),
    ]
    mapping = read_mapping(place)
    for entry in entries:
        mapping = mapping.with_entry(*entry)
    text = mapping.text(written)
    assert text.startswith(
        '# Ours.\n[values]\n"Samt" = "velvet"  # not Velours\n"Kissen" = "Cushion"\n\n[columns]'
    )
    place.write_text(text, encoding="utf-8")
    assert read_mapping(place) == mapping
    inline = 'values = {Samt = "velvet"}\n'
    place.write_text(inline, encoding="utf-8")
    place.write_text(read_mapping(place).with_entry(*entries[0]).text(inline), encoding="utf-8")
    assert read_mapping(place).mapping.values == {"Samt": "velvet", "Kissen": "Cushion"}
