"""Reference pictures: what is measured in them, and what it does to a pattern."""

from __future__ import annotations

from PIL import Image

from studio.art import words
from studio.art.changes import recipe_of
from studio.art.colour import distance
from studio.art.references import measure
from studio.design import Design

RED, NAVY, CREAM = (200, 54, 47), (29, 44, 77), (245, 236, 215)


def striped(*, upright: bool, step: int = 12) -> Image.Image:
    """Red and navy stripes on cream."""
    image = Image.new("RGB", (192, 192), CREAM)
    for place in range(0, 192, step * 3):
        for band, colour in ((0, RED), (step, NAVY)):
            box = (place + band, 0, place + band + step // 2, 192)
            image.paste(colour, box if upright else (box[1], box[0], box[3], box[2]))
    return image


def test_dominant_colours_are_found() -> None:
    traits = measure(striped(upright=True))

    assert distance(traits.colours[0], "#f5ecd7") < 0.03
    assert all(
        min(distance(one, wanted) for one in traits.colours) < 0.05 for wanted in ("#c8362f", "#1d2c4d")
    )


def test_reference_guides_what_the_prompt_leaves_open() -> None:
    """Its commonest colour is the ground; what the prompt names stays."""
    traits = (measure(striped(upright=True)),)
    open_, named = (
        recipe_of(Design(prompt=prompt), traits) for prompt in ("swallows", "green swallows on white, tossed")
    )

    assert distance(open_.palette.ground, "#f5ecd7") < 0.03
    assert open_.layout == "pg"
    assert (named.palette.ground, named.layout) == (words.COLOURS["white"], "toss")
