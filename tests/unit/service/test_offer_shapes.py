"""Answers about categories are read where their fields have plausible names, and never guessed at in other shapes."""

from __future__ import annotations

import csv
import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patternmill.planning.offer import Category, Option
from patternmill.service.offer_shapes import offer_of, read_options, read_page
from tests.unit.tables.samples import checked

MUG = {"categoryId": "c1", "name": "Mug"}
TOTE = {"categoryId": "c2", "name": "Tote bag"}
READ = [("c1", "Mug"), ("c2", "Tote bag")]

LISTS: dict[str, object] = {
    "bare": [MUG, TOTE],
    "categories": {"categories": [MUG, TOTE]},
    "items": {"items": [MUG, TOTE], "total": 2, "nextCursor": None, "hasMore": False},
    "wrapped in data": {"data": {"categories": [MUG, TOTE]}},
    "id and title": [{"id": "c1", "title": "Mug"}, {"id": "c2", "title": "Tote bag"}],
    "id and label": {"results": [{"id": "c1", "label": "Mug"}, {"id": "c2", "label": "Tote bag"}]},
    "both spellings of the ID": [{"category_id": 1, **MUG}, {"category_id": 2, **TOTE}],
    "other spellings": [{"Category-ID": "c1", "Name": "Mug"}, {"category_id": "c2", "Title": "Tote bag"}],
    "extra fields": {"categories": [{**MUG, "icon": None, "tags": []}, TOTE], "requestId": "x"},
}


@pytest.mark.parametrize("shape", LISTS)
def test_plausible_list_is_read(shape: str) -> None:
    page = read_page(LISTS[shape])
    assert page is not None
    assert [(category.id, category.name) for category in page.categories] == READ
    assert (page.cursor, page.has_more) == (None, False) and page.total in (0, 2)


def test_models_are_read_alike() -> None:
    """A list of texts has names that are IDs."""
    for answer in ([{"id": "m-1", "name": "One"}], {"models": [{"modelId": "m-1"}]}, ["m-1"]):
        page = read_page(answer)
        assert page is not None
        assert [model.id for model in page.categories] == ["m-1"]


@pytest.mark.parametrize(
    "answer",
    [
        None,
        7,
        {"message": "not found"},
        {"error": {"name": "NotFound", "message": "x"}},
        [{"what": "ever"}],
        [[MUG]],
        {"categories": {"c1": {"name": "Mug"}, "c2": {"name": "Tote bag"}}},
        {"version": 3, "parts": [1, 2], "tags": ["a", "b"]},
        {"id": "c1", "name": "Mug", "sizes": [{"id": "s", "name": "Small"}]},
        {"categories": {"items": [MUG, TOTE]}},
    ],
)
def test_unknown_shape_is_no_list(answer: object) -> None:
    assert read_page(answer) is None


SIZES = ("S", "M")
OPTIONS: dict[str, object] = {
    "object of lists": {"options": {"size": ["S", "M"]}},
    "object of records": {"options": {"size": {"values": ["S", "M"]}}},
    "list with values": {"options": [{"name": "size", "values": ["S", "M"]}]},
    "list with choices": {"options": [{"key": "size", "choices": [{"value": "S"}, {"value": "M"}]}]},
    "list with options": {"options": [{"id": "size", "options": [{"id": "S"}, {"id": "M"}]}]},
    "list with allowed": {"options": [{"option": "size", "allowed": [{"name": "S"}, {"name": "M"}]}]},
    "enum": {"options": [{"name": "size", "enum": ["S", "M"]}]},
    "wrapped in category": {"category": {"options": {"size": ["S", "M"]}}},
    "wrapped in data": {"data": {"attributes": [{"name": "size", "values": ["S", "M"]}]}},
    "next to what is chosen": {"selections": {"size": "M"}, "options": {"size": ["S", "M"]}},
}


@pytest.mark.parametrize("shape", OPTIONS)
def test_plausible_options_are_read(shape: str) -> None:
    options = read_options(OPTIONS[shape])
    assert options is not None
    assert [(option.name, option.values) for option in options] == [("size", SIZES)]


@pytest.mark.parametrize(
    "answer",
    [
        {"options": {"type": "object", "properties": {"size": {"enum": ["S", "M"]}}}},
        {"options": [{"name": "size", "sizes": ["S", "M"]}]},
        {"options": [{"name": "size", "values": {"S": "Small"}}]},
        {"options": [{"name": "size", "values": [["S"], ["M"]]}]},
        {"options": [{"name": "size", "values": []}]},
        {"options": ["size"]},
        {"selections": {"size": "M"}},
        {"data": {"category": {"options": {"size": ["S", "M"]}}}},
    ],
)
def test_options_of_an_unknown_shape_are_not_read(answer: object) -> None:
    """None of them, so that no row is refused for a choice that may be right."""
    assert read_options(answer) is None


def test_option_without_values_takes_any_text() -> None:
    option = {"name": "monogram", "type": "text", "required": False}
    assert read_options({"options": [option]}) == (Option("monogram", None, False),)


@pytest.mark.parametrize(
    ("spec", "required"),
    [
        ({"required": True}, True),
        ({"required": False}, False),
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
    options = read_options({"options": [{"id": "opt_1", "name": "Size", "values": ["S"]}]})
    category = Category("c", "Mug", options)
    found = [category.find_option(text) for text in ("Size", "opt_1", "SIZE", "sort")]
    assert [pair and pair[0] for pair in found] == ["Size", "opt_1", "Size", None]


def test_offer_reports_what_could_not_be_read() -> None:
    """One sentence names the categories whose options are not checked."""
    page = read_page([MUG, TOTE])
    assert page is not None
    offer = offer_of(page.categories, {"c1": {"options": {"size": ["S"]}}, "c2": "what"})
    assert offer.categories is not None
    assert [category.options is None for category in offer.categories] == [False, True]
    assert offer.note == "Options were not checked for Tote bag: they cannot be read."


WORDS = st.sampled_from(
    ["categories", "data", "options", "items", "required", "id", "name", "values", "enum"]
)
WORDS |= st.sampled_from(["total", "nextCursor", "hasMore"])
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | WORDS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(WORDS | st.text(max_size=3), inner, max_size=4)
    ),
    max_leaves=25,
)


@pytest.mark.slow
@given(ANY_JSON, ANY_JSON)
def test_readers_and_checks_never_raise(listing: object, details: object) -> None:
    """Any JSON is read or found unreadable, and rows are checked against what was read."""
    page = read_page(listing)
    listed = page.categories if page else (Category("c", "Mug"),)
    offer = offer_of(listed, {category.id: details for category in listed})
    assert offer.note or all(one.checkable for one in offer.categories or ())
    for category in offer.categories or ():
        chosen = {option.name: (option.values or ("x",))[0] for option in category.options or ()}
        cells = ["A", "b", category.id, json.dumps(chosen)]
        text = io.StringIO(newline="")
        csv.writer(text).writerows([["sku", "prompt", "category", "selections"], cells])
        assert len(checked(text.getvalue(), offer).entries) == 1


def test_offered_spellings_are_kept() -> None:
    """What is sent is what is offered, composed or not; invisible characters are ignored."""
    values = ["cafe\u0301", "noir"]
    page = read_page([MUG, {"id": "\ud800", "name": "Ghost"}])
    assert page is not None
    offer = offer_of(page.categories, {"c1": {"options": {" size ": values, "hem": ["a\u202eb"]}}})
    assert offer.categories == (Category("c1", "Mug", None),)
    offer = offer_of(page.categories, {"c1": {"options": {" size ": values}}})
    found = checked("sku,prompt,category,option:Size\nA,b,mug,CAF\u00c9\n", offer)
    assert found.accepted[0].selections == {" size ": "cafe\u0301"}


def test_ambiguous_spelling_is_unknown() -> None:
    """Unless it is exactly one of them."""
    option = Option("size", ("s", "S"))
    assert [option.find_value(text) for text in ("s", "S", " s")] == ["s", "S", None]
    category = Category("c", "Mug", (option, Option("Size", ("M",))))
    assert [category.find_option(text) is None for text in ("size", "Size", "SIZE")] == [False, False, True]
