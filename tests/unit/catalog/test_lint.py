"""Money lint names what would be a pity to pay for, with its rows, its saving and a way to silence it."""

from __future__ import annotations

import pytest

from patternmill.catalog.lint import PatternPrice, find_lint, lint_lines, lint_note, spelling_key
from patternmill.catalog.row_checks import CheckedCatalog

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
    ]
    assert lint[0].lines == (2, 4, 5, 6, 7, 8)
    assert lint_note(lint, EURO) == (
        "Worth a look: 1 remark (up to 4 patterns, \u20ac1.60 to save); `patternmill check` lists them."
    )
    assert "save 4 patterns." in find_lint(found, FREE)[0].advice


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("blue herons on white", "white herons on blue"),
        ("pink \U0001f9a9", "pink \U0001f9a2"),
        ("2.5 cm dots", "25 cm dots"),
        ("glass", "glas"),
        ("pattern", "design"),
        ("polish", "polished"),
        ("caf\u00e9", "cafe"),
    ],
)
def test_prompts_that_may_differ_are_not_lint(one: str, other: str) -> None:
    """The order of words, numbers, signs and letters count."""
    assert find_lint(file(one, other), FREE) == ()


@pytest.mark.parametrize(
    "same", ["the Blue Heron", "Blue herons pattern!", "\u00abblue-heron\u00bb", "blue\nheron"]
)
def test_case_punctuation_plurals_and_fillers_do_not_count(same: str) -> None:
    assert spelling_key(same) == "blue heron"


def test_what_is_bought_already_saves_nothing() -> None:
    """With one spelling bought, every other one would be saved; with all bought, there is nothing to say."""
    found = file("ikat", "Ikat", "ikat.")
    assert find_lint(found, FREE, buys=lambda row: False) == ()
    assert find_lint(found, FREE, buys=lambda row: row.line > 2)[0].patterns == 2
    assert find_lint(found, FREE, buys=lambda row: row.line == 4)[0].patterns == 1


def test_another_model_makes_another_pattern() -> None:
    assert find_lint(file("ikat", "Ikat", more=",model", cells=("one", "two")), FREE) == ()
    assert len(find_lint(file("ikat", "Ikat", more=",model", cells=("one", "one")), FREE)) == 1


def test_formulas_and_names_of_files_are_named() -> None:
    (one,) = find_lint(
        file("=B2", "herons", "coral reef.png", "=CONCAT(A2; B2)", "a = b", "ikat, 2.5 cm"), EURO
    )
    named = "`=B2`, `coral reef.png`, `=CONCAT(A2; B2)`"
    assert one.message == f"A formula or the name of a file in place of a prompt, in rows 2, 4-5: {named}"
    assert one.advice == "Describe the pattern, or delete the rows to save 3 patterns, \u20ac1.20."
    assert (lint_note([one], EURO) or "").startswith("Worth a look: 1 remark (up to 3 patterns")


def test_text_in_the_wrong_encoding_is_named_with_what_it_may_have_been() -> None:
    """Refused it is not: some signs are meant."""
    found = file(
        "LÃ¼neburg heath", "Größe naïve café Ã", "herons", "a lost \ufffd sign", "Ã¢â‚¬Å“ikatÃ¢â‚¬Â\x9d"
    )
    (one,) = find_lint(found, FREE)
    assert one.lines == (2, 5, 6)
    assert one.message.startswith(
        "Text that was saved in the wrong encoding, in rows 2, 5-6: `LÃ¼neburg heath`"
    )
    assert one.advice.startswith("It may have been `Lüneburg heath`")
    assert find_lint(found, FREE, buys=lambda row: row.line == 4) == ()


def test_long_lists_are_cut() -> None:
    """The dearest come first."""
    prompts = [text for number in range(12) for text in (f"heron {number}", f"Heron {number}")]
    lint = find_lint(file("HERON 3", "heron 3!", *prompts), FREE)
    lines = list(lint_lines(lint))
    assert len(lint) == 12
    assert "`HERON 3`" in lines[1]
    assert lines[-1] == "  \u2026 and 2 more"
    assert list(lint_lines(())) == []
    assert lint_note((), FREE) is None
