"""What the studio sells: its categories, options and prices as data, and the answers about them.

Light on purpose: a caller may import this module alone to learn the range without starting the service.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

#: Category IDs differ between environments; one that is not listed here stands in them by its own name.
ID_PARTS = MappingProxyType({"staging": "stg", "production": "live"})


#: Of all prices, which are whole numbers of its minor unit.
CURRENCY = "EUR"


@dataclass(frozen=True)
class Option:
    """One choice of a category. Without a `default` it has to be selected."""

    name: str
    label: str
    values: tuple[str, ...]
    default: str | None = None
    #: What a value adds to the category's price; one that is not listed adds nothing.
    surcharges: Mapping[str, int] = field(default_factory=dict)

    def body(self) -> dict[str, object]:
        return {
            "name": self.name,
            "label": self.label,
            "required": self.default is None,
            "values": list(self.values),
            **({} if self.default is None else {"default": self.default}),
            "surcharges": {value: self.surcharges.get(value, 0) for value in self.values},
        }


@dataclass(frozen=True)
class Category:
    """One product type. Its `key` is the same in every environment; its ID is not."""

    key: str
    name: str
    description: str
    #: Without surcharges.
    price_from: int
    options: tuple[Option, ...]

    def category_id(self, environment: str) -> str:
        return f"cat_{ID_PARTS.get(environment, environment)}_{self.key}"

    def complete(self, selections: dict[str, str]) -> dict[str, str]:
        """The selections with the defaults of what was left out, in the order of the options."""
        defaults = {option.name: option.default for option in self.options if option.default is not None}
        chosen = {**defaults, **selections}
        return {option.name: chosen[option.name] for option in self.options if option.name in chosen}

    def price(self, selections: Mapping[str, str]) -> int:
        """What a product with these complete selections costs."""
        chosen = ((option, selections[option.name]) for option in self.options)
        return self.price_from + sum(option.surcharges.get(value, 0) for option, value in chosen)


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
        2490,
        (
            Option(
                "size",
                "Size (cm)",
                ("40x40", "50x50", "60x40"),
                surcharges={"50x50": 500, "60x40": 500},
            ),
            Option(
                "fabric",
                "Fabric",
                ("cotton", "linen", "velvet"),
                surcharges={"linen": 400, "velvet": 800},
            ),
            Option(
                "filling",
                "Filling",
                ("none", "fibre", "feather"),
                "fibre",
                surcharges={"fibre": 400, "feather": 900},
            ),
        ),
    ),
    Category(
        "mug",
        "Mug",
        "Ceramic mug, printed all around and safe in the dishwasher.",
        1290,
        (
            Option(
                "size",
                "Size",
                ("11oz", "15oz"),
                surcharges={"15oz": 200},
            ),
            Option("finish", "Finish", ("glossy", "matte"), surcharges={"matte": 150}),
            Option("colour", "Handle and inside", ("white", "black", "navy", "red", "sage"), "white"),
        ),
    ),
    Category(
        "tote_bag",
        "Tote bag",
        "Shopping bag with long handles, printed on both sides.",
        1690,
        (
            Option(
                "size",
                "Size",
                ("small", "large"),
                surcharges={"large": 400},
            ),
            Option("fabric", "Fabric", ("canvas", "organic cotton"), surcharges={"organic cotton": 300}),
            Option("handles", "Handles", ("natural", "black", "navy", "tan"), "natural"),
        ),
    ),
    Category(
        "wallpaper",
        "Wallpaper",
        "Rolls that are hung edge to edge; the pattern runs on across them.",
        5900,
        (
            Option(
                "width",
                "Width of the roll (cm)",
                ("52", "68"),
                surcharges={"68": 1400},
            ),
            Option(
                "finish",
                "Finish",
                ("matte", "vinyl", "grasscloth"),
                surcharges={"vinyl": 900, "grasscloth": 2900},
            ),
            Option("scale", "Scale of the pattern", ("small", "regular", "large"), "regular"),
        ),
    ),
    Category(
        "scarf",
        "Scarf",
        "Square scarf with a coloured hem.",
        3900,
        (
            Option(
                "size",
                "Size (cm)",
                ("70x70", "90x90"),
                surcharges={"90x90": 1500},
            ),
            Option("fabric", "Fabric", ("silk", "modal", "wool"), surcharges={"silk": 2000, "wool": 1200}),
            Option("hem", "Hem", ("rolled", "plain"), "rolled", surcharges={"rolled": 300}),
        ),
    ),
    Category(
        "poster",
        "Poster",
        "Fine art print, with or without a frame.",
        1490,
        (
            Option(
                "size",
                "Size",
                ("A3", "A2", "50x70"),
                surcharges={"A2": 800, "50x70": 1200},
            ),
            Option("paper", "Paper", ("matte", "satin"), surcharges={"satin": 200}),
            Option(
                "frame",
                "Frame",
                ("none", "oak", "black", "white"),
                "none",
                surcharges={"oak": 3500, "black": 2900, "white": 2900},
            ),
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
        "priceFrom": money(category.price_from),
    }


def money(amount: int) -> dict[str, object]:
    """An amount of minor units as answers show it."""
    return {"amount": amount, "currency": CURRENCY}


def _offered(names: tuple[str, ...]) -> str:
    return "offered: " + ", ".join(names)
