"""One catalog, night after night, at services that answer differently: what exists is bought once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.acceptance.evidence import Evidence
from tests.acceptance.harness import Room, Zygote
from tests.hostile import ExpectedRow, Hostile, Plan, Rule

#: As a person writes them: the offer has `50x50`, `linen` and `Cushion`.
ROWS = [
    ExpectedRow("A-1", "blue herons", "cushion", {"size": "50X50", "fabric": "Linen"}),
    ExpectedRow("A-2", "blue herons", "MUG", {"size": "11OZ"}),
    ExpectedRow("A-3", "green ferns", "tote bag", {"handle": "Long", "size": "LARGE"}),
    ExpectedRow("A-4", "red foxes\r\nat dusk", "cushion", {"size": "40x40", "fabric": "velvet"}),
]
PURCHASES = 3 + len(ROWS)

TOLERANT = Plan(strict=False)
CLEAR = TOLERANT
ONE_CATEGORY_AWAY = replace(
    TOLERANT, rules=(Rule("categories/get", "status", {"code": 404}, matching="cushion"),)
)
ALL_OPTIONS_AWAY = replace(TOLERANT, rules=(Rule("categories/get", "status", {"code": 404}),))
LIST_AWAY = replace(
    TOLERANT,
    rules=(
        Rule("categories/list", "status", {"code": 404}),
        Rule("categories/get", "status", {"code": 404}),
    ),
)
UNREADABLE = replace(TOLERANT, shape="unreadable")
PAGED = replace(TOLERANT, shape="paged")


@pytest.mark.parametrize(
    "nights",
    [
        [CLEAR, ONE_CATEGORY_AWAY, CLEAR, LIST_AWAY, CLEAR],
        [LIST_AWAY, CLEAR, ONE_CATEGORY_AWAY, UNREADABLE, PAGED],
        [PAGED, ALL_OPTIONS_AWAY, ONE_CATEGORY_AWAY],
    ],
    ids=["one away", "blind first", "paged first"],
)
def test_same_file_is_bought_once_whatever_can_be_read(
    nights: list[Plan], zygote: Zygote, tmp_path: Path
) -> None:
    """A service that is tolerant of names and case would sell it all again."""
    with Hostile(nights[0], tmp_path) as service:
        room = Room(tmp_path / "room", service, ROWS, zygote)
        products: list[str] = []
        for number, night in enumerate(nights):
            service.change(night)
            if number == len(nights) - 1:
                # An editor on another system, and a person who prefers small letters.
                text = room.file.read_bytes().replace(b"foxes\r\n", b"foxes\n").replace(b"A-2", b"a-2")
                room.file.write_bytes(text)
            ended = room.run()
            if nights[0] is LIST_AWAY and ended.code == 2:
                # Rows that were made unchecked are asked about once the offer can be read.
                assert number and "--confirm changes" in ended.output
                assert len(Evidence(room).audit.purchases) == PURCHASES, f"night {number}"
                continue
            assert ended.code == 0, ended.output
            made = [row["product_id"] for row in Evidence(room).results]
            assert made == (products or made), "a row has another product than before"
            products = made
            assert len(Evidence(room).audit.purchases) == PURCHASES, f"night {number}"


def test_refused_spellings_are_replaced_once_the_offer_is_known(zygote: Zygote, tmp_path: Path) -> None:
    """The first night's refusals are alike, stop it and cost no product; its patterns are used by the second."""
    strict = replace(LIST_AWAY, strict=True)
    with Hostile(strict, tmp_path) as service:
        room = Room(tmp_path / "room", service, ROWS, zygote)
        assert room.run().code == 1
        service.change(Plan())
        assert room.run().code == 0
        assert len(Evidence(room).audit.purchases) == PURCHASES
