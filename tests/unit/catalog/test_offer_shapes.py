"""Answers about categories are read in every plausible shape, and never guessed at in others."""

from __future__ import annotations

import csv
import io
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patternmill.catalog.offer import Category, Option
from patternmill.catalog.offer_shapes import offer_of, read_category, read_category_list, read_options

from .samples import checked

MUG = {"categoryId": "c1", "name": "Mug"}
TOTE = {"categoryId": "c2", "name": "Tote bag"}
READ = [("c1", "Mug"), ("c2", "Tote bag")]

LISTS: dict[str, object] = {
    "bare": [MUG, TOTE],
    "categories": {"categories": [MUG, TOTE]},
    "results": {"results": [MUG, TOTE], "total": 2, "nextCursor": None, "hasMore": False},
    "data in data": {"data": {"categories": [MUG, TOTE]}},
    "id and title": [{"id": "c1", "title": "Mug"}, {"id": "c2", "title": "Tote bag"}],
    "both spellings of the ID": [{"category_id": 1, **MUG}, {"category_id": 2, **TOTE}],
    "map by ID": {"c1": {"name": "Mug"}, "c2": {"name": "Tote bag"}},
    "map under a key": {"categories": {"c1": {"name": "Mug"}, "c2": {"name": "Tote bag"}}},
    "map of names": {"categories": {"c1": "Mug", "c2": "Tote bag"}},
    "wrapped records": [{"category": MUG}, {"category": TOTE}],
    "edges and nodes": {"data": {"edges": [{"node": MUG}, {"node": TOTE}]}},
    "a name of its own": {"ok": True, "tags": ["a"], "productTypes": [MUG, TOTE]},
    "other spellings": [{"Category-ID": "c1", "Name": "Mug"}, {"category_id": "c2", "Title": "Tote bag"}],
    "extra fields": {"categories": [{**MUG, "icon": None, "tags": []}, TOTE], "requestId": "x"},
}


@pytest.mark.parametrize("shape", LISTS)
def test_plausible_list_is_read(shape: str) -> None:
    """IDs and names are found in any structure."""
    found = read_category_list(LISTS[shape])
    assert found is not None
    assert [(category.id, category.name) for category in found.categories] == READ
    assert found.complete


@pytest.mark.parametrize(
    "hint",
    [
        {"nextCursor": "abc"},
        {"hasMore": True},
        {"total": 50},
        {"pagination": {"next_page": 2}},
        {"meta": {"pageInfo": {"hasNextPage": True}}},
    ],
)
def test_list_with_further_pages_is_incomplete(hint: dict[str, object]) -> None:
    found = read_category_list({"items": [MUG, TOTE], **hint})
    assert found is not None
    assert not found.complete


@pytest.mark.parametrize(
    "answer",
    [
        None,
        7,
        {"message": "not found"},
        {"error": {"name": "NotFound", "message": "x"}},
        [{"what": "ever"}],
        [[MUG]],
        {"version": 3, "parts": [1, 2], "tags": ["a", "b"]},
        {"id": "c1", "name": "Mug", "sizes": [{"id": "s", "name": "Small"}]},
        {"warnings": [{"code": "w", "name": "Old"}]},
    ],
)
def test_unknown_shape_is_no_list(answer: object) -> None:
    """Nothing is guessed."""
    assert read_category_list(answer) is None


SIZES = ("S", "M")
OPTIONS: dict[str, object] = {
    "map of lists": {"options": {"size": ["S", "M"]}},
    "list with values": {"options": [{"name": "size", "values": ["S", "M"]}]},
    "list with choices": {"options": [{"key": "size", "choices": [{"value": "S"}, {"value": "M"}]}]},
    "list with options": {"options": [{"id": "size", "options": [{"id": "S"}, {"id": "M"}]}]},
    "list with allowed": {"options": [{"option": "size", "allowed": [{"name": "S"}, {"name": "M"}]}]},
    "enum": {"options": [{"name": "size", "enum": ["S", "M"]}]},
    "map of records": {"options": {"size": {"values": ["S", "M"]}}},
    "JSON schema": {"options": {"type": "object", "properties": {"size": {"enum": ["S", "M"]}}}},
    "schema of selections": {"selectionsSchema": {"properties": {"size": {"enum": ["S", "M"]}}}},
    "nested in category": {"category": {"options": {"size": ["S", "M"]}}},
    "nested in data": {"data": {"category": {"options": {"size": ["S", "M"]}}}},
    "next to what is chosen": {"selections": {"size": "M"}, "options": {"size": ["S", "M"]}},
    "attributes": {"result": {"attributes": [{"name": "size", "values": ["S", "M"]}]}},
}


@pytest.mark.parametrize("shape", OPTIONS)
def test_plausible_options_are_read(shape: str) -> None:
    """Names and values are found in any structure."""
    options = read_options(OPTIONS[shape])
    assert options is not None
    assert [(option.name, option.values) for option in options] == [("size", SIZES)]


@pytest.mark.parametrize(
    ("spec", "required"),
    [
        ({"required": True}, True),
        ({"optional": True}, False),
        ({"mandatory": True}, True),
        ({"required": True, "default": "S"}, None),
        ({}, None),
    ],
)
def test_required_options(spec: dict[str, object], required: bool | None) -> None:
    """Stated, not stated, or with a default in its place."""
    options = read_options({"options": [{"name": "size", "values": ["S"], **spec}]})
    assert options == (Option("size", ("S",), required),)


def test_labels_map_to_values() -> None:
    """A cell may have the label that people read on the page; the value is sent."""
    option = read_options({"options": [{"name": "fabric", "values": [{"value": "lin", "label": "Linen"}]}]})
    assert option is not None
    assert [option[0].find_value(text) for text in ("lin", "LIN ", "Linen", "linen", "wool")] == [
        *("lin", "lin", "lin", "lin", None)
    ]


def test_name_and_id_of_an_option_are_sent_as_written() -> None:
    """Which of them the service wants is not known."""
    category = read_category(
        {"options": [{"id": "opt_1", "name": "Size", "values": ["S"]}]}, Category("c", "Mug")
    )
    found = [category.find_option(text) for text in ("Size", "opt_1", "SIZE", "sort")]
    assert [pair and pair[0] for pair in found] == ["Size", "opt_1", "Size", None]


def test_offer_reports_what_could_not_be_read() -> None:
    """One sentence names the categories whose options are not checked."""
    offer = offer_of(read_category_list([MUG, TOTE]), {"c1": {"options": {"size": ["S"]}}, "c2": "what"})
    assert offer.categories is not None
    assert [category.options is None for category in offer.categories] == [False, True]
    assert offer.note == "Options were not checked for Tote bag: they cannot be read."


def test_unreadable_list_makes_an_offer_that_checks_nothing() -> None:
    """With a note."""
    offer = offer_of(read_category_list({"what": "ever"}), {})
    assert offer.categories is None
    assert offer.note


WORDS = st.sampled_from(
    [
        "categories",
        "data",
        "options",
        "properties",
        "required",
        "id",
        "name",
        "values",
        "enum",
        "total",
        "next",
        "hasMore",
    ]
)
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | WORDS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(WORDS | st.text(max_size=3), inner, max_size=4)
    ),
    max_leaves=25,
)


@pytest.mark.slow
@settings(max_examples=60)
@given(ANY_JSON, ANY_JSON)
def test_readers_and_checks_never_raise(listing: object, details: object) -> None:
    """Any JSON is read or found unreadable, and rows are checked against what was read."""
    found = read_category_list(listing)
    answers = {category.id: details for category in found.categories} if found else {}
    offer = offer_of(read_category_list(listing), answers)
    is_read = offer.categories is not None and all(one.checkable for one in offer.categories)
    assert is_read or offer.note
    for category in offer.categories or ():
        chosen = {option.name: (option.values or ("x",))[0] for option in category.options or ()}
        cells = ["A", "b", category.id, json.dumps(chosen)]
        text = io.StringIO(newline="")
        csv.writer(text).writerows([["sku", "prompt", "category", "selections"], cells])
        assert len(checked(text.getvalue(), offer).entries) == 1


def test_offered_spellings_are_kept() -> None:
    """What is sent is what is offered, composed or not; invisible characters are ignored."""
    values = ["cafe\u0301", "noir"]
    listed = read_category_list([MUG, {"id": "\ud800", "name": "Ghost"}])
    offer = offer_of(listed, {"c1": {"options": {" size ": values, "hem": ["a\u202eb"]}}})
    assert offer.categories == (Category("c1", "Mug", None),)
    offer = offer_of(read_category_list([MUG]), {"c1": {"options": {" size ": values}}})
    found = checked("sku,prompt,category,option:Size\nA,b,mug,CAF\u00c9\n", offer)
    assert found.rows[0].selections == {" size ": "cafe\u0301"}


def test_ambiguous_spelling_is_unknown() -> None:
    """Unless it is exactly one of them."""
    option = Option("size", ("s", "S"))
    assert [option.find_value(text) for text in ("s", "S", " s")] == ["s", "S", None]
    category = Category("c", "Mug", (option, Option("Size", ("M",))))
    assert [category.find_option(text) is None for text in ("size", "Size", "SIZE")] == [False, False, True]
