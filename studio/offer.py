"""What the studio sells: its categories and options as data, and the answers about them as plain functions.

Light on purpose: a caller may import this module alone to learn the range without starting the service.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType

#: Category IDs differ between environments; one that is not listed here stands in them by its own name.
ID_PARTS = MappingProxyType({"staging": "stg", "production": "live"})


@dataclass(frozen=True)
class Option:
    """One choice of a category. Without a `default` it has to be selected."""

    name: str
    label: str
    values: tuple[str, ...]
    default: str | None = None

    def body(self) -> dict[str, object]:
        return {
            "name": self.name,
            "label": self.label,
            "required": self.default is None,
            "values": list(self.values),
            **({} if self.default is None else {"default": self.default}),
        }


@dataclass(frozen=True)
class Category:
    """One product type. Its `key` is the same in every environment; its ID is not."""

    key: str
    name: str
    description: str
    options: tuple[Option, ...]

    def category_id(self, environment: str) -> str:
        return f"cat_{ID_PARTS.get(environment, environment)}_{self.key}"

    def complete(self, selections: dict[str, str]) -> dict[str, str]:
        """The selections with the defaults of what was left out, in the order of the options."""
        defaults = {option.name: option.default for option in self.options if option.default is not None}
        chosen = {**defaults, **selections}
        return {option.name: chosen[option.name] for option in self.options if option.name in chosen}


@dataclass(frozen=True)
class SelectionFault:
    """Why one selection cannot be made."""

    option: str
    message: str


CATEGORIES: tuple[Category, ...] = (
    Category(
        "cushion",
        "Cushion",
        "Square or long cushion with a hidden zip, printed on both sides.",
        (
            Option("size", "Size (cm)", ("40x40", "50x50", "60x40")),
            Option("fabric", "Fabric", ("cotton", "linen", "velvet")),
            Option("filling", "Filling", ("none", "fibre", "feather"), "fibre"),
        ),
    ),
    Category(
        "mug",
        "Mug",
        "Ceramic mug, printed all around and safe in the dishwasher.",
        (
            Option("size", "Size", ("11oz", "15oz")),
            Option("finish", "Finish", ("glossy", "matte")),
            Option("colour", "Handle and inside", ("white", "black", "navy", "red", "sage"), "white"),
        ),
    ),
    Category(
        "tote_bag",
        "Tote bag",
        "Shopping bag with long handles, printed on both sides.",
        (
            Option("size", "Size", ("small", "large")),
            Option("fabric", "Fabric", ("canvas", "organic cotton")),
            Option("handles", "Handles", ("natural", "black", "navy", "tan"), "natural"),
        ),
    ),
    Category(
        "wallpaper",
        "Wallpaper",
        "Rolls that are hung edge to edge; the pattern runs on across them.",
        (
            Option("width", "Width of the roll (cm)", ("52", "68")),
            Option("finish", "Finish", ("matte", "vinyl", "grasscloth")),
            Option("scale", "Scale of the pattern", ("small", "regular", "large"), "regular"),
        ),
    ),
    Category(
        "scarf",
        "Scarf",
        "Square scarf with a coloured hem.",
        (
            Option("size", "Size (cm)", ("70x70", "90x90")),
            Option("fabric", "Fabric", ("silk", "modal", "wool")),
            Option("hem", "Hem", ("rolled", "plain"), "rolled"),
        ),
    ),
    Category(
        "poster",
        "Poster",
        "Fine art print, with or without a frame.",
        (
            Option("size", "Size", ("A3", "A2", "50x70")),
            Option("paper", "Paper", ("matte", "satin")),
            Option("frame", "Frame", ("none", "oak", "black", "white"), "none"),
        ),
    ),
)


def find_category(environment: str, category_id: str) -> Category | None:
    """The category that has this ID in this environment."""
    return next((one for one in CATEGORIES if one.category_id(environment) == category_id), None)


def categories_list(environment: str) -> dict[str, object]:
    """The whole answer body of `categories/list`."""
    return {"categories": [_summary(one, environment) for one in CATEGORIES]}


def categories_get(environment: str, category_id: str) -> dict[str, object] | None:
    """The whole answer body of `categories/get`, or None when no category here has this ID."""
    category = find_category(environment, category_id)
    if category is None:
        return None
    return {
        **_summary(category, environment),
        "options": [option.body() for option in category.options],
    }


def selection_faults(category: Category, selections: dict[str, str]) -> list[SelectionFault]:
    """Every reason why these selections cannot be made; empty when they can."""
    options = {option.name: option for option in category.options}
    faults = [_fault(category, options.get(name), name, value) for name, value in selections.items()]
    missing = [
        SelectionFault(option.name, f"option {option.name!r} has to be selected; {_offered(option.values)}")
        for option in category.options
        if option.default is None and option.name not in selections
    ]
    return [fault for fault in faults if fault is not None] + missing


def _fault(category: Category, option: Option | None, name: str, value: str) -> SelectionFault | None:
    if option is None:
        names = tuple(one.name for one in category.options)
        return SelectionFault(name, f"{category.name} has no option {name!r}; {_offered(names)}")
    if value not in option.values:
        return SelectionFault(name, f"option {name!r} has no value {value!r}; {_offered(option.values)}")
    return None


def _summary(category: Category, environment: str) -> dict[str, object]:
    return {
        "categoryId": category.category_id(environment),
        "name": category.name,
        "description": category.description,
    }


def _offered(names: tuple[str, ...]) -> str:
    return "offered: " + ", ".join(names)
