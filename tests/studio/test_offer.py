"""The range: its IDs, its answers, and what cannot be selected."""

from __future__ import annotations

import pytest

from studio import offer

CUSHION = offer.CATEGORIES[0]


def test_ids_differ_between_environments() -> None:
    for category in offer.CATEGORIES:
        staging, production = (category.category_id(name) for name in ("staging", "production"))
        assert staging != production
        assert offer.find_category("staging", staging) == category
        assert offer.find_category("production", staging) is None


@pytest.mark.parametrize(
    ("selections", "messages"),
    [
        ({"size": "40x40", "fabric": "linen"}, []),
        (
            {"size": "40x40", "fabric": "Linnen"},
            ["option 'fabric' has no value 'Linnen'; offered: cotton, linen, velvet"],
        ),
        ({"size": "40x40"}, ["option 'fabric' has to be selected; offered: cotton, linen, velvet"]),
        (
            {"size": "40x40", "fabric": "linen", "colour": "red"},
            ["Cushion has no option 'colour'; offered: size, fabric, filling"],
        ),
        (
            {"sise": "x"},
            [
                "Cushion has no option 'sise'; offered: size, fabric, filling",
                "option 'size' has to be selected; offered: 40x40, 50x50, 60x40",
                "option 'fabric' has to be selected; offered: cotton, linen, velvet",
            ],
        ),
    ],
)
def test_invalid_selections_are_all_named(selections: dict[str, str], messages: list[str]) -> None:
    """They are named at once, with what is offered instead."""
    assert [fault.message for fault in offer.selection_faults(CUSHION, selections)] == messages
