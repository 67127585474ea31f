"""An offer and small catalogs for the tests of the input."""

from __future__ import annotations

from patternmill.catalog.catalog_file import CatalogFile
from patternmill.catalog.offer import Category, Offer, Option
from patternmill.catalog.row_checks import CheckedCatalog, check_rows
from patternmill.sheets.csv_reader import parse_catalog

CUSHION = Category(
    "cat_1",
    "Cushion",
    (Option("size", ("S", "M"), False), Option("fabric", ("cotton", "linen", "velvet"), True)),
)
MUG = Category("cat_2", "Mug", (Option("size", ("11oz", "15oz"), required=False),))
TOTE = Category("tote-bag", "Tote bag", None)
OFFER = Offer((CUSHION, MUG, TOTE), note=None)
HEADER = "sku,prompt,category,option:size,option:fabric,note"


def catalog(text: str | bytes, encoding: str | None = None) -> CatalogFile:
    raw = text if isinstance(text, bytes) else text.encode()
    return parse_catalog(raw, name="spring.csv", encoding=encoding)


def checked(text: str | bytes, offer: Offer | None = OFFER, *, prompt_limit: int = 100) -> CheckedCatalog:
    return check_rows(catalog(text), offer, prompt_limit=prompt_limit)


def checked_row(row: str, offer: Offer | None = OFFER, *, header: str = HEADER) -> CheckedCatalog:
    return checked(f"{header}\n{row}\n", offer)


def codes(found: CheckedCatalog) -> dict[int, list[str]]:
    """The codes by row number, of rows that have any."""
    return {
        entry.record.line: [str(problem.code) for problem in entry.problems]
        for entry in found.entries
        if entry.problems
    }
