"""Shopify product exports: a product's variants and pictures are rows that leave out what its first row says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from patternmill.catalog.catalog_file import NumberedRow
from patternmill.catalog.rows import RESULT_COLUMNS, header_key, is_results_header
from patternmill.sheets.tables import Table
from patternmill.text import plural

_HANDLES = ("handle", "url handle")
_OPTIONS = tuple((f"option{number} name", f"option{number} value") for number in (1, 2, 3))
#: What belongs to a product, and is written in its first row alone; in the older and the newer form of exports.
_OF_PRODUCTS = (
    "title", "body (html)", "description", "vendor", "product category", "type", "tags", "status",
    *(name for name, _ in _OPTIONS),
)  # fmt: skip
#: A row with none of them is a further picture.
_OF_VARIANTS = ("variant sku", "sku", "variant price", "price", *(value for _, value in _OPTIONS))
#: The name of the option of a product that has none.
_NO_OPTION = "title"


def is_shopify(header: Sequence[str]) -> bool:
    """The results of such an export have its columns too, and are rows as they are."""
    keys = {header_key(cell) for cell in header}
    return (
        not is_results_header(header)
        and "title" in keys
        and not keys.isdisjoint(_HANDLES)
        and "option1 name" in keys
    )


def with_products(table: Table) -> Table:
    """Each variant with what its product says, each option in a column of its own name; pictures alone are no rows.

    A column with the name of a result (`Status`) becomes a remark.
    """
    export = _Export(table.header)
    rows = tuple(export.variants(table.records))
    names = dict.fromkeys(name for _, cells in rows for name in export.options_of(cells))
    new = [name for name in names if header_key(name) not in export.keys]
    widened = tuple((number, (*cells, *export.values(cells, new))) for number, cells in rows)
    header = (table.layout.header_row or 1, (*map(_column, table.header), *new))
    pictures = len(table.records) - len(rows)
    note = f"Skipped, as further pictures of a product: {plural(pictures, 'row')}."
    return replace(
        table,
        layout=replace(table.layout, format="Shopify export"),
        sheet=replace(table.sheet, rows=(header, *widened)),
        notes=(*table.notes, note) if pictures else table.notes,
    )


def _column(header: str) -> str:
    return f"note:{header}" if header_key(header) in RESULT_COLUMNS else header


class _Export:
    """Where an export has what."""

    def __init__(self, header: Sequence[str]) -> None:
        self.width = len(header)
        self.keys = {header_key(cell): index for index, cell in enumerate(header)}
        self._handle = next(self.keys[key] for key in _HANDLES if key in self.keys)
        self._of_products = [self.keys[key] for key in _OF_PRODUCTS if key in self.keys]
        self._of_variants = [self.keys[key] for key in _OF_VARIANTS if key in self.keys]
        self._options = [
            (self.keys[name], self.keys[value])
            for name, value in _OPTIONS
            if {name, value} <= self.keys.keys()
        ]

    def variants(self, rows: Sequence[NumberedRow]) -> Iterator[NumberedRow]:
        """A row with too few or too many cells stays as it is, and is refused for it."""
        product: tuple[str, ...] = ("",) * self.width
        for number, cells in rows:
            if len(cells) != self.width:
                yield number, cells
            elif not cells[self._handle] or cells[self._handle] != product[self._handle]:
                product = cells
                yield number, cells
            elif any(cells[index] for index in self._of_variants):
                yield number, self._completed(cells, product)

    def _completed(self, cells: tuple[str, ...], product: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(
            cell or (product[index] if index in self._of_products else "") for index, cell in enumerate(cells)
        )

    def options_of(self, cells: Sequence[str]) -> dict[str, str]:
        """By name, as the row chooses them."""
        if len(cells) != self.width:
            return {}
        named = {cells[name].strip(): cells[value] for name, value in self._options}
        return {name: value for name, value in named.items() if name and name.casefold() != _NO_OPTION}

    def values(self, cells: Sequence[str], names: Sequence[str]) -> list[str]:
        found = self.options_of(cells)
        return [found.get(name, "") for name in names] if len(cells) == self.width else []
