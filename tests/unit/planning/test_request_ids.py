"""Identity: a request ID is named by what is bought, and by nothing else, for ever."""

from __future__ import annotations

import json
import unicodedata
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID, uuid5

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patternmill.catalog.normal_text import normalised
from patternmill.catalog.refinements import Refinement
from patternmill.errors import ConfigurationError
from patternmill.identifiers import RequestId
from patternmill.planning.items import (
    NAMESPACE,
    Item,
    Scope,
    canonical_json,
    reference_content,
    refinement_content,
)
from patternmill.planning.unstated import Unstated, read_unstated
from patternmill.states import Stage
from tests.unit.planning.items import pattern_item, product_item

STAGING = Scope("staging", "spring")
HERONS = pattern_item(STAGING, "blue herons at dawn")
CUSHION = product_item(STAGING, "CU-001", HERONS.key, "cat_cushion", {"size": "45x45", "fabric": "linen"})
texts = st.text(st.characters(codec="utf-8"), min_size=1)

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
    "a product": (CUSHION, 1, "efa11558-0ff5-5359-926f-cbc4850e8a50"),
    "a product's second attempt": (CUSHION, 2, "f0dd4cfc-327f-5f87-90ec-941175b104c1"),
    "a product without selections": (
        product_item(STAGING, "SKU-é", HERONS.key, "cat_cushion", {}),
        1,
        "cef9c37d-aa4d-5dba-85cb-6961e865ce25",
    ),
}


@pytest.mark.parametrize(("item", "attempt", "expected"), GOLDEN.values(), ids=GOLDEN)
def test_golden_request_ids(item: Item, attempt: int, expected: str) -> None:
    """A change here makes every customer buy everything again: the IDs are pinned as literals."""
    assert item.request_id(attempt) == expected


def test_golden_item_keys() -> None:
    """The keys by which the ledger knows items are pinned too."""
    assert HERONS.key == "e5ff3d83-0660-504f-a5a4-3cd47fb032dd"
    assert CUSHION.key == "9d39840e-e2a6-5d99-a195-ae9c8ccf208c"


def test_request_id_is_a_uuid5_of_canonical_json() -> None:
    """Of version, environment, catalog, stage, content and attempt."""
    name = '["v1","staging","spring","pattern",{"parameters":{},"prompt":"blue herons at dawn"},1]'
    assert UUID("6f1c2c1e-6a53-5d0b-9c3e-5b7f2a1d4e80") == NAMESPACE
    assert HERONS.request_id(1) == str(uuid5(NAMESPACE, name))
    assert UUID(HERONS.request_id(1)).version == 5


def test_bodies_are_the_same_bytes_each_time() -> None:
    assert HERONS.body(HERONS.request_id(1)) == (
        b'{"prompt":"blue herons at dawn","requestId":"0d4cfdc0-8310-5536-922c-355b3c5c2416"}'
    )
    assert CUSHION.body(CUSHION.request_id(1), {CUSHION.parent_key: "pat_1"}) == (
        b'{"categoryId":"cat_cushion","patternId":"pat_1",'
        b'"requestId":"efa11558-0ff5-5359-926f-cbc4850e8a50",'
        b'"selections":{"fabric":"linen","size":"45x45"}}'
    )


def test_bodies_are_utf8() -> None:
    """UTF-8 on the wire, so that the body reads as the prompt reads."""
    item = pattern_item(STAGING, "flamingo 🦩")
    assert "flamingo 🦩".encode() in item.body(item.request_id(1))


PRODUCT: dict[str, Any] = {
    "scope": STAGING,
    "sku": "CU-001",
    "pattern": HERONS.key,
    "category_id": "cat_cushion",
    "selections": {"size": "45x45", "fabric": "linen"},
}


@pytest.mark.parametrize(
    "change",
    [
        {"scope": Scope("production", "spring")},
        {"scope": Scope("staging", "autumn")},
        {"sku": "CU-002"},
        {"sku": "cu-001"},
        {"pattern": pattern_item(STAGING, "blue herons at dusk").key},
        {"category_id": "cat_mug"},
        {"selections": {"size": "45x45"}},
        {"selections": {"size": "45x45", "fabric": "velvet"}},
        {"selections": {"size": "45x45", "Fabric": "linen"}},
        {"selections": {}},
    ],
    ids=str,
)
def test_any_changed_field_is_a_new_request_id(change: dict[str, Any]) -> None:
    assert product_item(**PRODUCT | change).request_id(1) != CUSHION.request_id(1)


def test_selections_have_no_order() -> None:
    """The columns of a file may be in any order."""
    made = {CUSHION.parent_key: "p"}
    turned = product_item(**PRODUCT | {"selections": {"fabric": "linen", "size": "45x45"}})
    assert turned.key == CUSHION.key
    assert turned.body(RequestId("r"), made) == CUSHION.body(RequestId("r"), made)


def test_patterns_and_products_never_share_a_request_id() -> None:
    ids = {Item(stage, STAGING, {"same": "content"}).request_id(1) for stage in Stage}
    assert len(ids) == len(Stage)


@given(texts, st.sampled_from(["NFC", "NFD"]), st.sampled_from(["", " ", "\t", " \n", "\u00a0"]))
def test_spelling_is_not_content(text: str, form: Any, space: str) -> None:
    """Composed or decomposed, with or without outer spaces: one prompt, one purchase."""
    spelled = space + unicodedata.normalize(form, text) + space
    assert pattern_item(STAGING, spelled).request_id(1) == pattern_item(STAGING, text).request_id(1)


@given(texts, texts)
def test_different_prompts_have_different_request_ids(one: str, other: str) -> None:
    """Texts that differ after normalising never collide."""
    same = normalised(one) == normalised(other)
    assert (pattern_item(STAGING, one).key == pattern_item(STAGING, other).key) is same


@given(texts, texts, texts, texts)
def test_scopes_never_collide(one: str, other: str, third: str, fourth: str) -> None:
    """No environment and catalog can be spelled so that two scopes have one ID."""
    same = (one, other) == (third, fourth)
    first = pattern_item(Scope(one, other), "x").request_id(1)
    assert (first == pattern_item(Scope(third, fourth), "x").request_id(1)) is same


@given(st.dictionaries(texts, texts), st.randoms(use_true_random=False))
def test_canonical_json_has_one_spelling(content: dict[str, str], chance: Any) -> None:
    """In whatever order a mapping was filled; and nothing is lost."""
    pairs = list(content.items())
    chance.shuffle(pairs)
    assert canonical_json(dict(pairs)) == canonical_json(content)
    assert json.loads(canonical_json(content)) == content


SHA = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
REFERENCE = Item(Stage.REFERENCE, STAGING, reference_content(SHA), picture_of=lambda sha256: b"picture")
GUIDED = pattern_item(STAGING, "blue herons at dawn", model="linocut", reference=SHA)
RECOLORED = Item(
    Stage.REFINEMENT, STAGING, refinement_content(GUIDED.key, Refinement("recolor", {"palette": ["#1f3a5f"]}))
)


def test_golden_ids_of_chains() -> None:
    """Pinned like those of patterns and products."""
    found = [(item.key, item.request_id(1)) for item in (REFERENCE, GUIDED, RECOLORED)]
    assert found == [
        ("38d7c12c-7238-5a00-8230-e8ee11e9e0ab", "dfce653a-bf2e-5273-a29b-04bf8c3d2466"),
        ("fae11933-a87d-5ea5-8103-1afe7e99d7f8", "594f412d-fb7b-566f-b563-570446d7bf7d"),
        ("c81ec4a5-f0c6-59f1-842d-d862a9dde587", "61854ea5-d28b-56e3-bcd1-9fb47c9269b7"),
    ]


def test_each_item_of_a_chain_names_what_it_is_built_on() -> None:
    assert REFERENCE.parent_key is None
    assert GUIDED.parent_key == REFERENCE.key
    assert RECOLORED.parent_key == GUIDED.key


def test_bodies_of_a_chain() -> None:
    """The fields are those that are documented as a choice."""
    request_id = RequestId("r")
    assert REFERENCE.body(request_id) == b'{"data":"cGljdHVyZQ==","requestId":"r"}'
    assert GUIDED.body(request_id, {REFERENCE.key: "ref_1"}) == (
        b'{"model":"linocut","prompt":"blue herons at dawn","referenceIds":["ref_1"],"requestId":"r"}'
    )
    assert RECOLORED.body(request_id, {GUIDED.key: "pat_1"}) == (
        b'{"palette":["#1f3a5f"],"patternId":"pat_1","requestId":"r"}'
    )
    assert (REFERENCE.operation, GUIDED.operation, RECOLORED.operation) == (
        "references/create",
        None,
        "refine/recolor",
    )


def test_service_may_call_it_otherwise() -> None:
    """What a service calls things is no content: the same items, asked for by other names."""
    unstated = Unstated(
        refine={"recolor": "patterns/recolour"},
        pattern="sourceId",
        fields={"palette": "colours"},
        model="engine",
    )
    recolored, guided = replace(RECOLORED, unstated=unstated), replace(GUIDED, unstated=unstated)
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
