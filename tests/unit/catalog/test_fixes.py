"""What can be corrected once for many rows, what is certain of it, and which cells an answer changes."""

from __future__ import annotations

from functools import partial

import pytest

from patternmill.catalog.fixes import NOTHING, Edits, Question, fixed, questions
from patternmill.catalog.row_checks import CheckedCatalog, check_rows

from .samples import HEADER, OFFER, checked

check = partial(check_rows, offer=OFFER, prompt_limit=100)


def found(rows: str, header: str = HEADER) -> CheckedCatalog:
    return checked(f"{header}\n{rows}")


def sure(question: Question) -> str | None:
    return question.suggestion if question.is_certain else None


def fixed_by(rows: str, *answers: str | None, header: str = HEADER) -> tuple[Edits, CheckedCatalog]:
    """With the answers in the order of the questions; what follows them is left as it is."""
    left = list(answers)
    return fixed(found(rows, header), check, lambda question: left.pop(0) if left else None)


def cells(result: tuple[Edits, CheckedCatalog]) -> list[tuple[str, ...]]:
    return [record.cells for record in result[1].file.records]


def test_one_question_for_all_rows_with_a_word() -> None:
    """The most frequent first; what nobody can answer for many rows is not asked."""
    asked = questions(found("A,b,Mugg,,,\nB,b,Cusion,,,\nC,b,Cusion,,,\nD,,Mug,,,\nE,b,Mug,,,\ne,b,Mug,,,\n"))
    assert [(one.first.value, one.suggestion, one.lines) for one in asked] == [
        ("Cusion", "Cushion", (3, 4)),
        ("Mugg", "Mug", (2,)),
    ]


@pytest.mark.parametrize(
    ("row", "certain"),
    [
        ("A,b,Cusion,,linen,", True),
        ("A,b,Mug,12oz,,", False),
        ("A,b,Mug,11 oz.,,", True),
        ("A,b,Tote,,,", False),
        ("A,b,Cushion,,velvit,", True),
        ("A,b,Mug,\uff11\uff11\uff4f\uff5a,,", True),
        ("A,b,\uff2d\uff55\uff47,11oz,,", True),
        ("A,b,Mug,\uff11\uff12oz,,", False),
    ],
    ids=[
        "letters",
        "digits",
        "same digits",
        "half a name",
        "a letter",
        "full width",
        "full-width letters",
        "another full-width digit",
    ],
)
def test_only_what_can_mean_nothing_else_is_certain(row: str, certain: bool) -> None:
    """A number is never taken for another one, however near it is."""
    (question,) = questions(found(row + "\n"))
    assert question.suggestion is not None
    assert question.is_certain is certain


def test_options_that_an_unknown_category_hid_are_asked_for_next() -> None:
    """In one go, until there is nothing new to ask."""
    result = fixed(found("A,b,Cusion,S,Linnen,\nB,b,Cusion,M,linen,\n"), check, sure)
    assert result[1].refused_count == 0
    assert cells(result)[0] == ("A", "b", "Cushion", "S", "linen", "")


def test_an_answer_holds_for_rows_that_another_mistake_hid() -> None:
    """The same word is not asked about twice."""
    rows = "A,b,Cushion,S,Linnen,\nB,b,Cusion,S,Linnen,\n"
    asked: list[str] = []

    def answer(question: Question) -> str | None:
        asked.append(question.first.value or "")
        return question.suggestion

    result = fixed(found(rows), check, answer)
    assert sorted(asked) == ["Cusion", "Linnen"]
    assert result[1].refused_count == 0


def test_missing_option_is_filled_in() -> None:
    """In its column; in a new one where the file has none."""
    assert cells(fixed_by("A,b,Cushion,S,,\n", "linen")) == [("A", "b", "Cushion", "S", "linen", "")]
    result = fixed_by("A,b,Cushion\nB,b,Mug\n", "linen", header="sku,prompt,category")
    assert result[1].file.header == ("sku", "prompt", "category", "option:fabric")
    assert cells(result) == [("A", "b", "Cushion", "linen"), ("B", "b", "Mug", "")]
    assert result[1].refused_count == 0


def test_column_is_renamed_where_all_its_rows_mean_another_option() -> None:
    header = "sku,prompt,category,option:sice,option:fabric"
    result = fixed_by("A,b,Cushion,S,linen\nB,b,Mug,11oz,\n", "option:size", "option:size", header=header)
    assert result[1].file.header[3] == "option:size"
    assert result[1].refused_count == 0


def test_column_that_looks_like_an_option_is_renamed() -> None:
    """To the option or to a remark."""
    header, row = "sku,prompt,category,Size", "A,b,Mug,11oz\n"
    for name in ("option:size", "note:Size"):
        result = fixed_by(row, name, header=header)
        assert (result[1].file.header[3], result[1].refused_count) == (name, 0)


def test_rows_that_do_not_fit_the_header_are_left_alone() -> None:
    """Also where a column is added to the others; one that ends too early may have an unknown category too."""
    assert questions(found("A,,Pillow\n")) is not None
    result = fixed_by("A,b,Cushion\nB,b\n", "linen", header="sku,prompt,category")
    assert cells(result) == [("A", "b", "Cushion", "linen"), ("B", "b")]


def sure_row(question: Question) -> bool:
    return question.is_certain and question.choices == (NOTHING,)
