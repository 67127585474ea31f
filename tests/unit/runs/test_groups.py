"""Groups are a pure function of the items of rows: at most 500, and what rows share is in one group alone."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from patternmill.engine.groups import LEAST_ROWS, MOST_GROUPS, groups_of, partition
from patternmill.identifiers import ItemKey

from .workshop import Workshop, many, rows


def _keys(rows: Sequence[Sequence[object]]) -> list[tuple[ItemKey, ...]]:
    """Return the keys of the items of rows, each of which has a product of its own as well."""
    return [
        (*(ItemKey(f"{key}") for key in keys), ItemKey(f"product {row}")) for row, keys in enumerate(rows)
    ]


def test_ten_thousand_rows_are_500_groups_of_20() -> None:
    assert {len(group) for group in partition(_keys([()] * 10_000))} == {20}
    assert len(partition(_keys([()] * 10_000))) == MOST_GROUPS
    assert len(partition(_keys([()] * 100_000))) == MOST_GROUPS


def test_rows_that_share_an_item_are_in_one_group() -> None:
    """However many they are, and through other rows: a pattern of one and a reference of the other join three rows."""
    shared = [("herons",) if row % 3 == 0 else () for row in range(3_000)]
    first, *_ = partition(_keys(shared))
    assert set(first) == set(range(0, 3_000, 3))
    far = [("herons", "photo")] + [(f"plain {row}",) for row in range(60)] + [("ferns", "photo"), ("ferns",)]
    first, *_ = partition(_keys(far))
    assert {0, 61, 62} <= set(first)


@given(st.lists(st.lists(st.integers(0, 300), max_size=3), max_size=400))
def test_every_row_is_in_one_group_and_every_item_too(drawn: list[list[int]]) -> None:
    keys = _keys(drawn)
    groups = partition(keys)
    assert sorted(row for group in groups for row in group) == list(range(len(keys)))
    assert all(len(group) >= LEAST_ROWS for group in groups[:-1])
    items = [{key for row in group for key in keys[row]} for group in groups]
    assert sum(map(len, items)) == len(set().union(*items))


def test_name_says_which_rows(shop: Workshop) -> None:
    """Rows that are made already are in none."""
    shop.run(rows(("A-1", "ants"), ("C-1", "crabs")))
    mixed = rows(("A-1", "ants"), ("B-1", "bees"), ("B-2", "bats"), ("C-1", "crabs"), ("D-1", "doves"))
    (group,) = groups_of(shop.previewed(mixed).plan)
    assert group.describe() == "3 rows of 3-6 · B-1 … D-1"
    (group,) = groups_of(shop.previewed(many(3)).plan)
    assert group.describe() == "rows 2-4 · S-000 … S-002"
    shop.run(many(3))
    (group,) = groups_of(shop.previewed(many(4)).plan)
    assert group.describe() == "row 5 · S-003"
