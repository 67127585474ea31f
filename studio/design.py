"""Designs: the prompt, model, seed, colours and references of a pattern, and each change made to it since."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field


def _whole(number: object) -> object:
    """Return whole floats as integers: JSON has one kind of number, so that 2.0 is 2."""
    return int(number) if isinstance(number, float) and number.is_integer() else number


WHOLE = BeforeValidator(_whole)
#: A colour as `#rrggbb`.
HexColour = Annotated[str, Field(pattern=r"^#[0-9a-fA-F]{6}$")]
#: A position on the tile, or the side of a part of it, as a share of the tile's side.
Share = Annotated[float, Field(ge=0.0, le=1.0)]
PartSide = Annotated[float, Field(ge=0.1, le=1.0)]
Repeats = Annotated[int, Field(ge=1, le=3), WHOLE]
#: The side of a pattern's picture in pixels.
Size = Literal[256, 512, 1024, 2048]
DEFAULT_SIZE: Size = 512
DEFAULT_MODEL = "atelier"


class NotUsable(Exception):
    """A file is no picture that can be used; the message says why."""


class Value(BaseModel):
    """A model that is compared by its fields, and takes no others."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Edit(Value):
    """More words: what they name is added or changed, everything else stays as it was."""

    operation: Literal["edit"] = "edit"
    prompt: str


class Recolor(Value):
    """Other colours: the ground first, then the inks, strongest first. The drawing stays as it is."""

    operation: Literal["recolor"] = "recolor"
    palette: tuple[HexColour, ...]


class Crop(Value):
    """A part of the tile becomes the tile: left, top, width and height as shares of it. It is seamless again."""

    operation: Literal["crop"] = "crop"
    x: Share
    y: Share
    width: PartSide
    height: PartSide


class Extend(Value):
    """A larger repeat: the tile goes on, in the same manner, over so many columns and rows of its size."""

    operation: Literal["extend"] = "extend"
    columns: Repeats
    rows: Repeats


Change = Annotated[Edit | Recolor | Crop | Extend, Field(discriminator="operation")]


class Design(Value):
    """One pattern, whole: equal designs are drawn with equal bytes."""

    prompt: str
    model: str = DEFAULT_MODEL
    #: None: the seed that follows from the prompt.
    seed: int | None = None
    #: The ground and the inks; empty: taken from the prompt and the references.
    palette: tuple[HexColour, ...] = ()
    #: The colours of each uploaded picture, which count where the prompt names none.
    references: tuple[tuple[HexColour, ...], ...] = ()
    changes: tuple[Change, ...] = ()
