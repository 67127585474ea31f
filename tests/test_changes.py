"""What a sheet has otherwise than its catalog, as a table, and the limits of change."""

import json

import pytest

from patternmill.changes import Known, RowLimit, compare
from patternmill.items import Row, choice_of, likeness_of, pattern_item, product_item


@pytest.mark.parametrize(
    ("limit", "number", "total", "is_allowed"),
    [
        ("20,10%", 0, 0, True), ("20,10%", 5, 6, True), ("20,10%", 5, 5, False), ("20,10%", 1, 1, False),
        ("20,10%", 6, 50, False), ("20,10%", 20, 200, True), ("20,10%", 21, 1000, False), ("0", 5, 100, True),
        ("0", 6, 100, False), ("100%", 10, 10, False), ("10 %", 10, 100, True),
    ],
)  # fmt: skip
def test_how_many_may_change_without_a_person(limit, number, total, is_allowed):
    assert RowLimit.parse(limit).allows(number, total) is is_allowed


def content(prompt="herons", category="Mug", category_id="cat_mug", **selections):
    return json.dumps(
        {"prompt": prompt, "category": category, "category_id": category_id, "selections": selections}
    )


def row(number, sku, prompt="herons"):
    return Row(number, sku, product_item(pattern_item("production", prompt), sku, choice_of("cat_mug", {})))


def known(key, wants="", prompt="herons", product="prod", retired=None, said=""):
    like = likeness_of(row(1, key, prompt).product)
    return Known(key, key.upper(), wants or row(1, key, prompt).product.id, like, said, retired, product)


def compared(rows, *wanted, refused=(), unsold=(), elsewhere=None, is_bought=True, said=""):
    by_key = {one.sku: one for one in wanted}
    return compare(rows, by_key, refused, unsold, elsewhere or {}, lambda row: is_bought, lambda row: said)


def test_added_changed_and_gone():
    rows = [known("a"), known("b", "another"), known("c", prompt="c")]
    found = compared(rows, row(2, "a"), row(3, "b"), row(4, "d", "d"))
    assert (found.added, found.changed, found.replaced, found.gone) == ({"d"}, {"b"}, {"b"}, {"c"})
    assert found.total == 3


def test_a_changed_row_without_a_product_replaces_none():
    found = compared([known("a", "another", product="")], row(2, "a"))
    assert (found.changed, found.replaced) == ({"a"}, frozenset())


LIKE = likeness_of(row(1, "x").product)


@pytest.mark.parametrize(
    ("what", "rows", "wanted", "elsewhere", "renamed"),
    [
        ("the old sku is gone", [known("a")], [row(2, "b")], {}, {2: "A"}),
        ("one gone sku is one rename at most", [known("a")], [row(2, "b"), row(3, "c")], {}, {2: "A"}),
        ("the old sku is still there", [known("a")], [row(2, "a"), row(3, "b")], {}, {}),
        ("the old one was never made", [known("a", product="")], [row(2, "b")], {}, {}),
        ("retired before", [known("a", retired=1.0)], [row(2, "b")], {}, {2: "A"}),
        ("retired in another catalog", [], [row(2, "b")], {LIKE: "Z-1"}, {2: "Z-1"}),
        ("another content", [known("a")], [row(2, "b", "waves")], {}, {}),
    ],
)
def test_renames(what, rows, wanted, elsewhere, renamed):
    assert compared(rows, *wanted, elsewhere=elsewhere).renamed == renamed, what


def test_what_exists_already_is_no_rename():
    assert compared([known("a")], row(2, "b"), is_bought=False).renamed == {}


def test_a_sku_that_a_refused_row_names_is_not_gone():
    rows = [known("a"), known("b", prompt="b")]
    assert compared(rows, refused={"a"}, unsold={rows[1].likeness}).gone == frozenset()


def test_rows_without_a_sku_are_not_gone():
    assert compared([known("# 4")]).gone == frozenset()


@pytest.mark.parametrize(
    ("after", "is_recategorized"),
    [
        (content(category_id="cat_2"), True), (content(category_id="cat_2", category="mug"), True),
        (content(category_id="cat_2", category="Cup"), False), (content("waves", category_id="cat_2"), False),
        (content(category_id="cat_2", size="11oz"), False),
    ],
)  # fmt: skip
def test_another_category_id_under_the_same_name(after, is_recategorized):
    found = compared([known("a", "another", said=content())], row(2, "a"), said=after)
    assert bool(found.recategorized) is is_recategorized
