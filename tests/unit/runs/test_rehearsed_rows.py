"""What a rehearsal takes over of a file and of the settings, and what stands in for the rest."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import SecretStr

from patternmill.catalog.extras import Extras
from patternmill.catalog.offer import Category, Offer, Option
from patternmill.catalog.row_checks import CheckedCatalog, check_rows
from patternmill.runs.rehearsed_rows import RehearsedRows, rehearsed_rows, rehearsed_settings
from patternmill.settings import Settings
from patternmill.sheets.csv_reader import parse_catalog

OFFER = Offer(
    (
        Category(
            "cat_cushion", "Cushion", (Option("size", ("S", "M"), True), Option("fabric", ("linen",), True))
        ),
        Category("cat_mug", "Mug", (Option("size", ("11oz",), True), Option("lid", ("none",), False))),
    ),
    note=None,
)
OPTIONS = (
    "sku,prompt,category,option:size,note\nA,herons,Mug,11oz,x\nB,herons,Surfboard,XL,y\nC,,Mug,11oz,z\n"
)


def rehearsed(text: str, *, most: int | None = None, stand_in: bool = True, seed: int = 1) -> RehearsedRows:
    file = parse_catalog(text.encode(), name="spring.csv")
    return rehearsed_rows(
        file,
        OFFER,
        Extras(),
        folder=Path("/catalogs"),
        most=most,
        seed=seed,
        prompt_limit=100,
        stand_in=stand_in,
    )


def test_reference_is_found_from_where_the_rehearsal_lies() -> None:
    text = "sku,prompt,category,option:size,reference\nA,herons,Mug,11oz,pictures/a.png\nB,herons,Mug,11oz,\n"
    lines = rehearsed(text, stand_in=False).raw.decode().splitlines()
    assert lines[1:] == ["A,herons,Mug,11oz,/catalogs/pictures/a.png", "B,herons,Mug,11oz,"]


def checked(rows: RehearsedRows) -> CheckedCatalog:
    return check_rows(parse_catalog(rows.raw, name="spring.csv"), OFFER, prompt_limit=100)


def refused(found: CheckedCatalog) -> list[str]:
    return [problem.code.value for problem in found.problems]


def test_rows_that_only_the_offer_refuses_have_a_stand_in() -> None:
    """Of the category with the fewest options to select; other mistakes stay, and so do other columns."""
    rows = rehearsed(OPTIONS)
    assert rows.stand_ins == 1
    found = checked(rows)
    assert refused(found) == ["empty_prompt"]
    assert [(row.category_id, row.selections) for row in found.rows] == [("cat_mug", {"size": "11oz"})] * 2
    assert [record.cells[-1] for record in found.file.records] == ["x", "y", "z"]


def test_without_stand_ins_the_rows_stay_as_they_are() -> None:
    rows = rehearsed(OPTIONS, stand_in=False)
    assert rows.stand_ins == 0
    assert refused(checked(rows)) == ["unknown_category", "unknown_value", "empty_prompt"]


@pytest.mark.parametrize(
    "text",
    [
        "sku,prompt,category\nA,herons,Surfboard\n",
        'sku,prompt,category,selections\nA,herons,Surfboard,"{""size"": ""XL""}"\n',
        "sku,prompt,category_id,option:Colour\nA,herons,cat_board,red\nB,herons,cat_mug,\n",
    ],
)
def test_stand_ins_find_or_make_their_columns(text: str) -> None:
    found = checked(rehearsed(text))
    assert found.rows[0].selections == {"size": "11oz"}


def test_malformed_rows_stay_malformed() -> None:
    """Also when columns are added for stand-ins."""
    text = "sku,prompt,category\nA,herons,Surfboard\nB,herons\nC,herons,Mug,11oz\n"
    assert refused(checked(rehearsed(text)))[:2] == ["missing_cells", "surplus_cells"]


def test_result_columns_of_an_earlier_run_are_left_out() -> None:
    results = "status,product_id,pattern_id,error_code,error"
    text = f"sku,prompt,category,option:size,{results}\nA,herons,Mug,11oz,failed,,,x,y\n"
    rows = rehearsed(text)
    assert rows.raw.decode().splitlines() == ["sku,prompt,category,option:size", "A,herons,Mug,11oz"]


def test_sample_is_repeatable_and_in_order() -> None:
    """Its rows know where they are in the person's file."""
    text = "sku,prompt,category,option:size\n" + "".join(f"S-{n},herons,Mug,11oz\n" for n in range(50))
    one, again, other = (rehearsed(text, most=10, seed=seed) for seed in (1, 1, 2))
    assert one == again != other
    assert list(one.lines) == sorted(one.lines) and len(one.lines) == 10
    skus = [row.sku for row in checked(one).rows]
    assert skus == [f"S-{line - 2}" for line in one.lines]


def test_settings_are_those_of_how_a_run_is_driven() -> None:
    """No address, key, place, limit or approval."""
    settings = Settings(
        _env_file=None,
        studio_url="http://127.0.0.1:9/v1",
        api_key=SecretStr("canary"),
        max_in_flight=7,
        final_reasons=("no such", "bad"),
        currency="EUR",
        pattern_price=40,
        day_budget=1,
        approve_above_items=1,
    )
    taken = rehearsed_settings(settings)
    assert taken["PATTERNMILL_MAX_IN_FLIGHT"] == "7"
    assert taken["PATTERNMILL_FINAL_REASONS"] == '["no such", "bad"]'
    assert taken["PATTERNMILL_CURRENCY"] == "EUR"
    assert not {"STUDIO_URL", "API_KEY", "HOME", "DAY_BUDGET", "APPROVE_ABOVE_ITEMS"} & {
        name.removeprefix("PATTERNMILL_") for name in taken
    }
    assert "canary" not in str(taken)
