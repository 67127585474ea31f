"""The models that generate patterns, as callers choose among them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Model:
    """A manner of drawing."""

    model_id: str
    name: str
    description: str


MODELS = (
    Model("atelier", "Atelier", "Clear shapes in flat inks with a fine texture: drawn for screen printing."),
    Model("linocut", "Linocut", "One or two inks with carved edges, a little out of register."),
    Model("watercolour", "Watercolour", "Soft washes that bleed at their edges, on paper."),
)


def find_model(model_id: str) -> Model | None:
    return next((model for model in MODELS if model.model_id == model_id), None)
