"""The offer as data: the models that draw, and the categories with their options and prices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from studio.answers import ModelAnswer, Money
from studio.design import DEFAULT_MODEL
from studio.wire import FieldFault, unknown

#: How environments are named in category IDs, which differ between them; others appear under their own name.
ID_PARTS = {"staging": "stg", "production": "live"}
#: The currency of all prices, which are whole numbers of its minor unit.
CURRENCY, CURRENCY_SIGN = "EUR", "€"


MODELS: tuple[ModelAnswer, ...] = (
    {"modelId": DEFAULT_MODEL, "name": "Atelier",
     "description": "Clean shapes in flat colours, or in the manner of ink, watercolour or cut paper as the"
     " prompt says."},
    {"modelId": "linocut", "name": "Linocut",
     "description": "Flat shapes with gouged lines of light along their edges."},
    {"modelId": "watercolour", "name": "Watercolour",
     "description": "Translucent shapes in which the pigment gathers on one side."},
    {"modelId": "embroidery", "name": "Embroidery",
     "description": "Every shape stitched around with a lighter thread."},
)  # fmt: skip


@dataclass(frozen=True)
class Option:
    """One choice of a category: its values, each with its surcharge. Without a `default` it has to be selected."""

    name: str
    label: str
    surcharges: Mapping[str, int]
    default: str | None = None


@dataclass(frozen=True)
class Category:
    """One product type. Its `key` is the same in every environment; its ID is not. Prices are without surcharges."""

    key: str
    name: str
    description: str
    price_from: int
    options: tuple[Option, ...]

    def category_id(self, environment: str) -> str:
        return f"cat_{ID_PARTS.get(environment, environment)}_{self.key}"

    def complete(self, selections: dict[str, str]) -> dict[str, str]:
        """Return the selections with the defaults of what was left out, in the order of the options."""
        chosen = {option.name: selections.get(option.name, option.default) for option in self.options}
        return {name: value for name, value in chosen.items() if value is not None}

    def price(self, selections: Mapping[str, str]) -> int:
        """Return what a product with these complete selections costs, in minor units."""
        return self.price_from + sum(option.surcharges[selections[option.name]] for option in self.options)


CATEGORIES = (
    Category("cushion", "Cushion", "Square or long cushion with a hidden zip, printed on both sides.", 2490, (
        Option("size", "Size (cm)", {"40x40": 0, "50x50": 500, "60x40": 500}),
        Option("fabric", "Fabric", {"cotton": 0, "linen": 400, "velvet": 800}),
        Option("filling", "Filling", {"none": 0, "fibre": 400, "feather": 900}, "fibre"),
    )),
    Category("mug", "Mug", "Ceramic mug, printed all around and safe in the dishwasher.", 1290, (
        Option("size", "Size", {"11oz": 0, "15oz": 200}),
        Option("finish", "Finish", {"glossy": 0, "matte": 150}),
        Option("colour", "Handle and inside", {"white": 0, "black": 0, "navy": 0, "red": 0, "sage": 0}, "white"),
    )),
    Category("tote_bag", "Tote bag", "Shopping bag with long handles, printed on both sides.", 1690, (
        Option("size", "Size", {"small": 0, "large": 400}),
        Option("fabric", "Fabric", {"canvas": 0, "organic cotton": 300}),
        Option("handles", "Handles", {"natural": 0, "black": 0, "navy": 0, "tan": 0}, "natural"),
    )),
    Category("wallpaper", "Wallpaper", "Rolls that are hung edge to edge; the pattern runs on across them.", 5900, (
        Option("width", "Width of the roll (cm)", {"52": 0, "68": 1400}),
        Option("finish", "Finish", {"matte": 0, "vinyl": 900, "grasscloth": 2900}),
        Option("scale", "Scale of the pattern", {"small": 0, "regular": 0, "large": 0}, "regular"),
    )),
    Category("scarf", "Scarf", "Square scarf with a coloured hem.", 3900, (
        Option("size", "Size (cm)", {"70x70": 0, "90x90": 1500}),
        Option("fabric", "Fabric", {"silk": 2000, "modal": 0, "wool": 1200}),
        Option("hem", "Hem", {"rolled": 300, "plain": 0}, "rolled"),
    )),
    Category("poster", "Poster", "Fine art print, with or without a frame.", 1490, (
        Option("size", "Size", {"A3": 0, "A2": 800, "50x70": 1200}),
        Option("paper", "Paper", {"matte": 0, "satin": 200}),
        Option("frame", "Frame", {"none": 0, "oak": 3500, "black": 2900, "white": 2900}, "none"),
    )),
)  # fmt: skip


def find_model(model_id: str) -> ModelAnswer:
    """Return a model. Raises Refusal (404)."""
    for model in MODELS:
        if model["modelId"] == model_id:
            return model
    raise unknown("model", model_id)


def find_category(environment: str, category_id: str) -> Category:
    """Return the category that has this ID in this environment. Raises Refusal (404)."""
    for category in CATEGORIES:
        if category.category_id(environment) == category_id:
            return category
    raise unknown("category", category_id)


def selection_faults(category: Category, selections: Mapping[str, str]) -> tuple[FieldFault, ...]:
    """Return every reason why these selections cannot be made; empty when they can."""
    options = {option.name: option for option in category.options}
    messages = {}
    for name, value in selections.items():
        if name not in options:
            messages[name] = f"{category.name} has no option {name!r}; {_offered(options)}"
        elif value not in options[name].surcharges:
            messages[name] = f"option {name!r} has no value {value!r}; {_offered(options[name].surcharges)}"
    for name, option in options.items():
        if option.default is None and name not in selections:
            messages[name] = f"option {name!r} has to be selected; {_offered(option.surcharges)}"
    return tuple(FieldFault(f"selections.{name}", message) for name, message in messages.items())


def money(amount: int) -> Money:
    """Return an amount of minor units as answers show it."""
    return {"amount": amount, "currency": CURRENCY}


def _offered(names: Iterable[str]) -> str:
    return "offered: " + ", ".join(names)
