"""What a pattern is drawn from: prompt, model, seed, colours and references, and each change made to it since."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

#: A colour as `#rrggbb`.
HexColour = Annotated[str, Field(pattern=r"^#[0-9a-fA-F]{6}$")]
#: A share of the tile's side.
Share = Annotated[float, Field(ge=0.0, le=1.0)]
DEFAULT_MODEL = "atelier"


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Edit(_Value):
    """More words: what they name is added or changed, everything else stays as it was."""

    operation: Literal["edit"] = "edit"
    prompt: str


class Recolor(_Value):
    """Other colours: the ground first, then the inks, strongest first. The drawing stays as it is."""

    operation: Literal["recolor"] = "recolor"
    palette: tuple[HexColour, ...] = Field(min_length=1, max_length=12)


class Crop(_Value):
    """A part of the tile becomes the tile: left, top, width and height as shares of it. It is seamless again."""

    operation: Literal["crop"] = "crop"
    x: Share
    y: Share
    width: Annotated[float, Field(ge=0.1, le=1.0)]
    height: Annotated[float, Field(ge=0.1, le=1.0)]


class Extend(_Value):
    """A larger repeat: the tile goes on, in the same manner, over so many columns and rows of its size."""

    operation: Literal["extend"] = "extend"
    columns: Annotated[int, Field(ge=1, le=3)]
    rows: Annotated[int, Field(ge=1, le=3)]


Change = Annotated[Edit | Recolor | Crop | Extend, Field(discriminator="operation")]


class Design(_Value):
    """One pattern, whole: equal designs are drawn with equal bytes."""

    prompt: str
    model: str = DEFAULT_MODEL
    #: None: the prompt's own.
    seed: int | None = None
    #: The ground and the inks; empty: what the prompt and the references say.
    palette: tuple[HexColour, ...] = ()
    #: SHA-256 digests of uploaded pictures, which guide colours and motifs.
    references: tuple[str, ...] = ()
    changes: tuple[Change, ...] = ()
