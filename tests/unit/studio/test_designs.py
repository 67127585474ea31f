"""Designs: the drawing of a prompt is pinned, and each change to it changes only what it names."""

from __future__ import annotations

import hashlib
import itertools
import re

import numpy as np
import pytest

from studio.art.changes import sheet_of
from studio.art.colour import distance
from studio.art.cutting import LARGEST, MOST_PATCHES, field_repeat
from studio.art.models import MANNERS
from studio.art.raster import rasterise
from studio.art.recipe import recipe_for
from studio.art.sheet import FILLER, Sheet, to_svg
from studio.art.tile import render, tile_image
from studio.design import Change, Crop, Design, Edit, Extend, Recolor
from tests.unit.studio.test_tile import SMALL, Pixels, seam_and_inside

CROP = Crop(x=0.2, y=0.3, width=0.5, height=0.4)
EXTEND = Extend(columns=2, rows=2)
RECOLOR = Recolor(palette=("#1d2c4d", "#f3cd45", "#eca3b4", "#fbfaf6"))
#: One tossed, one turned and mirrored, one on loose pieces, one on a regular ground, one on a ground without a repeat.
PROMPTS = (
    "tossed lemons and bees on navy",
    "cherry blossom mandala",
    "terrazzo in blush",
    "bees on gingham",
    "geometric in navy and coral",
)


def design(prompt: str, *changes: Change, model: str = "atelier") -> Design:
    return Design(prompt=prompt, model=model, changes=changes)


def drawn(one: Design, side: int = SMALL) -> Pixels:
    return np.asarray(render(sheet_of(one), one.model, side=side), dtype=np.float64)


def plain(sheet: Sheet, width: int) -> Pixels:
    """Without the grain of the picture on the screen."""
    height = round(width * sheet.height / sheet.width)
    return np.asarray(rasterise(to_svg(sheet), width, height).convert("RGB"), dtype=np.float64)


def seams_are_hidden(image: Pixels) -> bool:
    return all(
        seam <= inside * 1.1 + 0.5 for seam, inside in (seam_and_inside(image, axis) for axis in (0, 1))
    )


@pytest.mark.parametrize(
    ("prompt", "digest"),
    [
        ("blue herons on cream", "ff33c36fb1a0bfce"),
        ("tossed lemons on navy", "4af4249570bf135d"),
        ("watercolour peonies", "6a8a252c96678eaf"),
        ("black and white houndstooth", "85ae5a0eeea9c12d"),
        ("tiny daisies on sage linen", "9d5a9e3a83c3ff63"),
        ("midnight moon and stars", "1897b520fac4e78c"),
        ("art deco fans in gold", "e0013b2900bae67a"),
        ("leopard print", "26c100ddbe9a4714"),
        ("mirrored paisley in burgundy", "7da202e426aeffd6"),
        ("linocut foxes in the woodland", "66272ec70865902b"),
    ],
)
def test_drawing_of_a_prompt_is_pinned(prompt: str, digest: str) -> None:
    """What was sold under a prompt is what the same prompt draws ever after."""
    assert hashlib.sha256(to_svg(sheet_of(design(prompt))).encode()).hexdigest()[:16] == digest


@pytest.mark.parametrize("model", MANNERS)
def test_same_design_has_the_same_bytes(model: str) -> None:
    one = Design(prompt="large red hearts", model=model, seed=7)

    assert tile_image(one, side=96).tobytes() == tile_image(one, side=96).tobytes()


def test_seed_makes_another_drawing_of_the_same_prompt() -> None:
    """In the colours and with the motifs that the prompt names."""
    recipes = [recipe_for("red tulips on cream", seed) for seed in (None, 1, 2)]

    assert len({recipe.seed for recipe in recipes}) == 3
    assert {recipe.palette.ground for recipe in recipes} == {"#f5ecd7"}
    assert all(recipe.subjects[0].name == "tulip" for recipe in recipes)


@pytest.mark.parametrize("model", MANNERS)
@pytest.mark.parametrize("prompt", PROMPTS[:2])
def test_every_model_is_seamless(model: str, prompt: str) -> None:
    assert seams_are_hidden(drawn(design(prompt, model=model)))


def test_models_draw_differently() -> None:
    """Each pair of models differs visibly, not in grain alone."""
    pictures = [drawn(design("red tulips on cream", model=model)) for model in MANNERS]

    for one, other in itertools.combinations(pictures, 2):
        assert (np.abs(one - other).max(axis=2) > 40).mean() > 0.03


def test_linocut_is_printed_in_two_inks() -> None:
    sheet = sheet_of(design("tropical parrots and monstera", model="linocut"))
    svg = MANNERS["linocut"].draw(to_svg(sheet), sheet)

    assert len(set(re.findall(r"#[0-9a-f]{6}", svg)) - {sheet.recipe.palette.ground}) == 2


@pytest.mark.parametrize("prompt", PROMPTS)
@pytest.mark.parametrize("changes", [(CROP,), (EXTEND,), (CROP, EXTEND), (EXTEND, CROP)])
def test_cut_tiles_are_seamless(prompt: str, changes: tuple[Change, ...]) -> None:
    assert seams_are_hidden(drawn(design(prompt, *changes)))


@pytest.mark.parametrize(
    "order", list(itertools.permutations((CROP, EXTEND, RECOLOR, Edit(prompt="add butterflies"))))
)
def test_changes_go_in_any_order(order: tuple[Change, ...]) -> None:
    """Each finds something to work on, whatever came before."""
    sheet = sheet_of(design("lemons and bees on navy", *order))

    assert {sheet.recipe.palette.ground} == {"#1d2c4d"}
    assert "butterfly" in [subject.name for subject in sheet.recipe.subjects]
    assert sheet.width == pytest.approx(1000)
    assert {one.role for one in sheet.placements if one.role != FILLER} <= set(
        range(len(sheet.recipe.subjects))
    )


@pytest.mark.parametrize("prompt", [*PROMPTS, "ink swallows and ferns", "plaid in red and green"])
def test_recolor_keeps_the_drawing(prompt: str) -> None:
    """Without its colours the drawing is the same to the letter."""
    before, after = (
        re.sub(r"#[0-9a-f]{6}", "#", to_svg(sheet_of(one)))
        for one in (design(prompt), design(prompt, RECOLOR))
    )

    assert before == after


def test_recolor_uses_the_palette() -> None:
    """The leading drawing is in the first ink, on the ground."""
    recipe = sheet_of(design("blue herons on cream", RECOLOR)).recipe

    assert recipe.palette.ground == "#1d2c4d"
    assert recipe.subjects[0].inks.main == "#f3cd45"


def test_palette_of_a_design_is_what_it_is_drawn_in() -> None:
    palette = ("#ffffff", "#c8362f", "#1d2c4d")
    recipe = sheet_of(Design(prompt="green herons", palette=palette)).recipe

    assert (recipe.palette.ground, *recipe.palette.inks[:2]) == palette


def test_ground_alone_keeps_the_inks_in_sight() -> None:
    recipe = sheet_of(design("navy stars on white", Recolor(palette=("#1d2c4d",)))).recipe

    assert all(distance(ink, "#1d2c4d") > 0.1 for ink in recipe.palette.inks)


@pytest.mark.parametrize("prompt", ["tossed lemons and bees on navy", "terrazzo in blush", "bees on gingham"])
def test_crop_shows_the_area(prompt: str) -> None:
    """Most of the area's inner part is what it was; what met the new edges was changed."""
    whole, part = sheet_of(design(prompt)), sheet_of(design(prompt, CROP))
    tile, cut = plain(whole, 400), plain(part, round(400 * part.width / 1000))
    left, top = round(0.2 * 400), round(0.3 * 400)
    inner = slice(30, cut.shape[0] - 30), slice(30, cut.shape[1] - 30)
    area = np.roll(tile, (-top, -left), axis=(0, 1))[: cut.shape[0], : cut.shape[1]]

    assert (np.abs(area[inner] - cut[inner]).max(axis=2) < 40).mean() > 0.75


def test_crop_of_a_regular_ground_is_cut_at_its_repeat() -> None:
    """A check of eight repeats over the tile has four or five in half of it."""
    across, down = field_repeat("gingham", 1.0)
    sheet = sheet_of(design("blue gingham", CROP))

    assert (across, down) == (8, 8)
    assert sheet.width % (1000 / across) == pytest.approx(0)
    assert sheet.height % (1000 / down) == pytest.approx(0)


def test_crop_of_a_ground_without_a_repeat_is_mirrored() -> None:
    image = plain(sheet_of(design("geometric in navy and coral", CROP)), 200)

    assert np.abs(image - image[:, ::-1]).mean() < 3


def test_drawings_fit_into_a_small_crop() -> None:
    """One that is larger than the area is made smaller, so that it does not meet itself."""
    tiny = Crop(x=0.0, y=0.0, width=0.3, height=0.3)
    sheet = sheet_of(design("huge peonies", tiny))

    assert all(one.radius <= 0.5 * min(sheet.width, sheet.height) for one in sheet.placements)


@pytest.mark.parametrize("prompt", PROMPTS[:4])
def test_extended_tile_shows_the_old_one(prompt: str) -> None:
    """In its upper left part, pixel by pixel; and beyond it the drawing goes on, but not the same."""
    old, new = plain(sheet_of(design(prompt)), 300), plain(sheet_of(design(prompt, EXTEND)), 600)

    assert (np.abs(new[:300, :300] - old).max(axis=2) < 40).mean() > 0.985
    if prompt != "bees on gingham":
        assert (np.abs(new[300:, 300:] - old).max(axis=2) > 40).mean() > 0.005


def test_repeat_has_a_largest_size() -> None:
    """However often it is extended, or mirrored by a crop; and it has no seam then."""
    more = (Extend(columns=3, rows=3), Crop(x=0.1, y=0.1, width=0.99, height=0.98))
    sheet = sheet_of(design("geometric in navy", *more, *more, *more))

    assert max(sheet.width, sheet.height) <= LARGEST
    assert len(sheet.patches) <= MOST_PATCHES
    assert seams_are_hidden(np.asarray(render(sheet, side=SMALL), dtype=np.float64))


@pytest.mark.parametrize(
    ("words", "names"),
    [
        ("add butterflies", ["heron", "sprig", "butterfly"]),
        ("replace the herons with flamingos", ["flamingo", "sprig"]),
        ("flamingos instead of herons", ["flamingo", "sprig"]),
        ("without sprigs", ["heron"]),
        ("on navy", ["heron", "sprig"]),
        ("mit Schmetterlingen", ["heron", "sprig", "butterfly"]),
    ],
)
def test_edit_adds_replaces_and_removes(words: str, names: list[str]) -> None:
    recipe = sheet_of(design("blue herons and sprigs on cream", Edit(prompt=words))).recipe

    assert [subject.name for subject in recipe.subjects] == names


def test_edit_keeps_what_it_does_not_name() -> None:
    """A new ground: places, drawings and their colours stay; a new drawing: everything else stays in its place."""
    before, navy, added = (
        sheet_of(design("blue herons on cream", *changes))
        for changes in ((), (Edit(prompt="on navy"),), (Edit(prompt="add butterflies"),))
    )

    assert navy.placements == before.placements
    assert navy.recipe.palette.ground == "#1d2c4d"
    assert [one.motion[4:] for one in added.placements] == [one.motion[4:] for one in before.placements]
    assert added.recipe.palette == before.recipe.palette
    assert (
        0
        < sum(a.role != b.role for a, b in zip(before.placements, added.placements, strict=True))
        < len(before.placements)
    )


@pytest.mark.parametrize(
    "words",
    ["change the background to navy", "make the background navy", "navy background", "auf Marineblau"],
)
def test_edit_of_the_ground(words: str) -> None:
    assert sheet_of(design("blue herons on cream", Edit(prompt=words))).recipe.palette.ground == "#1d2c4d"


def test_edit_recolours_what_it_names() -> None:
    before, after = (
        sheet_of(design("blue herons and green ferns on cream", *changes)).recipe
        for changes in ((), (Edit(prompt="red herons"),))
    )

    assert distance(after.subjects[0].inks.main, "#c8362f") < 0.03
    assert after.subjects[1] == before.subjects[1]


def test_edit_of_size_arranges_anew_and_is_cut_as_before() -> None:
    sheet = sheet_of(design("tossed lemons", CROP, Edit(prompt="smaller")))

    assert (sheet.width, sheet.height) == (500, 400)
    assert sheet.recipe.scale == 0.7
