"""The models that generate patterns, as callers choose among them."""

from __future__ import annotations

from dataclasses import dataclass

from studio.design import DEFAULT_MODEL


@dataclass(frozen=True)
class Model:
    """A manner of drawing."""

    model_id: str
    name: str
    description: str


MODELS = (
    Model(
        DEFAULT_MODEL,
        "Atelier",
        "Clean shapes in flat colours, print, ink or watercolour manner as the prompt says.",
    ),
    Model(
        "linocut",
        "Linocut",
        "Two inks from two carved blocks, with gouged lines of light.",
    ),
    Model(
        "watercolour",
        "Watercolour",
        "Translucent shapes with darker edges, on washed paper.",
    ),
    Model(
        "embroidery",
        "Embroidery",
        "Every shape stitched around and filled with threads, on linen.",
    ),
)


def find_model(model_id: str) -> Model | None:
    return next((model for model in MODELS if model.model_id == model_id), None)
