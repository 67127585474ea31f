"""Cells that a spreadsheet would run are defused, and read back as they were."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patternmill.tables.written import defuse, restore

CELLS = st.one_of(
    st.text(), st.from_regex(r"'{0,4}[ \n\u00a0]{0,2}[=+\-@＝＋－＠\t\r'0-9]?.{0,4}", fullmatch=True)
)


@given(CELLS)
def test_defused_cell_is_restored(cell: str) -> None:
    """No cell is lost or changed by a round trip."""
    assert restore(defuse(cell)) == cell


@given(CELLS)
def test_no_defused_cell_begins_like_a_formula(cell: str) -> None:
    assert not defuse(cell).lstrip().startswith(tuple("=+-@＝＋－＠"))
    assert not defuse(cell).startswith(("\t", "\r"))


@pytest.mark.parametrize(
    ("cell", "written"),
    [
        ("=SUM(A1)", "'=SUM(A1)"),
        ("-12", "'-12"),
        ("'=x", "''=x"),
        ("'tis", "'tis"),
        ("", ""),
        (" =x", "' =x"),
        ("\n=x", "'\n=x"),
        ("' =x", "'' =x"),
        ("＝x", "'＝x"),
        ("＠SUM(A1)", "'＠SUM(A1)"),
        ("a\n=x", "a\n=x"),
    ],
)
def test_only_formulas_are_defused(cell: str, written: str) -> None:
    """A leading quote is written before formulas, and nowhere else."""
    assert defuse(cell) == written
