"""Offers and small catalogs for the tests of sheets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from patternmill.planning.extras import Extras
from patternmill.planning.offer import Category, Offer, Option
from patternmill.reading import Reading
from patternmill.tables.catalog import Catalog, read_catalog
from patternmill.tables.checks import Checked, check_catalog
from patternmill.tables.mapping import ReadingChoices, SheetMapping

CUSHION = Category(
    "cat_1",
    "Cushion",
    (Option("size", ("S", "M"), False), Option("fabric", ("cotton", "linen", "velvet"), True)),
)
MUG = Category("cat_2", "Mug", (Option("size", ("11oz", "15oz"), required=False),))
TOTE = Category("tote-bag", "Tote bag", None)
OFFER = Offer((CUSHION, MUG, TOTE), note=None)
HEADER = "sku,prompt,category,option:size,option:fabric,note"

#: An offer with required options, one of which has a second name, and a value that two options share.
SHOP = Offer(
    (
        Category(
            "c-1",
            "Cushion",
            (
                Option("size", ("40x40", "50x50"), True),
                Option("fabric", ("linen", "velvet"), True),
                Option("trim", ("none",)),
            ),
        ),
        Category(
            "c-2",
            "Mug",
            (
                Option("size", ("11oz", "15oz"), True),
                Option("finish", ("glossy", "matte"), False),
                Option("colour", ("white", "navy", "matte"), False, ("hue",)),
            ),
        ),
        Category("c-3", "Tote bag", (Option("handles", ("natural", "black"), False),)),
    ),
    None,
)


def read(
    raw: str | bytes,
    columns: Mapping[str, str] | None = None,
    words: Mapping[str, str] | None = None,
    limits: Reading | None = None,
    name: str = "spring.csv",
    **reading: Any,
) -> Catalog:
    """Return the catalog in a file, read as a mapping says."""
    mapping = SheetMapping(
        columns=dict(columns or {}), values=dict(words or {}), reading=ReadingChoices(**reading)
    )
    content = raw if isinstance(raw, bytes) else raw.encode()
    return read_catalog(content, name, mapping, limits or Reading(name))


def checked(
    catalog: str | bytes | Catalog, offer: Offer | None = OFFER, extras: Extras | None = None
) -> Checked:
    if not isinstance(catalog, Catalog):
        catalog = read(catalog)
    return check_catalog(catalog, offer, extras)


def checked_row(row: str, offer: Offer | None = OFFER, *, header: str = HEADER) -> Checked:
    return checked(f"{header}\n{row}\n", offer)


def problems(found: Checked) -> list[Any]:
    """Return the problems, each with the columns of the frame as its fields."""
    return list(found.problems.itertuples(index=False))


def codes(found: Checked) -> dict[int, list[str]]:
    """Return the codes of problems by row number."""
    by_row: dict[int, list[str]] = {}
    for problem in problems(found):
        by_row.setdefault(problem.row, []).append(problem.code)
    return by_row


def rows(catalog: Catalog) -> list[tuple[int, tuple[str, ...]]]:
    """Return each row's number and its cells, including those beyond the header."""
    return list(catalog.sheet.records())


def cells(catalog: Catalog) -> list[tuple[str, ...]]:
    return [texts for _, texts in rows(catalog)]
