"""Identity: an item is what it contains, and its IDs never change."""

import json

import pytest

from patternmill.items import (
    Row,
    checkout_item,
    choice_of,
    likeness_of,
    pattern_item,
    product_item,
    reference_item,
    refinement_item,
)
from patternmill.text import key

REEDS = reference_item(
    "production", "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", "reeds.png"
)
NEST = pattern_item("production", "Blue  herons’ nest")
BLUE = refinement_item(NEST, "recolor", {"colors": "blue"})
LINES = [("prod_2", 1), ("prod_1", 3)]
#: The ID of an item of each kind, and the request ID of its first attempt. Another one here is a double purchase there.
GOLDEN = {
    "reference": (REEDS, "d2d7c3a9-6f13-5593-b97e-4c68931e6028", "e73d28c7-1ce7-5497-b2a2-75024e65e774"),
    "pattern": (NEST, "6e5f5271-b6a0-53e5-a68d-2ce8e4bf6afc", "ed4c615c-7c4c-58f5-a9fd-6941bcdfff5d"),
    "pattern of a model": (
        pattern_item("production", "herons", model="m-2"),
        "dfb1a84b-f753-5aad-a4f7-f11f404a52d4", "72dc0759-d5d8-5a36-9f49-5552a5c7b6bd",
    ),
    "pattern with a reference": (
        pattern_item("production", "herons", reference=REEDS),
        "6c35ff2d-ecb6-5837-b64c-69961c8b9d41", "ebf9bf0d-3e38-5fce-bd6b-8532479a9a12",
    ),
    "second take": (
        pattern_item("production", "herons", take=2),
        "36d99621-69e3-51e0-9c54-a7bd0dfb2f49", "2431726d-302d-5289-8386-568c08f19ad8",
    ),
    "refinement": (BLUE, "bca1de44-4163-5ca1-be7a-ebb82d9bb270", "63f53d8f-0b4f-5f88-b72f-ff08a2534f58"),
    "product": (
        product_item(NEST, "A-1", choice_of("cat_mug", {"Size": "11oz", "finish": "Matte"})),
        "748de795-4185-57ac-b047-7f18471eac21", "f9d4b7d6-5efe-5e3a-8d61-66b1795cd10b",
    ),
    "product of a refinement": (
        product_item(BLUE, "A-1", choice_of("cat_mug", {})),
        "34a07103-178e-544a-8a13-36a7d481fb12", "f234679e-4170-5572-979d-78745762b48e",
    ),
    "checkout": (
        checkout_item("production", "samples", LINES),
        "5a33e316-8ff4-58f4-9bd7-6ae7c4ad48d5", "3a85c01e-0052-5936-b808-eac1637682b2",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", GOLDEN)
def test_golden_ids(kind):
    item, item_id, request_id = GOLDEN[kind]
    assert (item.id, item.request_id(1)) == (item_id, request_id)


def product(prompt="blue herons", sku="A-1", category="cat_mug", environment="production", **selections):
    return product_item(pattern_item(environment, prompt), sku, choice_of(category, selections))


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ({"colour": "white"}, {"Colour": " WHITE"}, True),
        ({"colour": "off white"}, {"colour": "Off-White"}, True),
        ({"colour": "off white"}, {"colour": "offwhite"}, False),
        ({"shift": "1.5"}, {"shift": "15"}, False),
        ({"shift": "-1.50"}, {"shift": "1.50"}, False),
        ({"size": "3-4"}, {"size": "34"}, False),
        ({"sku": "a-1"}, {"sku": "A-1 "}, True),
        ({"sku": "A-1"}, {"sku": "A1"}, False),
        ({"sku": "A-1"}, {"sku": "A-2"}, False),
        ({"prompt": "blue  herons"}, {"prompt": "blue herons"}, True),
        ({"prompt": "“blue” herons"}, {"prompt": '"blue" herons'}, True),
        ({"prompt": "blue\r\nherons"}, {"prompt": "blue\nherons"}, True),
        ({"prompt": "blue herons"}, {"prompt": "Blue herons"}, False),
        ({"category": "cat_mug"}, {"category": "cat_tote"}, False),
        ({"environment": "production"}, {"environment": "staging"}, False),
    ],
)
def test_what_is_the_same_product(one, other, is_same):
    assert (product(**one).id == product(**other).id) is is_same


@pytest.mark.parametrize(
    ("kind", "operation", "parent", "body"),
    [
        ("reference", "references/create", None, {}),
        ("pattern", "patterns/create", None, {"prompt": "Blue  herons’ nest"}),
        ("pattern with a reference", "patterns/create", "ref_1", {"patternId": ["ref_1"], "prompt": "herons"}),
        ("refinement", "refinements/create", "pat_1", {"patternId": "pat_1", "colors": "blue"}),
        (
            "product", "products/create", "pat_1",
            {"patternId": "pat_1", "categoryId": "cat_mug", "selections": {"Size": "11oz", "finish": "Matte"}},
        ),
    ],
)  # fmt: skip
def test_what_is_sent(kind, operation, parent, body):
    item, _, request_id = GOLDEN[kind]
    assert item.operation == operation
    assert item.body(1, parent) == json.dumps({"requestId": request_id, **body}, ensure_ascii=False)


def test_a_row_is_made_from_what_it_stands_on():
    on_blue = GOLDEN["product of a refinement"][0]
    assert Row(2, "A-1", on_blue).chain == [NEST, BLUE, on_blue]
    assert (NEST.label, BLUE.label) == ("Blue  herons’ nest", "recolor: Blue  herons’ nest")
    assert len(pattern_item("production", "h" * 99).label) == 60


def test_a_repeated_request_has_the_same_id_and_body():
    assert product().request_id(1) == product().request_id(1) != product().request_id(2)
    assert product().body(1, "pat_1") == product().body(1, "pat_1")


def test_products_that_differ_in_their_sku_alone_are_alike():
    assert likeness_of(product(sku="A-1")) == likeness_of(product(sku="B-9"))
    assert likeness_of(product(colour="white")) != likeness_of(product(colour="black"))


def test_the_lines_of_a_checkout_have_no_order():
    assert (
        checkout_item("production", "samples", LINES).id
        == checkout_item("production", "samples", LINES[::-1]).id
    )


@pytest.mark.parametrize(
    ("one", "other"), [("tote bag", "tote-bag"), ("Tote_Bag", "tote  bag"), ("caf\u00e9", "CAFE\u0301")]
)
def test_keys_that_are_one(one, other):
    assert key(one) == key(other)
