"""Answers about categories are read where their fields have plausible names, and never guessed at in other shapes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patternmill.planning.offer import Category, Option
from patternmill.service.offer_shapes import offer_of, read_options, read_page

MUG = {"categoryId": "c1", "name": "Mug"}
TOTE = {"categoryId": "c2", "name": "Tote bag"}


@pytest.mark.parametrize(
    "answer",
    [
        [MUG, TOTE],
        {"categories": [MUG, TOTE]},
        {"items": [MUG, TOTE], "total": 2, "nextCursor": None, "hasMore": False},
        {"data": {"categories": [MUG, TOTE]}},
        [{"id": "c1", "title": "Mug"}, {"id": "c2", "title": "Tote bag"}],
        {"results": [{"id": "c1", "label": "Mug"}, {"id": "c2", "label": "Tote bag"}]},
        [{"category_id": 1, **MUG}, {"category_id": 2, **TOTE}],
        [{"Category-ID": "c1", "Name": "Mug"}, {"category_id": "c2", "Title": "Tote bag"}],
        {"categories": [{**MUG, "icon": None, "tags": []}, TOTE, {"id": "\ud800"}], "requestId": "x"},
        {"models": [{"modelId": "c1", "name": "Mug"}, {"modelId": "c2", "name": "Tote bag"}]},
    ],
)
def test_plausible_list_is_read(answer: object) -> None:
    page = read_page(answer)
    assert page is not None
    assert [(category.id, category.name) for category in page.categories] == [
        ("c1", "Mug"),
        ("c2", "Tote bag"),
    ]
    assert (page.cursor, page.has_more) == (None, False) and page.total in (0, 2)


def test_list_of_texts_has_names_that_are_ids() -> None:
    page = read_page(["m-1"])
    assert page is not None and page.categories == (Category("m-1", "m-1", None),)


@pytest.mark.parametrize(
    ("marks", "cursor", "has_more", "total"),
    [
        ({"nextCursor": "x"}, "x", False, 0),
        ({"next_cursor": ""}, None, False, 0),
        ({"nextCursor": "x", "hasMore": False}, None, False, 0),
        ({"pagination": {"nextCursor": "x", "total": 5}}, "x", False, 5),
        ({"hasMore": True}, None, True, 0),
        ({"nextPageToken": "x"}, None, True, 0),
        ({"links": {"next": "https://x.example/?2"}}, None, True, 0),
    ],
)
def test_marks_of_a_further_page(
    marks: dict[str, object], cursor: str | None, has_more: bool, total: int
) -> None:
    """One mark leads there, others are not followed; each may be in an envelope."""
    for answer in ({"items": [MUG], **marks}, {"data": {"items": [MUG], **marks}}):
        page = read_page(answer)
        assert page is not None and (page.cursor, page.has_more, page.total) == (cursor, has_more, total)


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


@pytest.mark.parametrize(
    "answer",
    [
        {"options": {"size": ["S", "M"]}},
        {"options": {"size": {"values": ["S", "M"]}}},
        {"options": [{"name": "size", "values": ["S", "M"]}]},
        {"options": [{"key": "size", "choices": [{"value": "S"}, {"value": "M"}]}]},
        {"options": [{"id": "size", "options": [{"id": "S"}, {"id": "M"}]}]},
        {"options": [{"option": "size", "allowed": [{"name": "S"}, {"name": "M"}]}]},
        {"options": [{"name": "size", "enum": ["S", "M"]}]},
        {"category": {"options": {"size": ["S", "M"]}}},
        {"data": {"attributes": [{"name": "size", "values": ["S", "M"]}]}},
        {"selections": {"size": "M"}, "options": {"size": ["S", "M"]}},
    ],
)
def test_plausible_options_are_read(answer: object) -> None:
    options = read_options(answer)
    assert options is not None
    assert [(option.name, option.values) for option in options] == [("size", ("S", "M"))]


@pytest.mark.parametrize(
    "answer",
    [
        {"options": {"type": "object", "properties": {"size": {"enum": ["S", "M"]}}}},
        {"options": [{"name": "size", "sizes": ["S", "M"]}]},
        {"options": [{"name": "size", "values": {"S": "Small"}}]},
        {"options": [{"name": "size", "values": [["S"], ["M"]]}]},
        {"options": [{"name": "size", "values": []}]},
        {"options": {"size": ["S"], "hem": ["a\u202eb"]}},
        {"options": ["size"]},
        {"selections": {"size": "M"}},
        {"data": {"category": {"options": {"size": ["S", "M"]}}}},
    ],
)
def test_options_of_an_unknown_shape_are_not_read(answer: object) -> None:
    """None of them is, so that no row is refused for a choice that may be right."""
    assert read_options(answer) is None


@pytest.mark.parametrize(
    ("record", "option"),
    [
        ({"required": True, "values": ["S"]}, Option("size", ("S",), True)),
        ({"required": False, "values": ["S"]}, Option("size", ("S",), False)),
        ({"required": True, "default": "S", "values": ["S"]}, Option("size", ("S",), None)),
        ({"type": "text"}, Option("size", None, None)),
        ({"id": "opt_1", "values": ["S"]}, Option("size", ("S",), None, spellings=("opt_1",))),
        (
            {"values": [{"value": "lin", "label": "Linen"}]},
            Option("size", ("lin",), None, labels=(("Linen", "lin"),)),
        ),
        ({"values": ["cafe\u0301", 7]}, Option("size", ("cafe\u0301", "7"), None)),
    ],
)
def test_option_is_read_as_it_is_offered(record: dict[str, object], option: Option) -> None:
    """Whether it is required, by which other names a row may choose it, and in which spelling it is sent."""
    assert read_options({"options": [{"name": "size", **record}]}) == (option,)


def test_offer_reports_what_could_not_be_read() -> None:
    """One sentence names the categories whose options are not checked."""
    page = read_page([MUG, TOTE])
    assert page is not None
    offer = offer_of(page.categories, {"c1": {"options": {"size": ["S"]}}, "c2": "what"})
    assert offer.categories is not None
    assert [category.options is None for category in offer.categories] == [False, True]
    assert offer.note == "Options were not checked for Tote bag: they cannot be read."


WORDS = st.sampled_from(
    [
        "categories",
        "data",
        "options",
        "items",
        "required",
        "id",
        "name",
        "values",
        "enum",
        "total",
        "nextCursor",
        "hasMore",
    ]
)
WORDS |= st.text("aA1 _-\u202e\ud800", max_size=3)
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | WORDS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=12,
)


@given(ANY_JSON, ANY_JSON)
def test_any_json_is_read_or_found_unreadable(listing: object, details: object) -> None:
    page = read_page(listing)
    listed = page.categories if page else (Category("c", "Mug"),)
    offer = offer_of(listed, {category.id: details for category in listed})
    assert offer.note or all(category.checkable for category in offer.categories or ())
