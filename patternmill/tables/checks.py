"""Every fault of every row in one pass, and the rows that are fit to be bought."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from typing import Any

import pandas as pd

from patternmill.planning.extras import Extras
from patternmill.planning.normal_text import normalised
from patternmill.planning.offer import Offer, offer_key
from patternmill.planning.problems import Problem, RowCode, rows_named
from patternmill.planning.rows import Entry, Row, is_blank, sku_key, tidy
from patternmill.tables.catalog import Catalog
from patternmill.tables.cells import ExtraCells, prompt_problem, sku_problem
from patternmill.tables.choices import ChoiceResolver
from patternmill.tables.columns import column_letter
from patternmill.text import shown

UNCHECKED = "Categories and options were not checked, because no offer was read."
#: The columns of the frame of problems behind `row`: the fields of a Problem.
_FIELDS = ("sku", "column", "code", "message", "remedy", "value", "suggestion", "offered")
#: What separates the cells of a text file, for people.
_SIGNS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
_REPEATED = (
    "if that is a mistake, keep one of these rows and delete the others; if you want them all, give each a sku of its"
    " own (case and spaces do not distinguish skus)"
)


@dataclass(frozen=True)
class Checked:
    """A catalog's sheet after checking."""

    catalog: Catalog
    #: Every row of the sheet, in its order.
    entries: tuple[Entry, ...] = field(repr=False)
    #: In sentences: how it was read, and what could not be checked.
    notes: tuple[str, ...] = ()
    offer: Offer | None = None
    extras: Extras = field(default_factory=Extras)

    @cached_property
    def accepted(self) -> tuple[Row, ...]:
        """Return the rows that are fit to be bought."""
        return tuple(entry.row for entry in self.entries if entry.row is not None)

    @property
    def accepted_count(self) -> int:
        return len(self.accepted)

    @property
    def refused_count(self) -> int:
        return len(self.entries) - len(self.accepted)

    @cached_property
    def problems(self) -> pd.DataFrame:
        """Return what is wrong with the refused rows, one line a fault: `row`, and the fields of a Problem."""
        faults = (fault for entry in self.entries for fault in entry.problems)
        lines = [(fault.line, *(getattr(fault, name) for name in _FIELDS)) for fault in faults]
        frame = pd.DataFrame(lines, columns=["row", *_FIELDS], dtype=object).astype({"row": "int64"})
        return frame.assign(code=frame["code"].map(str).astype(object))


def check_catalog(catalog: Catalog, offer: Offer | None, extras: Extras | None = None) -> Checked:
    """Return each row as what is to be bought, or with all that is wrong with it."""
    sheet, extras = catalog.sheet, extras or Extras()
    check = _Check(catalog, offer, extras)
    entries = tuple([check.entry(line, cells) for line, cells in sheet.records()])
    read_as = None if sheet.layout.is_usual else f"Read as {sheet.layout.text}."
    unchecked = UNCHECKED if offer is None else offer.note
    notes = tuple(filter(None, (read_as, *sheet.notes, unchecked, extras.note)))
    return Checked(catalog, entries, notes, offer, extras)


class _Check:
    """Checks the rows of one sheet. Equal choices, models, references and refinements are read once."""

    def __init__(self, catalog: Catalog, offer: Offer | None, extras: Extras) -> None:
        self._sheet, self._columns, self._header = catalog.sheet, catalog.columns, catalog.header
        self._sku, self._prompt = catalog.columns.sku, catalog.columns.prompt
        self._width = len(catalog.columns.kept) if catalog.columns.surplus else len(catalog.header)
        self._sign = _SIGNS.get(catalog.sheet.layout.delimiter or ",", "separator")
        choices = ChoiceResolver(catalog.columns, catalog.mapping, offer)
        self._deciding, self._choose = choices.positions, cache(choices.resolve)
        self._extras = dict(self._readers(ExtraCells(extras)))
        self._repeated = dict(self._repeated_skus())
        self._not_text = self._cells_without_text()

    def _readers(self, cells: ExtraCells) -> Iterator[tuple[int, Callable[[str], Any]]]:
        """Yield by its position how a cell with a model, a reference or a refinement is read."""
        columns = self._columns
        for name, read in (("model", cells.model), ("reference", cells.reference)):
            if (at := columns.named.get(name)) is not None:
                yield at, cache(partial(read, self._header[at]))
        for at, operation in columns.refinements.items():
            yield at, cache(partial(cells.refinement, operation, self._header[at]))

    def _repeated_skus(self) -> Iterator[tuple[str, Problem]]:
        """Yield the keys of the skus that several rows have, each with its fault: which row is meant is not known."""
        skus, column = self._sheet.column(self._sku), self._header[self._sku]
        keys = skus.map(sku_key)
        keys = keys[keys.duplicated(keep=False) & keys.ne("")]
        for lines in keys.groupby(keys, sort=False).groups.values():
            sku = tidy(skus[lines[0]])
            message = f"the sku {shown(sku)} is in {rows_named(lines)}"
            yield sku_key(sku), Problem(column, RowCode.DUPLICATE_SKU, message, _REPEATED, sku)

    def _cells_without_text(self) -> dict[int, list[Problem]]:
        """Return by row the cells of a workbook that are no text, in the columns that a catalog uses."""
        faults = defaultdict[int, list[Problem]](list)
        for row, at in sorted(self._sheet.unfit):
            fault = self._sheet.fault(row, at, is_sku=at == self._sku)
            if fault is not None and at in self._columns.used:
                faults[row].append(Problem(self._header[at], RowCode.NOT_TEXT, *fault))
        return faults

    def entry(self, line: int, cells: tuple[str, ...]) -> Entry:
        """Return a row as what is to be bought, or with all that is wrong with it."""
        sku, prompt = tidy(cells[self._sku]), normalised(cells[self._prompt])
        sku_fault = sku_problem(self._header[self._sku], cells[self._sku])
        chosen = self._choose(tuple([cells[at] for at in self._deciding]))
        extras = {at: read(cells[at]) for at, read in self._extras.items() if not is_blank(cells[at])}
        found = (
            sku_fault or (self._repeated and self._repeated.get(sku_key(sku))),
            prompt_problem(self._header[self._prompt], cells[self._prompt], prompt),
            *chosen.problems,
            *extras.values(),
        )
        faults = [fault for fault in found if isinstance(fault, Problem)]
        not_text = self._not_text.get(line, [])
        misfit = self._surplus_fault(line) or self._short_fault(line, chosen.missing)
        if misfit is not None:
            # What else is wrong follows from it.
            faults = [misfit, *(fault for fault in faults if fault.code is RowCode.DUPLICATE_SKU)]
        if faults or not_text:
            faults = [*not_text, *self._of_texts(faults, not_text)]
            is_readable = sku_fault is None and self._header[self._sku] not in {
                fault.column for fault in not_text
            }
            return Entry(line, None, tuple([fault.at(line, sku or None) for fault in faults]), is_readable)
        named = self._columns.named
        row = Row(
            prompt,
            chosen.category,
            chosen.selections,
            extras.get(named.get("model", -1)),
            extras.get(named.get("reference", -1)),
            tuple([extras[at] for at in self._columns.refinements if at in extras]),
            category_name=chosen.category_name,
            is_checked=chosen.is_checked,
            exact_keys=chosen.exact_keys,
            line=line,
            sku=sku,
        )
        return Entry(line, row)

    def _surplus_fault(self, line: int) -> Problem | None:
        """Return the fault of a row with more cells than the header."""
        if (beyond := self._sheet.surplus.get(line)) is None:
            return None
        remedy = "delete the separators at its end"
        if self._columns.surplus:
            column = shown(self._header[self._columns.surplus[0]])
            remedy = f"put what is in {column} where it belongs, and empty it there"
        elif not all(map(is_blank, beyond)):
            remedy = f'quote the cell that contains the {self._sign} ("...", with no space before the quote)'
        message = f"the row has {self._width + len(beyond)} cells, but the header has {self._width}"
        return Problem(None, RowCode.SURPLUS_CELLS, message, remedy)

    def _short_fault(self, line: int, missing: Iterable[int]) -> Problem | None:
        """Return the fault of a row that ends before a column that it needs."""
        count = self._sheet.short.get(line)
        if count is None or count > max(self._sku, self._prompt, self._columns.category, *missing):
            return None
        before = shown(self._header[count].strip() or column_letter(count))
        message = f"the row has {count} cells, but the header has {self._width}; it ends before {before}"
        return Problem(None, RowCode.MISSING_CELLS, message, f"write a {self._sign} for each empty cell")

    def _of_texts(self, faults: Iterable[Problem], not_text: Iterable[Problem]) -> Iterator[Problem]:
        """Yield the faults of a row but for those that follow from cells that are no text."""
        odd = {fault.column for fault in not_text}
        options = {offer_key(name) for at, name in self._columns.options.items() if self._header[at] in odd}
        for fault in faults:
            is_of_option = fault.code is RowCode.MISSING_OPTION and offer_key(fault.value or "") in options
            if fault.column not in odd and not is_of_option:
                yield fault
