"""Rows are read, and each fault has a message with which it can be corrected."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from patternmill.catalog.offer import Category, Offer
from patternmill.catalog.row_checks import UNCHECKED

from .samples import HEADER, OFFER, checked, checked_row, codes


def test_valid_row_is_accepted() -> None:
    """Trimmed and composed texts, the category's ID, and selections sorted in the offered spelling."""
    row = checked_row(" A1 , cafe\u0301 herons ,CUSHION,s,Linen,x").rows[0]
    assert (row.line, row.sku, row.prompt, row.category) == (2, "A1", "caf\u00e9 herons", "cat_1")
    assert list(row.selections.items()) == [("fabric", "linen"), ("size", "S")]
    assert row.cells == (" A1 ", " cafe\u0301 herons ", "CUSHION", "s", "Linen", "x")


def test_unknown_value_is_reported_with_the_offer_and_the_nearest() -> None:
    """The sentence that the merchandiser reads."""
    problem = checked_row("A1,b,Cushion,S,Linnen,").problems[0]
    assert str(problem) == (
        "unknown value `Linnen` for option `fabric`; offered: cotton, linen, velvet; did you mean `linen`?"
    )
    assert (problem.line, problem.column, problem.sku) == (2, "option:fabric", "A1")


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
    assert [row.sku for row in found.rows] == ["C"]


@pytest.mark.parametrize(
    ("end", "remedy"),
    [
        (",x,,", "delete the separators at its end"),
        (', "x, y"', 'straight quotes ("..."), with no space before'),
    ],
)
def test_remedy_of_surplus_cells_is_of_what_is_surplus(end: str, remedy: str) -> None:
    assert remedy in checked_row(f"A,b,Cushion,S,linen{end}").problems[0].remedy


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
    assert [problem.message for problem in found.problems] == [message]


def test_duplicate_skus_are_all_refused_and_name_one_another() -> None:
    """Which of them is meant is unknown."""
    found = checked(f"{HEADER}\nA,b,Mug,,,\na,c,Mug,,,\nB,b,Mug,,,\nA ,d,Mug,,,\n")
    assert [problem.message for problem in found.problems] == ["the sku `A` is in 3 rows (2-3, 5)"] * 3
    assert {problem.remedy for problem in found.problems} == {
        "if that is a mistake, keep one of these rows and delete the others; if you want them all, give each a sku of"
        " its own (case and spaces do not distinguish skus)"
    }


def test_rows_without_an_offer_pass_with_a_note() -> None:
    """The category is used as its ID, and selections as written."""
    found = checked_row("A,b,Anything,XXL,,", None)
    assert found.rows[0].category == "Anything"
    assert found.rows[0].selections == {"size": "XXL"}
    assert found.notes == (UNCHECKED,)


def test_unreadable_offer_refuses_nothing() -> None:
    """Its own note is passed on."""
    offer = Offer(None, note="The list cannot be read.")
    found = checked_row("A,b,Anything,,,", offer)
    assert (found.accepted_count, found.notes) == (1, ("The list cannot be read.",))


def test_name_of_two_categories_is_refused_and_an_id_is_not() -> None:
    """An ID is tried before names."""
    offer = Offer((Category("1", "Mug"), Category("2", "mug "), Category("Cup", "Mug")), None)
    found = checked(f"{HEADER}\nA,b,MUG,,,\nB,b,Cup,,,\nC,b,2,,,\n", offer)
    assert codes(found) == {2: ["ambiguous_category"]}
    assert [row.category for row in found.rows] == ["Cup", "2"]


def test_prompt_length_is_counted_as_it_is_bought() -> None:
    """Outer spaces and decomposed accents do not count."""
    decomposed = "e\u0301" * 5
    text = f"{HEADER}\nA,  {decomposed}  ,Mug,,,\nB,123456,Mug,,,\n"
    found = checked(text, OFFER, prompt_limit=5)
    assert [problem.message for problem in found.problems] == ["the prompt has 6 characters; 5 are allowed"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["good", "all_different_mistakes"])
def test_many_rows_are_checked_quickly(kind: str) -> None:
    """Ten thousand rows, also when each has a mistake of its own, take about a second at most."""
    mistake = "" if kind == "good" else "{0}"
    lines = (f"S{i},herons {i},Mug{mistake},11oz{mistake},,".format(i) for i in range(10_000))
    started = time.process_time()
    found = checked(f"{HEADER}\n" + "\n".join(lines))
    assert len(found.entries) == 10_000
    assert time.process_time() - started < 4


def test_checking_imports_nothing_heavy() -> None:
    """The check command has to answer within a second."""
    heavy = "{'pandas', 'numpy', 'httpx', 'aiohttp', 'prefect', 'fastapi', 'PIL', 'sqlite3'}"
    ours = "patternmill.catalog.check_report, patternmill.catalog.offer_shapes"
    code = f"import sys, {ours}; print({heavy} & set(sys.modules))"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "set()"
