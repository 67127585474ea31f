"""Prompts in five languages: the ground, the motifs and their colours."""

from __future__ import annotations

import pytest

from studio.art import words
from studio.art.reading import read_prompt

TABLE = [
    ("Blaue Reiher auf Creme", "cream", {"heron": "blue"}),
    ("rote Kirschen mit grünen Blättern auf weißem Grund", "white", {"cherries": "red", "leaf": "green"}),
    ("gelbe Zitronen auf Marineblau", "navy", {"lemon": "yellow"}),
    ("Füchse und Igel", None, {"fox": None, "hedgehog": None}),
    ("weisse Gaensebluemchen auf gruen", "green", {"daisy": "white"}),
    ("Herbstblätter", None, {"leaf": None}),
    ("hérons bleus sur fond crème", "cream", {"heron": "blue"}),
    ("roses rouges et feuilles vertes", None, {"rose_flower": "red", "leaf": "green"}),
    ("pivoines roses sur bleu marine", "navy", {"peony": "pink"}),
    ("oiseaux noirs sur fond jaune", "yellow", {"bird": "black"}),
    ("champignons et escargots", None, {"mushroom": None, "snail": None}),
    ("garzas azules sobre fondo crema", "cream", {"heron": "blue"}),
    ("flores rojas con hojas verdes", None, {"daisy": "red", "leaf": "green"}),
    ("limones amarillos sobre azul marino", "navy", {"lemon": "yellow"}),
    ("peces y estrellas de mar", None, {"fish": None, "starfish": None}),
    ("mariposas moradas", None, {"butterfly": "purple"}),
    ("クリーム色の背景に青い鷺", "cream", {"heron": "blue"}),
    ("紺地に白い鶴と赤い椿", "navy", {"heron": "white", "rose_flower": "red"}),
    ("黒猫と月", None, {"cat": "black", "moon": None}),
    ("桜の花と金色の雲", None, {"blossom": None, "cloud": "gold"}),
    ("水玉模様", None, {"dot": None}),
]


@pytest.mark.parametrize(("prompt", "ground", "subjects"), TABLE)
def test_prompt_is_read_in_its_language(
    prompt: str, ground: str | None, subjects: dict[str, str | None]
) -> None:
    reading = read_prompt(prompt)

    assert reading.ground == (None if ground is None else words.COLOURS[ground])
    assert {one.subject: one.colours for one in reading.mentions} == {
        name: () if colour is None else (words.COLOURS[colour],) for name, colour in subjects.items()
    }
