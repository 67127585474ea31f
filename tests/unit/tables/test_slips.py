"""Errors of spreadsheets, numbers in short, and placeholders are refused where they would be paid for."""

from __future__ import annotations

import pytest

from .samples import HEADER, checked, checked_row, codes, problems

ERRORS = ["#REF!", "#NAME?", "#N/A", "#NV", "#WERT!", "#DIV/0!", "#VALEUR!", "#\u00a1REF!", "#GETTING_DATA"]
ERRORS += ["Err:502", "########", " #REF! "]


@pytest.mark.parametrize("error", ERRORS)
def test_errors_of_formulas_are_found_in_each_column(error: str) -> None:
    """In place of a sku, a prompt, a category, a value; in a carried column they are carried."""
    found = checked(
        f"{HEADER}\n{error},b,Mug,,,\nB,{error},Mug,,,\nC,b,{error},,,\nD,b,Mug,{error},,\nE,b,Mug,,,{error}\n"
    )
    assert codes(found) == {line: ["spreadsheet_error"] for line in (2, 3, 4, 5)}
    assert [problem.column for problem in problems(found)] == ["sku", "prompt", "category", "option:size"]


def test_errors_are_found_in_models_references_and_refinements() -> None:
    text = "sku,prompt,category,model,reference,refine:recolor\nA,b,Mug,#REF!,#REF!,#N/A\n"
    found = checked(text)
    assert codes(found) == {2: ["spreadsheet_error"] * 3}


def test_a_formula_that_is_a_text_is_not_that_text() -> None:
    """As shops write skus for Excel: nothing is converted, and nothing is bought under the formula's own name."""
    found = checked_row('"=""00123""","=""a """"red"""" fox""",Mug,,,')
    assert codes(found) == {2: ["spreadsheet_error"] * 2}
    assert [problem.remedy for problem in problems(found)] == ["write `00123`", 'write `a "red" fox`']


@pytest.mark.parametrize(
    ("text", "remedy"),
    [("LÃ¼neburg heath", "write `Lüneburg heath`, "), ("a lost \ufffd sign", "write them, ")],
)
def test_text_in_the_wrong_encoding_is_refused(text: str, remedy: str) -> None:
    found = checked_row(f"{text},{text},Mug,,,")
    assert codes(found) == {2: ["misread_text"] * 2}
    assert {problem.remedy for problem in problems(found)} == {f"{remedy}and save the file as UTF-8"}


@pytest.mark.parametrize("sku", ["1.23E+05", "4,00638E+12", "1E+12"])
def test_numbers_in_short_are_no_skus(sku: str) -> None:
    found = checked_row(f'"{sku}",b,Mug,,,')
    assert codes(found) == {2: ["number_as_shown"]}
    assert "as Text" in problems(found)[0].remedy


@pytest.mark.parametrize("sku", ["1e5", "1E5", "5E-12", "4006381333931", "12E+05", "NA"])
def test_other_skus_are_taken_as_they_are(sku: str) -> None:
    assert codes(checked_row(f"{sku},b,Mug,,,")) == {}


@pytest.mark.parametrize("prompt", ["[TBD]", "To do", "xxx", "???", "Lorem ipsum", "NA"])
def test_placeholders_are_no_prompts(prompt: str) -> None:
    """And the remedy says how such signs are bought on purpose."""
    found = checked_row(f"A,{prompt},Mug,,,")
    assert codes(found) == {2: ["placeholder"]}
    named = "`the letters TBD`" if any(map(str.isalnum, prompt)) else "`a row of dots`"
    assert named in problems(found)[0].remedy


@pytest.mark.parametrize(
    "prompt",
    [
        "test",
        "the letters TBD",
        "xx",
        "\U0001f9a9",
        "#REF! in neon",
        "O",
        "Größe naïve café Ã",
        "S\u00c3O \u2026",
    ],
)
def test_real_prompts_are_not_refused(prompt: str) -> None:
    assert codes(checked_row(f"A,{prompt},Mug,,,")) == {}
