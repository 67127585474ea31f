"""Rows are read, and each fault has a message with which it can be corrected."""

from __future__ import annotations

import time

import pytest

from patternmill.planning.offer import Category, Offer
from patternmill.tables.checks import UNCHECKED

from .samples import HEADER, OFFER, cells, checked, checked_row, codes, problems


def test_valid_row_is_accepted() -> None:
    """Trimmed and composed texts, the category's ID, and selections sorted in the offered spelling."""
    found = checked_row(" A1 , cafe\u0301 herons ,CUSHION,s,Linen,x")
    (row,) = found.accepted
    assert (row.line, row.sku, row.prompt, row.category) == (2, "A1", "caf\u00e9 herons", "cat_1")
    assert list(row.selections.items()) == [("fabric", "linen"), ("size", "S")]
    assert cells(found.catalog)[0] == (" A1 ", " cafe\u0301 herons ", "CUSHION", "s", "Linen", "x")


def test_unknown_value_is_reported_with_the_offer_and_the_nearest() -> None:
    """The sentence that the merchandiser reads."""
    problem = problems(checked_row("A1,b,Cushion,S,Linnen,"))[0]
    assert f"{problem.message}; {problem.remedy}" == (
        "unknown value `Linnen` for option `fabric`; offered: cotton, linen, velvet; did you mean `linen`?"
    )
    assert (problem.row, problem.column, problem.sku) == (2, "option:fabric", "A1")


def test_every_problem_of_every_row_is_found_in_one_pass() -> None:
    """As many as were planted, each in its row and column, and valid rows are accepted."""
    found = checked(
        f"{HEADER}\nA,b,Cushion,XL,Linnen,\nB,,Nope,,,\nC,b,Mug,11oz,,\nD,b,Mug,12oz,,\nd,b,Mug,,,\n"
    )
    assert codes(found) == {
        2: ["unknown_value", "unknown_value"],
        3: ["empty_prompt", "unknown_category"],
        5: ["duplicate_sku", "unknown_value"],
        6: ["duplicate_sku"],
    }
    assert [row.sku for row in found.accepted] == ["C"]


@pytest.mark.parametrize(
    ("end", "remedy"),
    [
        (",x,,", "delete the separators at its end"),
        (', "x, y"', 'quote the cell that contains the comma ("...", with no space before the quote)'),
    ],
)
def test_remedy_of_surplus_cells_is_of_what_is_surplus(end: str, remedy: str) -> None:
    assert remedy in problems(checked_row(f"A,b,Cushion,S,linen{end}"))[0].remedy


@pytest.mark.parametrize(
    ("selections", "message"),
    [
        ('{""fabric"": 52}', "the value of `fabric` in the selections is no text"),
        ('{"" "": ""linen""}', "a name in the selections is empty"),
        (
            "{'fabric': 'linen'}",
            "the selections are no JSON (Expecting property name enclosed in double quotes)",
        ),
    ],
)
def test_selections_that_cannot_be_read_are_not_missing_as_well(selections: str, message: str) -> None:
    found = checked_row(f'A,b,Cushion,"{selections}"', header="sku,prompt,category,selections")
    assert [problem.message for problem in problems(found)] == [message]


def test_duplicate_skus_are_all_refused_and_name_one_another() -> None:
    """Which of them is meant is unknown."""
    found = checked(f"{HEADER}\nA,b,Mug,,,\na,c,Mug,,,\nB,b,Mug,,,\nA ,d,Mug,,,\n")
    assert [problem.message for problem in problems(found)] == ["the sku `A` is in 3 rows (2-3, 5)"] * 3
    assert {problem.remedy for problem in problems(found)} == {
        "if that is a mistake, keep one of these rows and delete the others; if you want them all, give each a sku of"
        " its own (case and spaces do not distinguish skus)"
    }


def test_rows_without_an_offer_pass_with_a_note() -> None:
    """The category is used as its ID, and selections as written."""
    found = checked_row("A,b,Anything,XXL,,", None)
    assert found.accepted[0].category == "Anything"
    assert found.accepted[0].selections == {"size": "XXL"}
    assert found.notes == (UNCHECKED,)
    found = checked_row("A,b,Anything,,,", Offer(None, note="The list cannot be read."))
    assert (len(found.rows), found.notes) == (1, ("The list cannot be read.",))


def test_name_of_two_categories_is_refused_and_an_id_is_not() -> None:
    """An ID is tried before names."""
    offer = Offer((Category("1", "Mug"), Category("2", "mug "), Category("Cup", "Mug")), None)
    found = checked(f"{HEADER}\nA,b,MUG,,,\nB,b,Cup,,,\nC,b,2,,,\n", offer)
    assert codes(found) == {2: ["ambiguous_category"]}
    assert [row.category for row in found.accepted] == ["Cup", "2"]


def test_prompt_length_is_counted_as_it_is_bought() -> None:
    """Outer spaces and decomposed accents do not count."""
    decomposed = "e\u0301" * 5
    text = f"{HEADER}\nA,  {decomposed}  ,Mug,,,\nB,123456,Mug,,,\n"
    found = checked(text, OFFER, prompt_limit=5)
    assert [problem.message for problem in problems(found)] == ["the prompt has 6 characters; 5 are allowed"]


@pytest.mark.slow
def test_ten_thousand_different_mistakes_are_found_quickly() -> None:
    lines = (f"S{i},herons {i},Mug{i},11oz{i},," for i in range(10_000))
    started = time.process_time()
    assert checked(f"{HEADER}\n" + "\n".join(lines)).refused_count == 10_000
    assert time.process_time() - started < 10
