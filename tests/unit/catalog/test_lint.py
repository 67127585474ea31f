"""Money lint names what would be a pity to pay for, with its rows, its saving and a way to silence it."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from patternmill.catalog.lint import PatternPrice, find_lint, lint_lines, lint_note, spelling_key
from patternmill.catalog.row_checks import CheckedCatalog
from patternmill.catalog.sheet_choices import SheetLayout
from patternmill.text import shown

from .samples import checked

EURO = PatternPrice(40, "EUR")
FREE = PatternPrice()


def file(*prompts: str, more: str = "", cells: tuple[str, ...] = ()) -> CheckedCatalog:
    lines = [
        f'A{number},"{prompt}",Mug{"," + cells[number] if cells else ""}'
        for number, prompt in enumerate(prompts)
    ]
    return checked("\n".join((f"sku,prompt,category{more}", *lines)) + "\n")


def test_spellings_of_one_prompt_are_named_with_what_unifying_them_saves() -> None:
    found = file("ikat", "a heron", "Ikat", "ikat.", "ikat pattern", "Ikat", "Ikats")
    lint = find_lint(found, EURO)
    assert list(lint_lines(lint)) == [
        "Worth a look before it is paid for:",
        "  5 spellings of one prompt, in rows 2, 4-8: `ikat`, `Ikat`, `ikat.`, `ikat pattern`, `Ikats`",
        "    Write them alike to save 4 patterns, \u20ac1.60.",
        "  To silence a row: write `ok` into a column `note:lint`.",
    ]
    assert lint[0].lines == (2, 4, 5, 6, 7, 8)
    assert lint_note(lint, EURO) == (
        "Worth a look: 1 prompt in several spellings (up to 4 patterns, \u20ac1.60 to save); "
        "`patternmill check` lists them."
    )
    assert "save 4 patterns." in find_lint(found, FREE)[0].advice


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("blue herons on white", "white herons on blue"),
        ("prompt 001", "prompt 002"),
        ("pink \U0001f9a9", "pink \U0001f9a2"),
        ("2.5 cm dots", "25 cm dots"),
        ("glass", "glas"),
        ("polish", "polished"),
        ("caf\u00e9", "cafe"),
        ("pattern", "design"),
    ],
)
def test_prompts_that_may_differ_are_not_lint(one: str, other: str) -> None:
    """The order of words, numbers, signs and letters count."""
    assert find_lint(file(one, other), FREE) == ()


@pytest.mark.parametrize(
    "same",
    [
        "the Blue Heron",
        "blue herons",
        "Blue heron pattern!",
        "\u00abblue heron\u00bb",
        "blue-heron",
        "blue\nheron",
    ],
)
def test_case_punctuation_plurals_and_fillers_do_not_count(same: str) -> None:
    assert spelling_key(same) == b"blue heron"


def test_what_is_bought_already_saves_nothing() -> None:
    """With one spelling bought, every other one would be saved; with all bought, there is nothing to say."""
    found = file("ikat", "Ikat", "ikat.")
    assert find_lint(found, FREE, buys=lambda row: False) == ()
    assert find_lint(found, FREE, buys=lambda row: row.line > 2)[0].patterns == 2
    assert find_lint(found, FREE, buys=lambda row: row.line == 4)[0].patterns == 1


def test_another_model_makes_another_pattern() -> None:
    assert find_lint(file("ikat", "Ikat", more=",model", cells=("one", "two")), FREE) == ()
    assert len(find_lint(file("ikat", "Ikat", more=",model", cells=("one", "one")), FREE)) == 1


def test_placeholder_text_is_named() -> None:
    (one,) = find_lint(file("test", "herons", "n/a", "test"), EURO)
    assert one.message == "Text that seems to describe no pattern, in rows 2, 4-5: `test`, `n/a`"
    assert one.advice == "Describe the pattern, or delete the rows to save 2 patterns, \u20ac0.80."
    assert (lint_note([one], EURO) or "").startswith("Worth a look: 1 remark (up to 2 patterns")


EXCEL_ENGLISH = ["May-26", "1-May", "5/1/2026", "26-May-26"]
EXCEL_GERMAN = ["Mai 26", "01. Mai", "01.05.2026", "01.05.26", "M\u00e4r 26", "1. Mai"]
EXCEL_OTHERS = [
    "mai-26",
    "01-mai",
    "janv-26",
    "01-ene",
    "mag-26",
    "2026/5/1",
    "5\u67081\u65e5",
    "2026\u5e745\u67081\u65e5",
    "1-5-2026",
]
PROGRAMS = ["2026-05-01", "2026-05-01 00:00:00", "2026-05-01T00:00:00"]


@pytest.mark.parametrize("sku", EXCEL_ENGLISH + EXCEL_GERMAN + EXCEL_OTHERS + PROGRAMS)
def test_a_sku_that_became_a_day_is_named(sku: str) -> None:
    """As spreadsheets write it into CSV; it is not refused, because it may be right."""
    found = skus("MAY-25", sku, "JUN-25", "JUL-25")
    (one,) = find_lint(found, EURO)
    assert (one.message, one.lines, one.patterns) == (f"Sku like a date, in row 3: `{sku}`", (3,), 0)
    assert "formatted as Text" in one.advice


@pytest.mark.parametrize(
    "sku", ["MAY-26", "SET-12", "2026-05", "A-2026-05-01", "10-20-30", "26-MAY", "1.5", "Mayo-26"]
)
def test_other_skus_are_no_days(sku: str) -> None:
    """No spreadsheet writes a month in capitals."""
    assert find_lint(skus("A", "B", "C", sku), FREE) == ()


def test_skus_of_which_most_are_days_are_meant() -> None:
    assert find_lint(skus("2026-05-01", "2026-05-02", "2026-05-03", "extra"), FREE) == ()
    assert len(find_lint(skus("May-25", "May-26"), FREE)) == 1
    (one,) = find_lint(skus("May-25", "May-26", "Jun-26", "A", "B", "C"), FREE)
    assert one.message == "Skus like a date, in rows 2-4: `May-25`, `May-26`, `Jun-26`"


def test_days_are_silenced_and_not_named_again() -> None:
    """By a note, and where the product exists already."""
    assert find_lint(skus("A", "B,ok", "May-26,ok", more=",note:lint"), FREE) == ()
    assert find_lint(skus("A", "B", "May-26"), FREE, makes=lambda row: False) == ()


@pytest.mark.parametrize(
    ("layout", "named"), [("Excel workbook", False), ("JSON lines", False), ("CSV", True)]
)
def test_a_day_that_is_a_text_in_a_workbook_was_typed(layout: str, named: bool) -> None:
    """A cell that became a day is refused there by itself."""
    found = skus("A", "B", "May-26")
    delimiter = ";" if named else None
    file = replace(found.file, layout=SheetLayout(layout, "0" * 64, delimiter=delimiter))
    assert bool(find_lint(replace(found, file=file), FREE)) == named


def skus(*skus: str, more: str = "") -> CheckedCatalog:
    """Each with a prompt of its own; behind a comma, its note."""
    rows = (sku.partition(",") for sku in skus)
    lines = [
        f"{sku},herons on {number} reeds,Mug{',' * bool(more)}{note}"
        for number, (sku, _, note) in enumerate(rows)
    ]
    return checked("\n".join((f"sku,prompt,category{more}", *lines)) + "\n")


def test_html_in_prompts_is_named() -> None:
    """As shops export descriptions; arithmetic and company names are none."""
    found = file(
        "<p>Blue <b>herons</b></p>", "a < b and c > d", "A&B; herons", "roses&nbsp;and ferns", "ferns<br>"
    )
    (one,) = find_lint(found, FREE)
    assert one.message.startswith("HTML in the prompt, in rows 2, 5-6: `<p>Blue <b>herons</b></p>`")
    assert find_lint(found, FREE, buys=lambda row: False) == ()


def marked(header: str, *cells: str) -> list[tuple[tuple[int, ...], str]]:
    """The lines and messages of what is found in a sheet with a column of these cells."""
    rows = [f'A{number},herons on {number} reeds,Mug,"{cell}"' for number, cell in enumerate(cells)]
    found = find_lint(checked("\n".join((f'sku,prompt,category,"{header}"', *rows)) + "\n"), FREE)
    return [(one.lines, one.message) for one in found]


def test_rows_that_their_sheet_says_are_not_to_be_ordered_are_named() -> None:
    found = file("herons", "ferns", "ferns", "owls", more=",Bestellen?", cells=("ja", "nein", "ja", "Nein"))
    lint = find_lint(found, EURO)
    assert list(lint_lines(lint))[1:3] == [
        "  Marked as not to be ordered by the column `Bestellen?`, in rows 3, 5: `nein`, `Nein`",
        "    The column is not read, and the rows would be bought. Delete the rows to save 1 pattern, €0.40.",
    ]
    assert (lint[0].lines, lint[0].patterns) == ((3, 5), 1)
    assert find_lint(found, EURO, buys=lambda row: False, makes=lambda row: False) == ()
    (made,) = find_lint(found, EURO, buys=lambda row: False)
    assert made.advice == "The column is not read, and the rows would be bought. Delete the rows."


@pytest.mark.parametrize(
    ("header", "cells", "lines"),
    [
        ("order", ["yes", "no", ""], (3,)),
        ("Order?", ["1", "0", "1"], (3,)),
        ("order", ["TRUE", "FALSE", "TRUE"], (3,)),
        ("To order", ["x", "on hold", "✗"], (3, 4)),
        ("Commander ?", ["oui", "Non", "oui"], (3,)),
        ("¿Pedir?", ["sí", "no", "sí"], (3,)),
        ("Da ordinare", ["sì", "no", "sì"], (3,)),
        ("Te bestellen", ["ja", "nee", "ja"], (3,)),
        ("Einkaufen J/N", ["J", "N", "J"], (3,)),
        ("Order (yes/no)", ["y", "n", "y"], (3,)),
        ("Commander oui / non", ["o", "n", "o"], (3,)),
        ("Freigegeben", ["ja", "nein", "ja"], (3,)),
        ("Do not order", ["", "x", "no"], (3,)),
        ("Nicht bestellen", ["", "1", "0"], (3,)),
        ("Cancelled", ["no", "yes", "no"], (3,)),
        ("Qty", ["12", "0", "3"], (3,)),
        ("Menge", ["12", "0,00", "3"], (3,)),
        ("Quantité", ["12", "0", "3"], (3,)),
        ("Aantal", ["0", "", ""], (2,)),
        ("note:Status", ["active", "Draft", "archived"], (3, 4)),
        ("State", ["ok", "cancelled", "ok"], (3,)),
        ("Artikelstatus", ["neu", "gestrichen", "neu"], (3,)),
        ("Statut", ["actif", "annulé", "brouillon"], (3, 4)),
        ("Remarks", ["new", "Please DO NOT order!", "Don’t buy, says Ann"], (3, 4)),
        ("", ["", "nicht bestellen", "storniert"], (3, 4)),
    ],
)
def test_marks_are_known_in_the_languages_of_the_columns(
    header: str, cells: list[str], lines: tuple[int, ...]
) -> None:
    ((found, message),) = marked(header, *cells)
    assert found == lines
    assert (shown(header.removeprefix("note:")) if header else "column D") in message


@pytest.mark.parametrize(
    ("header", "cells"),
    [
        ("order", ["1", "2", "3"]),
        ("order", ["0", "1", "2"]),
        ("No", ["1", "2", "0"]),
        ("Nr.", ["1", "2", "3"]),
        ("No.", ["no", "n", "0"]),
        ("Ordered", ["no", "no", "yes"]),
        ("Bestellt", ["nein", "nein", "ja"]),
        ("order", ["yes", "", "yes"]),
        ("order", ["MO-12", "MO-13", "none"]),
        ("note:Status", ["active", "active", "active"]),
        ("note:Status", ["new", "pending", "ordered"]),
        ("Qty", ["1", "10", "100"]),
        ("Qty", ["0", "0", "0"]),
        ("Variant Inventory Qty", ["5", "0", "0"]),
        ("Stock", ["5", "0", "0"]),
        ("Cancelled", ["", "no", "0"]),
        ("Gift card", ["false", "no", "0"]),
        ("Remarks", ["order in May", "draft by Ann", "no rush"]),
        ("Title", ["Order of the Phoenix", "Archived roses", "No. 5"]),
        ("picked", ["yes", "no", "no"]),
    ],
)
def test_other_columns_mark_nothing(header: str, cells: list[str]) -> None:
    """Places in a row of numbers, stocks, what was ordered already, and what other columns say no to."""
    assert marked(header, *cells) == []


def test_struck_rows_are_named() -> None:
    """What a person crossed out in a workbook."""
    found = file("herons", "ferns", "owls")
    struck = replace(found, file=replace(found.file, struck=frozenset({3})))
    assert list(lint_lines(find_lint(struck, EURO)))[1:3] == [
        "  Struck through in the worksheet, in row 3: `A1`",
        "    Formatting is not read, and the row would be bought. Delete the row to save 1 pattern, €0.40.",
    ]


def test_a_note_counts_the_rows_that_are_marked() -> None:
    """It is all that a run shows of what it buys without a plan. A row that is marked twice is one."""
    found = file(
        "herons", "owls", "Owls", "test", more=",order,Qty", cells=("no,0", "no,2", "yes,1", "yes,1")
    )
    assert (lint_note(find_lint(found, FREE), FREE) or "").startswith(
        "Worth a look: 2 rows marked as not to be ordered, 1 prompt in several spellings and 1 other (up to "
    )
    found = file("herons", "owls", more=",order", cells=("no", "yes"))
    assert (lint_note(find_lint(found, EURO), EURO) or "").startswith(
        "Worth a look: 1 row marked as not to be ordered (up to 1 pattern, €0.40 to save); "
    )


def test_marks_are_named_before_what_is_only_dear() -> None:
    """A list that is cut has them."""
    prompts = [text for number in range(12) for text in (f"heron {number}", f"Heron {number}")]
    found = file(*prompts, "owls", more=",order", cells=(*["yes"] * 24, "no"))
    assert "`order`, in row 26" in list(lint_lines(find_lint(found, FREE)))[1]


def test_what_results_say_of_rows_is_no_mark() -> None:
    """A results file that comes back as the input: its own columns are not those of a person."""
    header = "sku,prompt,category,status,product_id,pattern_id,error_code,error,run"
    assert find_lint(checked(f"{header}\nA,herons,Mug,cancelled,,,x,do not order,r\n"), FREE) == ()


def test_marked_rows_are_silenced() -> None:
    found = file("herons", "ferns", more=",order,note:lint", cells=("no,ok", "no,"))
    assert [one.lines for one in find_lint(found, FREE)] == [(3,)]


@pytest.mark.parametrize("header", ["note:lint", " Note : Lint"])
def test_rows_are_silenced_by_a_note(header: str) -> None:
    """Whatever else the note says; another word silences nothing."""
    prompts = ("ikat", "Ikat", "test")
    assert find_lint(file(*prompts, more=f",{header}", cells=("", "OK: two on purpose", "ok")), FREE) == ()
    assert len(find_lint(file(*prompts, more=f",{header}", cells=("", "", "look")), FREE)) == 2


def test_long_lists_are_cut() -> None:
    """The dearest come first."""
    prompts = [text for number in range(12) for text in (f"heron {number}", f"Heron {number}")]
    lint = find_lint(file("HERON 3", "heron 3!", *prompts), FREE)
    lines = list(lint_lines(lint))
    assert len(lint) == 12
    assert "`HERON 3`" in lines[1]
    assert lines[-2] == "  \u2026 and 2 more"
    assert list(lint_lines(())) == []
    assert lint_note((), FREE) is None


def test_lint_takes_little_time() -> None:
    """A hundred thousand different prompts cost about half a second; this is the same for a tenth."""
    prompts = (f"blue herons among {number} reeds, soft watercolour on cream" for number in range(10_000))
    found = file(*prompts)
    started = time.process_time()
    assert find_lint(found, FREE) == ()
    assert time.process_time() - started < 0.5
