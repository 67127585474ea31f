"""Identity: a request ID is named by what is bought, and by nothing else, for ever."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID, uuid5

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patternmill.errors import ConfigurationError
from patternmill.identifiers import RequestId
from patternmill.planning.items import (
    NAMESPACE,
    Item,
    ItemMaker,
    Scope,
    canonical_json,
    canonical_texts,
    checkout_item,
    pattern_content,
)
from patternmill.planning.normal_text import normalised
from patternmill.planning.offer import Category, Option
from patternmill.planning.refinements import Refinement
from patternmill.planning.rows import Row
from patternmill.planning.unstated import Unstated, read_unstated
from patternmill.states import Stage

STAGING = Scope("staging", "spring")
ROW = Row("blue herons at dawn", "cat_cushion", {"size": "45x45", "fabric": "linen"}, line=2, sku="CU-001")
SHA = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
texts = st.text(st.characters(codec="utf-8"), min_size=1)


def pattern_item(scope: Scope, prompt: str, **terms: Any) -> Item:
    return Item(Stage.PATTERN, scope, pattern_content(prompt, **terms))


def chain(scope: Scope = STAGING, unstated: Unstated | None = None, **change: Any) -> tuple[Item, ...]:
    """Return the items of a row."""
    maker = ItemMaker(scope, picture_of=lambda sha256: b"picture", unstated=unstated or Unstated())
    return maker.chain(replace(ROW, **change))


HERONS, CUSHION = chain()
RECOLOR = Refinement("recolor", {"palette": ["#1f3a5f"]})
REFINED = {"model": "linocut", "reference": SHA, "refinements": (RECOLOR,)}
REFERENCE, GUIDED, RECOLORED, _ = chain(**REFINED)
ORDERS = STAGING.of_orders
LINES = (("prd_1", 2), ("prd_2", 1))
CHECKOUT = checkout_item(ORDERS, "samples", LINES)

GOLDEN = {
    "a pattern": (HERONS, 1, "0d4cfdc0-8310-5536-922c-355b3c5c2416"),
    "its second attempt": (HERONS, 2, "4b9ff83e-8aa6-5cb3-952c-44c847a6bceb"),
    "a second take": (
        pattern_item(STAGING, "blue herons at dawn", take=2),
        1,
        "ba8990f4-053c-57a9-94a0-17ee9535d885",
    ),
    "another environment": (
        pattern_item(Scope("production", "spring"), "blue herons at dawn"),
        1,
        "f3c027e5-6012-57e8-af9e-7c1cb759f662",
    ),
    "another catalog": (
        pattern_item(Scope("staging", "autumn"), "blue herons at dawn"),
        1,
        "66b48834-9d20-5fdf-8738-7d78973680cf",
    ),
    "beyond ASCII": (pattern_item(STAGING, "café crème 蓝色 🦩"), 1, "85169e11-0c6d-5368-a90c-a8f8c054bdcd"),
    "a product": (CUSHION, 1, "f131931e-eed0-53fb-9e89-4a353bd1ab18"),
    "a product's second attempt": (CUSHION, 2, "44229534-d972-55cf-a5e8-2b7ae6f62dc8"),
    "a product without selections": (
        chain(sku="SKU-é", selections={})[-1],
        1,
        "3bdf9999-f5e8-5182-81ca-2bab6f0669c4",
    ),
    "a reference": (REFERENCE, 1, "dfce653a-bf2e-5273-a29b-04bf8c3d2466"),
    "a pattern by it, of a model": (GUIDED, 1, "594f412d-fb7b-566f-b563-570446d7bf7d"),
    "a refinement": (RECOLORED, 1, "61854ea5-d28b-56e3-bcd1-9fb47c9269b7"),
    "a checkout": (CHECKOUT, 1, "e0e9eb18-f930-5289-b504-80a52458d344"),
    "a checkout's second attempt": (CHECKOUT, 2, "5e500cdd-ca1b-56ce-82ec-5dd9a4eb1dcb"),
}


@pytest.mark.parametrize(("item", "attempt", "expected"), GOLDEN.values(), ids=GOLDEN)
def test_golden_request_ids(item: Item, attempt: int, expected: str) -> None:
    """A change here makes every customer buy everything again: the IDs are pinned as literals."""
    assert item.request_id(attempt) == expected


def test_golden_item_keys() -> None:
    """The keys by which the ledger knows items are pinned too."""
    assert [item.key for item in (HERONS, CUSHION, REFERENCE, GUIDED, RECOLORED, CHECKOUT)] == [
        "e5ff3d83-0660-504f-a5a4-3cd47fb032dd",
        "9e839277-9d9c-5833-b8d6-e30be3bd3d31",
        "38d7c12c-7238-5a00-8230-e8ee11e9e0ab",
        "fae11933-a87d-5ea5-8103-1afe7e99d7f8",
        "c81ec4a5-f0c6-59f1-842d-d862a9dde587",
        "f6f813e7-a46d-56f2-ac1e-bc7d10ed1c2d",
    ]
    assert (REFERENCE.parent_key, GUIDED.parent_key) == (None, REFERENCE.key)
    assert (RECOLORED.parent_key, CUSHION.parent_key) == (GUIDED.key, HERONS.key)


def test_request_id_is_a_uuid5_of_canonical_json() -> None:
    """The JSON has the version, environment, catalog, stage, content and attempt."""
    name = '["v1","staging","spring","pattern",{"parameters":{},"prompt":"blue herons at dawn"},1]'
    assert UUID("6f1c2c1e-6a53-5d0b-9c3e-5b7f2a1d4e80") == NAMESPACE
    assert HERONS.request_id(1) == str(uuid5(NAMESPACE, name))
    assert UUID(HERONS.request_id(1)).version == 5


@given(
    st.recursive(
        st.text(st.characters(codec="utf-8")) | st.integers(0, 999),
        lambda inner: st.dictionaries(st.text(st.characters(codec="utf-8")), inner),
    )
)
def test_quick_spelling_of_texts_is_the_canonical_one(value: object) -> None:
    """It is so for every text, whatever is escaped in it; values that may hold decimals are never spelled by it."""
    assert canonical_texts(value).decode() == canonical_json(value)


@pytest.mark.parametrize(
    ("item", "parent", "body"),
    [
        (REFERENCE, None, '{"data":"cGljdHVyZQ==","requestId":"r"}'),
        (HERONS, None, '{"prompt":"blue herons at dawn","requestId":"r"}'),
        (pattern_item(STAGING, "flamingo 🦩"), None, '{"prompt":"flamingo 🦩","requestId":"r"}'),
        (
            GUIDED,
            REFERENCE,
            '{"model":"linocut","prompt":"blue herons at dawn","referenceIds":["id_1"],"requestId":"r"}',
        ),
        (RECOLORED, GUIDED, '{"palette":["#1f3a5f"],"patternId":"id_1","requestId":"r"}'),
        (
            CUSHION,
            HERONS,
            '{"categoryId":"cat_cushion","patternId":"id_1","requestId":"r",'
            '"selections":{"fabric":"linen","size":"45x45"}}',
        ),
        (
            CHECKOUT,
            None,
            '{"lines":[{"productId":"prd_1","quantity":2},{"productId":"prd_2","quantity":1}],"requestId":"r"}',
        ),
    ],
)
def test_bodies_are_the_same_bytes_each_time(item: Item, parent: Item | None, body: str) -> None:
    """UTF-8 on the wire, so that the body reads as the prompt reads."""
    made = {parent.key: "id_1"} if parent is not None else {}
    assert item.body(RequestId("r"), made) == body.encode()


CROPPED = Refinement("crop", {"x": 0.25, "y": 0, "width": 0.5, "height": 0.75})


def test_items_have_names_for_people() -> None:
    again = pattern_item(STAGING, "blue herons at dawn", take=2)
    *_, cropped, product = chain(refinements=(CROPPED,))
    assert [item.describe() for item in (HERONS, again, REFERENCE, cropped, product, CHECKOUT)] == [
        "pattern · blue herons at dawn",
        "pattern, take 2 · blue herons at dawn",
        f"reference · {SHA[:12]}",
        "refinement · crop 0.25 0 0.5 0.75",
        "product · CU-001",
        "checkout · 2 lines, 3 pieces",
    ]
    assert (HERONS.take, again.take) == (1, 2)


def test_refinement_may_have_decimals() -> None:
    *_, cropped, _ = chain(refinements=(CROPPED,))
    assert '"height":0.75' in cropped.content_text
    # As JSON in Python spells it, whatever is quicker for texts.
    *_, cropped, _ = chain(refinements=(Refinement("crop", {"x": 1e-7}),))
    assert '"x":1e-07' in cropped.content_text


def test_picture_that_nobody_has_is_not_uploaded() -> None:
    with pytest.raises(LookupError, match=SHA):
        ItemMaker(STAGING).chain(replace(ROW, reference=SHA))[0].body(1)


def test_operations_of_items() -> None:
    items = (REFERENCE, GUIDED, RECOLORED, CUSHION)
    assert [item.operation for item in items] == ["references/create", None, "refine/recolor", None]
    assert [item.is_repeatable for item in items] == [False, True, False, True]


@pytest.mark.parametrize(
    "change",
    [
        {"sku": "CU-002"},
        {"prompt": "blue herons at dusk"},
        {"category": "cat_mug"},
        {"selections": {"size": "45x45"}},
        {"selections": {"size": "45x45", "fabric": "velvet"}},
        {"selections": {"size": "45x45", "fabrics": "linen"}},
        {"selections": {}},
    ],
    ids=str,
)
def test_any_changed_field_is_a_new_request_id(change: dict[str, Any]) -> None:
    assert chain(**change)[-1].request_id(1) != CUSHION.request_id(1)


@pytest.mark.parametrize(
    "change",
    [
        {"sku": " cu-001"},
        {"selections": {"Size": "45X45", "fabric": " Linen"}},
        {"selections": {"fabric": "linen", "size": "45x45"}},
    ],
    ids=str,
)
def test_spelling_of_a_row_is_not_content(change: dict[str, Any]) -> None:
    """What differs in case, space, `-`, `_` or order only is the same product; the body has its own spelling."""
    other = chain(**change)[-1]
    assert other.request_id(1) == CUSHION.request_id(1)
    body = json.loads(other.body(RequestId("r"), {HERONS.key: "p"}))
    assert body["selections"] == change.get("selections", ROW.selections)


@pytest.mark.parametrize(
    "other",
    [
        checkout_item(ORDERS, "samples-2", LINES),
        checkout_item(ORDERS, "samples", (("prd_1", 2), ("prd_2", 2))),
        checkout_item(ORDERS, "samples", LINES[::-1]),
        checkout_item(Scope("production", "spring").of_orders, "samples", LINES),
        checkout_item(Scope("staging", "autumn").of_orders, "samples", LINES),
    ],
)
def test_whatever_is_ordered_otherwise_is_another_checkout(other: Item) -> None:
    assert other.key != CHECKOUT.key


def test_values_with_one_key_are_two() -> None:
    """Where an offer has two values that only spelling tells apart, the exact spelling identifies them."""
    category = Category(
        "cat_1",
        "Mug",
        (Option("size", ("A-4", "a 4", "S")), Option("Color", ("red",), spellings=("colour",))),
    )
    assert category.exact_keys({"size": "A-4"}) == {"size": "A-4"}
    assert category.exact_keys({"size": "S", "Color": "red"}) is None
    assert category.exact_keys({"colour": "red"}) == {"color": "red"}


@given(texts, texts)
def test_different_prompts_have_different_request_ids(one: str, other: str) -> None:
    """Texts that differ after normalising never collide."""
    same = normalised(one) == normalised(other)
    assert (pattern_item(STAGING, one).key == pattern_item(STAGING, other).key) is same


@given(texts, texts, texts, texts)
def test_scopes_never_collide(one: str, other: str, third: str, fourth: str) -> None:
    """No spelling of environment and catalog gives two scopes one ID."""
    same = (one, other) == (third, fourth)
    first = pattern_item(Scope(one, other), "x").request_id(1)
    assert (first == pattern_item(Scope(third, fourth), "x").request_id(1)) is same


def test_service_may_call_it_otherwise() -> None:
    """The service's names are not content: the items are the same, requested under other names."""
    unstated = Unstated(
        refine={"recolor": "patterns/recolour"},
        pattern="sourceId",
        fields={"palette": "colours"},
        model="engine",
    )
    _, guided, recolored, _ = chain(unstated=unstated, **REFINED)
    assert recolored.key == RECOLORED.key
    assert recolored.operation == "patterns/recolour"
    assert recolored.body(RequestId("r"), {GUIDED.key: "p"}) == (
        b'{"colours":["#1f3a5f"],"requestId":"r","sourceId":"p"}'
    )
    assert b'"engine":"linocut"' in guided.body(RequestId("r"), {REFERENCE.key: "ref_1"})


def test_operations_file_vouches_for_what_it_names(tmp_path: Path) -> None:
    file = tmp_path / "operations.json"
    file.write_text('{"staging": {"refine": {"crop": "patterns/crop"}, "picture": "image"}}', "utf-8")
    staging = read_unstated(file, "staging")
    assert staging.refine["crop"] == "patterns/crop"
    assert staging.refine["recolor"] == "refine/recolor"
    assert (staging.known, staging.picture) == ({"patterns/crop"}, "image")
    assert read_unstated(file, "production") == read_unstated(None, "production")


@pytest.mark.parametrize(
    "text",
    [
        *("[]", '{"staging": {"refin": {}}}', '{"staging": {"refine": "x"}}'),
        '{"staging": {"upload": "../x"}}',
    ],
)
def test_unusable_operations_file_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "operations.json"
    file.write_text(text, "utf-8")
    with pytest.raises(ConfigurationError, match="PATTERNMILL_OPERATIONS_FILE"):
        read_unstated(file, "staging")
