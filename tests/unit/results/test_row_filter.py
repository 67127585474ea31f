"""Which rows a filter means: every field that is given has to fit, and a row that is not there is never everything."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from patternmill.errors import ConfigurationError, InputRefused
from patternmill.results.row_filter import RowFilter, rows_meant
from patternmill.states import RowStatus, Stage

from .builders import ENDED, item, refused, row

#: A was made at 09:31:15 UTC, and B failed a minute later.
ROWS = [
    row("A"),
    row(
        "B",
        RowStatus.FAILED,
        error_code="job_failed",
        category="Tote bag",
        category_id="cat_2",
        items=(item(Stage.PATTERN, "B", since=ENDED + 60), item(Stage.PRODUCT, "B", None)),
    ),
    refused("C"),
    row("D", RowStatus.IN_DOUBT, error_code="in_doubt"),
]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({}, "ABCD"),
        ({"sku": ("D", "A")}, "AD"),
        ({"status": ("failed,in-doubt",)}, "BD"),
        ({"code": ("job_failed", "in_doubt")}, "BD"),
        ({"category": ("tote  BAG",)}, "B"),
        ({"category": ("cat_1",)}, "ACD"),
        ({"changed_since": "2026-03-01"}, "AB"),
        ({"changed_since": "2026-03-01T10:31:30+01:00"}, "B"),
        ({"status": "REFUSED, failed", "category": ("Cushion",)}, "C"),
    ],
)
def test_rows_that_fit(wanted: dict[str, Any], found: str) -> None:
    """By each field, and by all that are given; nothing was ever changed for a row of which nothing was requested."""
    chosen = RowFilter(**wanted)
    assert "".join(one.sku for one in rows_meant(ROWS, chosen)) == found
    assert chosen.is_empty is (wanted == {})


def test_rows_picked_in_a_sheet(tmp_path: Path) -> None:
    """As a file of rows to order; a pick that cannot be read chooses nothing."""
    sheet = tmp_path / "picks.csv"
    sheet.write_text("sku,picked\nA,yes\nB,x\nC,no\n")
    assert [one.sku for one in rows_meant(ROWS, RowFilter(picks=sheet, status=("failed",)))] == ["B"]
    with pytest.raises(ConfigurationError, match="one by one and in a sheet"):
        rows_meant(ROWS, RowFilter(picks=sheet, sku=("A",)))
    sheet.write_text("sku,picked\nA,maybe\n")
    with pytest.raises(InputRefused, match="neither yes nor no"):
        rows_meant(ROWS, RowFilter(picks=sheet))


def test_what_no_row_has_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="no row E, F here"):
        rows_meant(ROWS, RowFilter(sku=("F", "A", "E")))
    for wanted in ({"status": ("fialed",)}, {"changed_since": "yesterday"}, {"skus": ("A",)}):
        with pytest.raises(ValidationError):
            RowFilter.model_validate(wanted)
