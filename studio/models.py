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
        "Clean shapes in flat colours, or in the manner of ink, watercolour or cut paper as the prompt says.",
    ),
    Model("linocut", "Linocut", "Flat shapes with gouged lines of light along their edges."),
    Model("watercolour", "Watercolour", "Translucent shapes in which the pigment gathers on one side."),
    Model("embroidery", "Embroidery", "Every shape stitched around with a lighter thread."),
)


def find_model(model_id: str) -> Model | None:
    return next((model for model in MODELS if model.model_id == model_id), None)
