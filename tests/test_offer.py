"""The offer of an environment: shapes of its answers, words that are the same, and a service that is away."""

import asyncio

import pytest

from patternmill.offer import Category, offer_lines, parse_list, read_offer, with_options, word
from tests.spine import refuses

LIST = {
    "categories": [{"categoryId": "cat_a", "name": "Cushion"}, {"categoryId": "cat_b", "name": "Tote bag"}]
}
DETAILS = {"categoryId": "cat_a", "options": [{"name": "size", "values": ["40x40"]}]}


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("Tote Bag", "tote-bag", True), ("tote_bag", "tote  bag", True), ("50 x 50", "50x50", True),
        ("50×50", "50 X 50", True), ("tote bag", "totebag", False), ("3-4", "34", False), ("1.5", "15", False),
        ("-1.50", "1.50", False), ("Mug (15oz)", "Mug (11oz)", False), ("Mug (11oz)", "Mug 11oz", False),
        ("12 oz", "12oz", False),
    ],
)  # fmt: skip
def test_words_that_cannot_be_mistaken(one, other, is_same):
    assert (word(one) == word(other)) is is_same


@pytest.mark.parametrize(
    "answer",
    [
        {"options": {"size": ["40x40", "50x50"]}},
        {"options": {"size": {"values": [{"id": "40x40"}], "required": True}}},
        {"category": {"options": [{"key": "size", "choices": [{"value": "40x40", "label": "Small"}]}]}},
        {"data": {"attributes": [{"name": "size", "allowedValues": ["40x40"]}]}},
        {"id": "cat_a", "title": "Cushion", "parameters": [{"id": "size", "enum": ["40x40"]}]},
    ],
)
def test_shapes_of_a_category(answer):
    category = with_options(parse_list({"data": {"list": ["cat_a"]}}).categories[0], answer)
    assert category.id == "cat_a"
    (option,) = category.find("SIZE")
    assert option.find("40 X 40") == ("40x40",)


@pytest.mark.parametrize("answer", [{"opts": "opaque"}, [], None, {"options": [{"values": 3}]}, "text"])
def test_options_that_cannot_be_read_are_not_checked(answer):
    assert with_options(Category.model_validate("cat_a"), answer).options is None


@pytest.mark.parametrize(
    ("answer", "names"),
    [
        (LIST, ("Cushion", "Tote bag")), ([{"id": 7, "label": "Mug"}], ("Mug",)),
        ({"items": [{"slug": "mug"}], "nextCursor": None}, ("mug",)), ({"data": {"list": ["cat_a"]}}, ("cat_a",)),
        ({"opaque": 1}, ()), ({"categories": []}, ()),
    ],
)  # fmt: skip
def test_shapes_of_the_list(answer, names):
    assert tuple(one.title for one in parse_list(answer).categories or ()) == names


def test_labels_are_names_too_and_the_value_is_sent():
    choices = [{"value": "w1", "label": "White"}, {"value": "w2", "label": "Ivory"}]
    option = {"id": "colour", "label": "Farbe", "choices": choices}
    category = Category.model_validate({"id": "cat_a", "options": [option]})
    (found,) = category.find("farbe")
    assert found.find("white") == ("w1",)
    assert found.find("W2") == ("w2",)
    assert found.find("whit") == ()


def test_only_categories_that_a_sheet_names_are_asked_about():
    asked = []

    async def ask(operation, question):
        asked.append((operation, question))
        return LIST if operation == "categories/list" else DETAILS

    offer = asyncio.run(read_offer(ask, lambda name: None, ["cushion", "CUSHION", "nothing"]))
    assert asked == [("categories/list", {}), ("categories/get", {"categoryId": "cat_a"})]
    assert offer.answers == {"": LIST, "cat_a": DETAILS}
    assert offer.find("cushion")[0].options is not None
    assert offer.notes == ()


def test_a_service_that_is_away_is_remembered_and_said():
    async def ask(operation, question):
        return None

    offer = asyncio.run(read_offer(ask, {"": LIST, "cat_a": DETAILS}.get, ["Cushion"]))
    assert offer.answers == {}
    assert offer.notes == ("The list of categories is the last one read: the service is away.",
                           "The options of Cushion are the last ones read: the service is away.")  # fmt: skip
    with refuses("offer_unreachable"):
        asyncio.run(read_offer(ask, {"": LIST}.get, ["Cushion"]))


def test_the_offer_is_shown_as_it_is_written_in_a_sheet():
    async def ask(operation, question):
        details = DETAILS if question.get("categoryId") == "cat_a" else {}
        return LIST if operation == "categories/list" else details

    offer = asyncio.run(read_offer(ask, lambda name: None, None))
    assert list(offer_lines(offer, ["cushion"])) == [
        "Note: Options of Tote bag are sent as written, not checked: they cannot be read.",
        "Cushion (cat_a)",
        "  option:size: 40x40",
    ]
    assert list(offer_lines(offer, []))[-1] == "Tote bag (cat_b)"
