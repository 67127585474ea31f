"""Finds every fault of every row in one pass, and the rows that are fit to be bought."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from typing import Any

import pandas as pd

from patternmill.planning.extras import Extras
from patternmill.planning.normal_text import normalised
from patternmill.planning.offer import Offer, offer_key
from patternmill.planning.problems import Problem, RowCode, rows_named
from patternmill.planning.rows import Content, Entry, Row, is_blank, sku_key, tidy
from patternmill.tables.catalog import Catalog
from patternmill.tables.cells import (
    LONGEST_PLACEHOLDER,
    PROMPT_LIMIT,
    ExtraCells,
    prompt_problem,
    sku_problem,
)
from patternmill.tables.choices import ChoiceResolver, Chosen
from patternmill.tables.columns import column_letter
from patternmill.text import shown

UNCHECKED = "Categories and options were not checked, because no offer was read."
#: The columns of the frame of rows: the sku, then the fields of a Row's content in their order.
ROW_COLUMNS = ("sku", *Content.__slots__)
#: The columns of the frame of problems; `row` is the number that a spreadsheet shows.
PROBLEM_COLUMNS = ("row", "sku", "column", "code", "message", "remedy", "value", "suggestion", "offered")
#: The names that people give to the separators of cells in a text file.
_SIGNS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
_REPEATED = (
    "if that is a mistake, keep one of these rows and delete the others; if you want them all, give each a sku of its"
    " own (case and spaces do not distinguish skus)"
)
_OF_SHAPE = (RowCode.SURPLUS_CELLS, RowCode.MISSING_CELLS)

#: Row numbers with what is wrong with each row, which may have several faults.
Faults = Iterable[tuple[int, Problem]]


@dataclass(frozen=True)
class Checked:
    """A catalog's sheet after checking."""

    catalog: Catalog
    #: The rows that are fit, by row number; its columns are ROW_COLUMNS.
    rows: pd.DataFrame = field(repr=False)
    #: One line per fault, in the order of the rows; its columns are PROBLEM_COLUMNS.
    problems: pd.DataFrame = field(repr=False)
    #: Sentences on how the sheet was read, and on what could not be checked.
    notes: tuple[str, ...] = ()
    offer: Offer | None = None
    extras: Extras = field(default_factory=Extras)

    @property
    def refused_count(self) -> int:
        return len(self.catalog.sheet.rows) - len(self.rows)

    @cached_property
    def accepted(self) -> tuple[Row, ...]:
        """Return the accepted rows as plain values, in the sheet's order."""
        return tuple(entry.row for entry in self.entries if entry.row is not None)

    @cached_property
    def entries(self) -> tuple[Entry, ...]:
        """Return every row of the sheet as a plain value: accepted, or with what is wrong with it."""
        columns = (self.rows[name].to_numpy(dtype=object) for name in ROW_COLUMNS)
        lines = zip(self.rows.index.tolist(), zip(*columns, strict=True), strict=True)
        fit = {line: Row(*content, line=line, sku=sku) for line, (sku, *content) in lines}
        problems = defaultdict[int, list[Problem]](list)
        for row, sku, column, code, *rest in self.problems.itertuples(index=False, name=None):
            problems[row].append(Problem(column, RowCode(code), *rest).at(row, sku))
        sku_column = self.catalog.columns.header[self.catalog.columns.sku]
        # A fit row has no problems, so its sku is always readable.
        of_sku = self.problems["column"].eq(sku_column) & self.problems["code"].ne(
            RowCode.DUPLICATE_SKU.value
        )
        unreadable = set(self.problems["row"][of_sku])
        return tuple(
            Entry(line, fit.get(line), tuple(problems.get(line, ())), line not in unreadable)
            for line in self.catalog.sheet.rows.index.tolist()
        )


def recorded_rows(catalog: Catalog, entries: Sequence[Entry], extras: Extras) -> Checked:
    """Return rows that were checked before, as they were understood then."""
    fit = [entry.row for entry in entries if entry.row is not None]
    cells = [[getattr(row, name) for name in ROW_COLUMNS] for row in fit]
    rows = pd.DataFrame(cells, [row.line for row in fit], list(ROW_COLUMNS), dtype=object)
    problems = _problem_frame(fault for entry in entries for fault in entry.problems)
    return Checked(catalog, rows, problems, extras=extras)


def check_catalog(catalog: Catalog, offer: Offer | None, extras: Extras | None = None) -> Checked:
    """Return the fit rows, and what is wrong with the others."""
    return _Check(catalog, offer, extras or Extras()).checked()


class _Check:
    """One pass over the rows of a sheet."""

    def __init__(self, catalog: Catalog, offer: Offer | None, extras: Extras) -> None:
        self._catalog, self._offer, self._extras = catalog, offer, extras
        self._sheet, self._columns = catalog.sheet, catalog.columns
        self._header, self._rows = catalog.sheet.header, catalog.sheet.rows
        cells = self._rows[self._columns.sku]
        self._odd_skus = cells[_is_odd(cells)]
        self._skus = _with(cells, _read(self._odd_skus, tidy))

    def checked(self) -> Checked:
        cells = self._rows[self._columns.prompt]
        odd = cells[_is_odd(cells) | cells.str.contains("  ", regex=False)]
        extras, chosen = self._extra_cells(), self._chosen()
        problems = self._problems(chosen, extras, odd.index)
        named = self._columns.named
        steps = extras[list(self._columns.refinements)].itertuples(name=None)
        refinements: list[Any] = [tuple(filter(None, row)) for _, *row in steps]
        rows = chosen.assign(
            sku=self._skus,
            prompt=_with(cells, _read(odd, normalised)),
            take=None,
            model=extras.get(named.get("model")),
            reference=extras.get(named.get("reference")),
            refinements=refinements,
        )[list(ROW_COLUMNS)]
        read_as = None if self._sheet.layout.is_usual else f"Read as {self._sheet.layout.text}."
        unchecked = UNCHECKED if self._offer is None else self._offer.note
        notes = tuple(filter(None, (read_as, *self._sheet.notes, unchecked, self._extras.note)))
        rows = rows[~rows.index.isin(problems["row"])]
        return Checked(self._catalog, rows, problems, notes, self._offer, self._extras)

    def _problems(self, chosen: pd.DataFrame, extras: pd.DataFrame, odd_prompts: pd.Index) -> pd.DataFrame:
        """Return what is wrong, in the order of the rows, without what follows from other faults of a row."""
        columns, header = self._columns, self._header
        prompts = self._rows[columns.prompt]
        length = prompts.str.len()
        suspects = prompts.index.isin(odd_prompts) | length.le(LONGEST_PLACEHOLDER) | length.gt(PROMPT_LIMIT)
        sku_faults = _read(self._odd_skus, partial(sku_problem, header[columns.sku])).dropna()
        faults = [
            *self._not_text(),
            *self._misfits(chosen["missing"]),
            *_faults_in(sku_faults),
            *self._repeated_skus(sku_faults.index),
            *_faults_in(_read(prompts[suspects], partial(prompt_problem, header[columns.prompt]))),
            *_faults_in(chosen["problems"].explode()),
            *_faults_in(*(cells for _, cells in extras.items())),
        ]
        skus = self._skus.to_dict() if faults else {}
        problems = _problem_frame(fault.at(row, skus[row] or None) for row, fault in faults)
        row, column, code = (problems[name] for name in ("row", "column", "code"))
        # The fault of the sku stays: a misshapen row whose sku cannot be read may be about any sku.
        is_of_sku = column.eq(header[columns.sku]) & code.ne(RowCode.EMPTY_SKU)
        is_misfit = row.isin(row[code.isin(_OF_SHAPE)])
        problems = problems[~is_misfit | code.isin((*_OF_SHAPE, RowCode.NOT_TEXT)) | is_of_sku]
        return self._own(problems) if self._sheet.unfit else problems

    def _own(self, problems: pd.DataFrame) -> pd.DataFrame:
        """Return the problems without those that only follow from a cell that is no text."""
        options = {self._header[at]: offer_key(name) for at, name in self._columns.options.items()}
        fields = problems[["row", "column", "code", "value"]].itertuples(index=False, name=None)
        places = pd.Series(
            [
                (
                    row,
                    offer_key(value or "") if code == RowCode.MISSING_OPTION else options.get(column, column),
                )
                for row, column, code, value in fields
            ],
            problems.index,
            dtype=object,
        )
        is_odd = problems["code"].eq(RowCode.NOT_TEXT)
        return problems[is_odd | ~places.isin(list(places[is_odd]))]

    # --- cells that are no text, and rows of another shape

    def _misfits(self, missing: pd.Series) -> Faults:
        """Yield rows with more cells than the header, and those that end before a column that they need."""
        columns = self._columns
        width = len(columns.kept) if columns.surplus else len(self._header)
        sign = _SIGNS.get(self._sheet.layout.delimiter or ",", "separator")
        for row, cells in self._sheet.surplus.items():
            message = f"the row has {width + len(cells)} cells, but the header has {width}"
            remedy = "delete the separators at its end"
            if columns.surplus:
                column = shown(self._header[columns.surplus[0]])
                remedy = f"put what is in {column} where it belongs, and empty it there"
            elif not all(map(is_blank, cells)):
                remedy = f'quote the cell that contains the {sign} ("...", with no space before the quote)'
            yield row, Problem(None, RowCode.SURPLUS_CELLS, message, remedy)
        for row, count in self._sheet.short.items():
            if count <= max(columns.sku, columns.prompt, columns.category, *missing[row]):
                before = shown(self._header[count].strip() or column_letter(count))
                message = f"the row has {count} cells, but the header has {width}; it ends before {before}"
                yield (
                    row,
                    Problem(None, RowCode.MISSING_CELLS, message, f"write a {sign} for each empty cell"),
                )

    def _not_text(self) -> Faults:
        """Yield cells of a workbook that are no text, in the columns that a catalog uses."""
        for row, at in sorted(self._sheet.unfit):
            fault = self._sheet.fault(row, at, is_sku=at == self._columns.sku)
            if fault is not None and at in self._columns.used:
                yield row, Problem(self._header[at], RowCode.NOT_TEXT, *fault)

    def _repeated_skus(self, unfit: pd.Index) -> Faults:
        """Yield every row of each sku that several rows have, as nobody knows which of them is meant."""
        keys = self._skus.map(sku_key)
        keys = keys[keys.duplicated(keep=False) & keys.ne("")]
        column = self._header[self._columns.sku]
        for rows in keys.groupby(keys, sort=False).groups.values():
            sku = self._skus[rows[0]]
            message = f"the sku {shown(sku)} is in {rows_named(rows)}"
            problem = Problem(column, RowCode.DUPLICATE_SKU, message, _REPEATED, sku)
            yield from ((int(row), problem) for row in rows.difference(unfit))

    # --- what is chosen

    def _chosen(self) -> pd.DataFrame:
        """Return what each row chooses: each combination of cells is resolved once, and joined back."""
        resolver = ChoiceResolver(self._columns, self._catalog.mapping, self._offer)
        cells = self._rows[list(resolver.positions)]
        different = cells.drop_duplicates()
        chosen = [resolver.resolve(texts) for texts in different.itertuples(index=False, name=None)]
        resolved = pd.DataFrame(chosen, different.index, list(Chosen._fields), dtype=object)
        joined = cells.merge(different.join(resolved), how="left", on=list(cells))
        return joined.set_axis(cells.index)[list(Chosen._fields)]

    def _extra_cells(self) -> pd.DataFrame:
        """Return the columns with models, references or refinements as they are read, by their positions."""
        columns, cells = self._columns, ExtraCells(self._extras)
        reads: dict[int | None, Callable[[str, str], Any]] = {
            columns.named.get("model"): cells.model,
            columns.named.get("reference"): cells.reference,
        }
        reads |= {at: partial(cells.refinement, operation) for at, operation in columns.refinements.items()}
        read = {
            at: _read(self._rows[at], partial(reads[at], self._header[at])) for at in reads if at is not None
        }
        return pd.DataFrame(read, self._rows.index, dtype=object)


def _problem_frame(faults: Iterable[Problem]) -> pd.DataFrame:
    """Return faults as a frame in the order of the rows; the faults of one row stay in the order given."""
    lines = [(fault.line, *(getattr(fault, name) for name in PROBLEM_COLUMNS[1:])) for fault in faults]
    frame = pd.DataFrame(lines, columns=list(PROBLEM_COLUMNS), dtype=object)
    frame["code"] = frame["code"].map(str).astype(object)
    return frame.astype({"row": "int64"}).sort_values("row", kind="stable", ignore_index=True)


# --- texts: a quick look at all of them, a close one at the few that are odd


def _is_odd(texts: pd.Series) -> pd.Series:
    """Mark the texts that need a closer look: those that are not plain words, numbers and signs of a keyboard."""
    odd = [
        not (
            text.isascii()
            and text.isprintable()
            and text[:1].isalnum()
            and text[-1] != " "
            and "E+" not in text
            and not text.startswith("Err:")
        )
        for text in texts.to_numpy(dtype=object)
    ]
    return pd.Series(odd, texts.index, dtype=bool)


def _read(texts: pd.Series, read: Callable[[str], Any]) -> pd.Series:
    """Return what `read` makes of each text; equal texts are read once."""
    # Columns of texts are slow to iterate over.
    return pd.Series([*map(cache(read), texts.to_numpy(dtype=object))], texts.index, dtype=object)


def _with(texts: pd.Series, changed: pd.Series) -> pd.Series:
    """Return the texts with those that were changed."""
    return changed.reindex(texts.index).fillna(texts) if len(changed) else texts


def _faults_in(*columns: pd.Series) -> Faults:
    for cells in columns:
        for row, cell in zip(cells.index.tolist(), cells.to_numpy(dtype=object), strict=True):
            if isinstance(cell, Problem):
                yield row, cell
