"""The sample catalogs and the written contract hold against the code and the embedded studio's offer."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from patternmill.planning.problems import RowCode
from patternmill.reading import FileCode
from patternmill.service.offer_shapes import offer_of, read_page
from patternmill.tables.checks import Checked
from patternmill.tables.columns import RESULT_COLUMNS
from studio.offer import categories_get, categories_list

from .samples import checked, problems, read

INPUTS = Path(__file__).parents[3] / "inputs"


def check_sample(name: str) -> Checked:
    page = read_page(categories_list("staging"))
    assert page is not None
    details = {category.id: categories_get("staging", category.id) for category in page.categories}
    return checked(read((INPUTS / name).read_bytes()), offer_of(page.categories, details), prompt_limit=4000)


def test_spring_catalog_is_valid() -> None:
    """24 rows, all of them offered, several prompts used by more than one product."""
    found = check_sample("spring_catalog.csv")
    assert (problems(found), found.notes, len(found.rows)) == ([], (), 24)
    assert sum(count > 1 for count in Counter(row.prompt for row in found.accepted).values()) >= 3
    assert len({row.category for row in found.accepted}) >= 4


def test_sample_of_mistakes_has_the_typical_ones() -> None:
    """Each mistake is found, and the valid row is accepted."""
    found = check_sample("with_mistakes.csv")
    assert [row.sku for row in found.accepted] == ["MIS-001"]
    assert {problem.code for problem in problems(found)} >= {
        RowCode.UNKNOWN_VALUE,
        RowCode.UNKNOWN_CATEGORY,
        RowCode.EMPTY_PROMPT,
        RowCode.EMPTY_SKU,
        RowCode.SURPLUS_CELLS,
        RowCode.MISSING_CELLS,
        RowCode.DUPLICATE_SKU,
        RowCode.UNKNOWN_OPTION,
        RowCode.MISSING_OPTION,
    }


def test_contract_lists_exactly_the_problem_codes() -> None:
    """A code is in the table of files or of rows, once, and nowhere else."""
    contract = (INPUTS / "README.md").read_text(encoding="utf-8")
    files, rows = contract.split("## When a row is refused")
    listed = re.compile(r"^\| `(\w+)` \| ", re.MULTILINE)
    assert listed.findall(files.split("## When the whole file")[1]) == [str(code) for code in FileCode]
    assert listed.findall(rows) == [str(code) for code in RowCode]


def test_contract_names_every_result_column() -> None:
    contract = (INPUTS / "README.md").read_text(encoding="utf-8")
    assert all(f"`{column}`" in contract for column in RESULT_COLUMNS)
