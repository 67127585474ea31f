"""What a sheet has otherwise than its catalog, as a table, and the limits of change."""

import json

import pytest

from patternmill.changes import Known, RowLimit, Wanted, compare


@pytest.mark.parametrize(
    ("limit", "number", "total", "is_allowed"),
    [
        ("20,10%", 0, 0, True),
        ("20,10%", 5, 6, True),
        ("20,10%", 5, 5, False),
        ("20,10%", 1, 1, False),
        ("20,10%", 6, 50, False),
        ("20,10%", 20, 200, True),
        ("20,10%", 21, 1000, False),
        ("0", 5, 100, True),
        ("0", 6, 100, False),
        ("100%", 10, 10, False),
        ("10 %", 10, 100, True),
    ],
)
def test_how_many_may_change_without_a_person(limit, number, total, is_allowed):
    assert RowLimit.parse(limit).allows(number, total) is is_allowed


def content(prompt="herons", category="Mug", category_id="cat_mug", **selections):
    return json.dumps({"prompt": prompt, "category": category, "category_id": category_id, "selections": selections})


def known(key, wants, likeness="like", product="prod", retired=None, said=""):
    return Known(key, key.upper(), wants, likeness, said, retired, product)


def compared(rows, wanted, refused=(), unsold=(), elsewhere=None, said=""):
    return compare(rows, wanted, refused, unsold, elsewhere or {}, lambda number: said)


def test_added_changed_and_gone():
    rows = [known("a", "i1"), known("b", "i2", "b"), known("c", "i3", "c")]
    wanted = {"a": Wanted(2, "i1", "like", False), "b": Wanted(3, "i9", "x", True), "d": Wanted(4, "i4", "d", True)}
    found = compared(rows, wanted)
    assert (found.added, found.changed, found.replaced, found.gone) == ({"d"}, {"b"}, {"b"}, {"c"})
    assert found.total == 3


def test_a_changed_row_without_a_product_replaces_none():
    found = compared([known("a", "i1", product="")], {"a": Wanted(2, "i2", "x", True)})
    assert (found.changed, found.replaced) == ({"a"}, frozenset())


@pytest.mark.parametrize(
    ("rows", "wanted", "unsold", "elsewhere", "renamed"),
    [
        # The sku is another, the old one is gone from the sheet.
        ([known("a", "i1")], {"b": Wanted(2, "i2", "like", True)}, (), {}, {2: "A"}),
        # Two new rows, one gone sku: one rename at most.
        ([known("a", "i1")], {n: Wanted(i, n, "like", True) for i, n in enumerate("bc", 2)}, (), {}, {2: "A"}),
        # The old sku is still there: the same content twice is meant.
        ([known("a", "i1")], {"a": Wanted(2, "i1", "like", False), "b": Wanted(3, "i2", "like", True)}, (), {}, {}),
        # What the old row has was never made.
        ([known("a", "i1", product="")], {"b": Wanted(2, "i2", "like", True)}, (), {}, {}),
        # Retired before, here or in another catalog.
        ([known("a", "i1", retired=1.0)], {"b": Wanted(2, "i2", "like", True)}, (), {}, {2: "A"}),
        ([], {"b": Wanted(2, "i2", "like", True)}, (), {"like": "Z-1"}, {2: "Z-1"}),
        # It exists already, and costs nothing.
        ([known("a", "i1")], {"b": Wanted(2, "i2", "like", False)}, (), {}, {}),
    ],
)
def test_renames(rows, wanted, unsold, elsewhere, renamed):
    assert compared(rows, wanted, unsold=unsold, elsewhere=elsewhere).renamed == renamed


def test_a_sku_that_a_refused_row_names_is_not_gone():
    rows = [known("a", "i1"), known("b", "i2", "b")]
    assert compared(rows, {}, refused={"a"}, unsold={"b"}).gone == frozenset()


def test_rows_without_a_sku_are_not_gone():
    assert compared([known("#4", "")], {}).gone == frozenset()


@pytest.mark.parametrize(
    ("after", "is_recategorized"),
    [
        (content(category_id="cat_2"), True),
        (content(category_id="cat_2", category="mug"), True),
        (content(category_id="cat_2", category="Cup"), False),
        (content("waves", category_id="cat_2"), False),
        (content(category_id="cat_2", size="11oz"), False),
    ],
)
def test_another_category_id_under_the_same_name(after, is_recategorized):
    found = compared([known("a", "i1", said=content())], {"a": Wanted(2, "i2", "x", True)}, said=after)
    assert bool(found.recategorized) is is_recategorized
