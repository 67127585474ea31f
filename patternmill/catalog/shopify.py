"""Shopify product exports: a product's variants and pictures are rows that leave out what its first row says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from patternmill.catalog.csv_reader import NumberedRow
from patternmill.catalog.rows import header_key
from patternmill.catalog.tables import Table
from patternmill.text import plural

_OPTIONS = tuple((f"option{number} name", f"option{number} value") for number in (1, 2, 3))
#: What belongs to a product, and is written in its first row alone.
_OF_PRODUCTS = (
    "title", "body (html)", "body html", "vendor", "product category", "type", "custom product type", "tags",
    *(name for name, _ in _OPTIONS),
)  # fmt: skip
_OF_VARIANTS = ("variant sku", "variant price", *(value for _, value in _OPTIONS))
#: The option of a product that has none.
_NO_OPTION = "title"


def is_shopify(header: Sequence[str]) -> bool:
    keys = {header_key(cell) for cell in header}
    return keys >= {"handle", "title"} and bool(keys & {"option1 name", "variant sku"})


def with_products(table: Table) -> Table:
    """Each variant with what its product says, each option in a column of its own name; pictures alone are no rows."""
    export = _Export(table.header)
    rows = tuple(export.variants(table.records))
    names = list(dict.fromkeys(name for _, cells in rows for name in export.options_of(cells)))
    new = [name for name in names if header_key(name) not in export.keys]
    widened = tuple((number, (*cells, *export.values(cells, new))) for number, cells in rows)
    header = (table.layout.header_row or 1, (*table.header, *new))
    pictures = len(table.records) - len(rows)
    note = f"{plural(pictures, 'row')} with a further picture of a product, which are no variants, not read."
    return replace(
        table,
        layout=replace(table.layout, format="Shopify export"),
        sheet=replace(table.sheet, rows=(header, *widened)),
        notes=(*table.notes, note) if pictures else table.notes,
    )


class _Export:
    def __init__(self, header: Sequence[str]) -> None:
        self.keys = {header_key(cell): index for index, cell in enumerate(header)}
        self._of_products = [self.keys[key] for key in _OF_PRODUCTS if key in self.keys]
        self._of_variants = [self.keys[key] for key in _OF_VARIANTS if key in self.keys]
        self._options = [
            (self.keys[name], self.keys[value])
            for name, value in _OPTIONS
            if name in self.keys and value in self.keys
        ]

    def variants(self, rows: Sequence[NumberedRow]) -> Iterator[NumberedRow]:
        handle, product = "", tuple[str, ...]()
        for number, row in rows:
            cells = list(row)
            at = self.keys["handle"]
            if len(cells) <= at or not cells[at] or cells[at] != handle:
                handle, product = cells[at] if len(cells) > at else "", row
                yield number, row
            elif any(cells[index : index + 1] not in ([], [""]) for index in self._of_variants):
                for index in self._of_products:
                    if index < min(len(cells), len(product)):
                        cells[index] = cells[index] or product[index]
                yield number, tuple(cells)

    def options_of(self, cells: Sequence[str]) -> dict[str, str]:
        named = {cells[name].strip(): cells[value] for name, value in self._options if value < len(cells)}
        return {name: value for name, value in named.items() if name and name.casefold() != _NO_OPTION}

    def values(self, cells: Sequence[str], names: Sequence[str]) -> list[str]:
        found = self.options_of(cells)
        return [found.get(name, "") for name in names] if len(cells) == len(self.keys) else []
