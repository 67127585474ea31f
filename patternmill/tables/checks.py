"""Every fault of every row in one pass, and the rows that are fit to be bought."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np
import pandas as pd

from patternmill.planning.extras import Extras
from patternmill.planning.normal_text import normalised
from patternmill.planning.offer import Offer, offer_key
from patternmill.planning.problems import Problem, RowCode, rows_named
from patternmill.planning.rows import Content, Entry, Row, is_blank, sku_key, tidy
from patternmill.tables.catalog import Catalog
from patternmill.tables.cells import (
    LONGEST_PLACEHOLDER,
    ExtraCells,
    error_problem,
    placeholder_problem,
    shortened_number_problem,
    unfit_problem,
)
from patternmill.tables.choices import ChoiceResolver, Chosen
from patternmill.tables.columns import column_letter
from patternmill.text import shown

UNCHECKED = "Categories and options were not checked, because no offer was read."
#: In characters; the interface names no bound.
PROMPT_LIMIT = 4000
#: The columns of the frame of rows: the fields of a Row but for its line, in their order behind the sku.
ROW_COLUMNS = ("sku", *Content.__slots__)
#: The columns of the frame of problems; `row` as a spreadsheet numbers it.
PROBLEM_COLUMNS = ("row", "sku", "column", "code", "message", "remedy", "value", "nearest", "offered")
#: Behind row and sku: the fields of a Problem.
_FAULT_FIELDS = ("column", "code", "message", "remedy", "value", "suggestion", "offered")
#: What separates the cells of a text file, for people.
_SIGNS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
_REPEATED = (
    "if that is a mistake, keep one of these rows and delete the others; if you want them all, give each a sku of its"
    " own (case and spaces do not distinguish skus)"
)
#: What a row of another shape has beside that.
_BESIDE_SHAPE = frozenset({RowCode.SURPLUS_CELLS, RowCode.MISSING_CELLS, RowCode.DUPLICATE_SKU})

#: What is wrong with rows, by their numbers; a row may have several.
Faults = Iterable[tuple[int, Problem]]


@dataclass(frozen=True)
class Checked:
    """A catalog's sheet after checking."""

    catalog: Catalog
    #: The rows that are fit, by row number; ROW_COLUMNS.
    rows: pd.DataFrame = field(repr=False)
    #: One line a fault, in the order of the rows; PROBLEM_COLUMNS.
    problems: pd.DataFrame = field(repr=False)
    #: In sentences: how it was read, and what could not be checked.
    notes: tuple[str, ...] = ()
    offer: Offer | None = None
    extras: Extras = field(default_factory=Extras)

    @property
    def accepted_count(self) -> int:
        return len(self.rows)

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
        # Of a fit row there are none.
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
    faults = ((fault.line, fault.sku, fault) for entry in entries for fault in entry.problems)
    return Checked(catalog, rows, _problem_frame(faults), extras=extras)


def check_catalog(
    catalog: Catalog, offer: Offer | None, *, prompt_limit: int = PROMPT_LIMIT, extras: Extras | None = None
) -> Checked:
    """Return the fit rows, and what is wrong with the others; `prompt_limit` is in characters."""
    return _Check(catalog, offer, prompt_limit, extras or Extras()).checked()


class _Check:
    """One pass over the rows of a sheet."""

    def __init__(self, catalog: Catalog, offer: Offer | None, prompt_limit: int, extras: Extras) -> None:
        self._catalog, self._offer, self._prompt_limit, self._extras = catalog, offer, prompt_limit, extras
        self._sheet, self._columns = catalog.sheet, catalog.columns
        self._header, self._rows = catalog.sheet.header, catalog.sheet.rows
        cells = self._rows[self._columns.sku]
        self._odd_skus = _is_odd(cells)
        self._skus = _changed(cells, self._odd_skus, tidy)

    def checked(self) -> Checked:
        prompts = self._rows[self._columns.prompt]
        is_odd = _is_odd(prompts) | prompts.str.contains("  ", regex=False)
        extras = self._extra_cells()
        chosen = self._chosen()
        problems = self._problems(chosen, extras, is_odd)
        rows = chosen.assign(
            sku=self._skus, prompt=_changed(prompts, is_odd, normalised), take=None, **extras
        )[list(ROW_COLUMNS)]
        if len(problems):
            rows = rows[~rows.index.isin(problems["row"])]
        read_as = None if self._sheet.layout.is_usual else f"Read as {self._sheet.layout.text}."
        unchecked = UNCHECKED if self._offer is None else self._offer.note
        notes = tuple(filter(None, (read_as, *self._sheet.notes, unchecked, self._extras.note)))
        return Checked(self._catalog, rows, problems, notes, self._offer, self._extras)

    def _problems(
        self, chosen: pd.DataFrame, extras: dict[str, pd.Series], odd_prompts: pd.Series
    ) -> pd.DataFrame:
        """Return what is wrong, in the order of the rows."""
        misfits = dict(self._misfits(chosen))
        sku_faults = dict(
            _faults_in(_of_each(self._rows.loc[self._odd_skus, self._columns.sku], self._sku_fault))
        )
        faults = [
            *misfits.items(),
            *sku_faults.items(),
            *self._repeated_skus(sku_faults.keys() - misfits.keys()),
            *self._prompt_faults(odd_prompts),
            *_listed(chosen["problems"]),
            *_faults_in(*(extras[name] for name in ("model", "reference") if name in self._columns.named)),
            *((row, step) for row, step in _listed(extras["refinements"]) if isinstance(step, Problem)),
        ]
        not_text = list(self._not_text())
        skus = self._skus.to_dict() if faults or not_text else {}
        of_rows = (*not_text, *self._own_faults(faults, misfits.keys(), not_text))
        return _problem_frame((row, skus[row] or None, fault) for row, fault in of_rows)

    # --- cells that are no text, and rows of another shape

    def _misfits(self, chosen: pd.DataFrame) -> Iterator[tuple[int, Problem]]:
        """Yield rows with more cells than the header, and those that end before a column that they need."""
        columns = self._columns
        width = len(columns.kept) if columns.surplus else len(self._header)
        for row, cells in self._sheet.surplus.items():
            message = f"the row has {width + len(cells)} cells, but the header has {width}"
            remedy = "delete the separators at its end"
            if columns.surplus:
                column = shown(self._header[columns.surplus[0]])
                remedy = f"put what is in {column} where it belongs, and empty it there"
            elif not all(map(is_blank, cells)):
                sign = _SIGNS.get(self._sheet.layout.delimiter or ",", "separator")
                remedy = f'quote the cell that contains the {sign} ("...", with no space before the quote)'
            yield row, Problem(None, RowCode.SURPLUS_CELLS, message, remedy)
        for row, count in self._sheet.short.items():
            if count <= max(columns.sku, columns.prompt, columns.category, *chosen["missing"][row]):
                before = shown(self._header[count].strip() or column_letter(count))
                message = f"the row has {count} cells, but the header has {width}; it ends before {before}"
                yield row, Problem(None, RowCode.MISSING_CELLS, message, "write a comma for each empty cell")

    def _not_text(self) -> Iterator[tuple[int, Problem]]:
        """Yield cells of a workbook that are no text, in the columns that a catalog uses."""
        for row, at in sorted(self._sheet.unfit):
            fault = self._sheet.fault(row, at, is_sku=at == self._columns.sku)
            if fault is not None and at in self._columns.used:
                yield row, Problem(self._header[at], RowCode.NOT_TEXT, *fault)

    def _own_faults(self, faults: Faults, misfits: Iterable[int], not_text: Faults) -> Faults:
        """Return the faults but for those that follow from a row's shape, or from a cell that is no text."""
        of_misfits, odd_cells = set(misfits), {(row, fault.column) for row, fault in not_text}
        by_header = {self._header[at]: offer_key(name) for at, name in self._columns.options.items()}
        odd_options = {(row, by_header.get(column or "")) for row, column in odd_cells}
        for row, fault in faults:
            follows = (row, fault.column) in odd_cells or (
                fault.code is RowCode.MISSING_OPTION and (row, offer_key(fault.value or "")) in odd_options
            )
            if not follows and (row not in of_misfits or fault.code in _BESIDE_SHAPE):
                yield row, fault

    # --- skus and prompts

    def _sku_fault(self, cell: str) -> Problem | None:
        column, sku = self._header[self._columns.sku], tidy(cell)
        if is_blank(sku):
            return Problem(column, RowCode.EMPTY_SKU, "the sku is empty", "write a sku of its own")
        return unfit_problem(column, cell) or shortened_number_problem(column, sku)

    def _repeated_skus(self, unfit: Iterable[int]) -> Iterator[tuple[int, Problem]]:
        """Yield every row of each sku that several rows have: which of them is meant is not known."""
        # By their hashes first: the keys of all rows would take more memory than the skus.
        hashes = pd.Series([hash(sku_key(sku)) for sku in _texts(self._skus)], self._skus.index)
        keys = self._skus[hashes.duplicated(keep=False)].map(sku_key)
        keys = keys[keys.duplicated(keep=False) & keys.ne("")]
        unfit, column = set(unfit), self._header[self._columns.sku]
        for rows in keys.groupby(keys, sort=False).groups.values():
            sku = self._skus[rows[0]]
            message = f"the sku {shown(sku)} is in {rows_named(rows)}"
            problem = Problem(column, RowCode.DUPLICATE_SKU, message, _REPEATED, sku)
            yield from ((int(row), problem) for row in rows if row not in unfit)

    def _prompt_faults(self, is_odd: pd.Series) -> Faults:
        cells = self._rows[self._columns.prompt]
        length = cells.str.len()
        suspects = cells[is_odd | length.le(LONGEST_PLACEHOLDER) | length.gt(self._prompt_limit)]
        return _faults_in(_of_each(suspects, self._prompt_fault))

    def _prompt_fault(self, cell: str) -> Problem | None:
        column, prompt = self._header[self._columns.prompt], normalised(cell)
        if is_blank(prompt):
            return Problem(column, RowCode.EMPTY_PROMPT, "the prompt is empty", "describe the pattern")
        if fault := error_problem(column, cell) or placeholder_problem(column, prompt):
            return fault
        if len(prompt) <= self._prompt_limit:
            return None
        message = f"the prompt has {len(prompt)} characters; {self._prompt_limit} are allowed"
        remedy = f"shorten it by {len(prompt) - self._prompt_limit}"
        return Problem(column, RowCode.PROMPT_TOO_LONG, message, remedy)

    # --- what is chosen

    def _chosen(self) -> pd.DataFrame:
        """Return what each row chooses: each combination of cells is resolved once, and joined back."""
        resolver = ChoiceResolver(self._columns, self._catalog.mapping, self._offer)
        positions = list(resolver.positions)
        combination = self._rows.groupby(positions, sort=False).ngroup()
        different = self._rows.loc[~combination.duplicated(), positions]
        resolved = [resolver.resolve(cells) for cells in different.itertuples(index=False, name=None)]
        columns = {name: [getattr(choice, name) for choice in resolved] for name in Chosen.__slots__}
        of_each = {name: _objects(cells, len(resolved)).take(combination) for name, cells in columns.items()}
        return pd.DataFrame(of_each, self._rows.index)

    def _extra_cells(self) -> dict[str, Any]:
        """Return models, references and the tuples of refinements; a Problem where a cell cannot be read."""
        cells, named = ExtraCells(self._extras), self._columns.named
        nothing = pd.Series([None] * len(self._rows), self._rows.index, dtype=object)
        extras = {
            name: self._read(named[name], read) if name in named else nothing
            for name, read in (("model", cells.model), ("reference", cells.reference))
        }
        steps = [
            self._read(at, partial(cells.refinement, operation))
            for at, operation in self._columns.refinements.items()
        ]
        tuples = (
            (tuple(filter(None, row)) for row in zip(*steps, strict=True)) if steps else (() for _ in nothing)
        )
        refinements = _objects(tuples, len(nothing))
        return extras | {"refinements": pd.Series(refinements, nothing.index, dtype=object)}

    def _read(self, at: int, read: Callable[[str, str], Any]) -> pd.Series:
        return _of_each(self._rows[at], partial(read, self._header[at]))


def _problem_frame(faults: Iterable[tuple[int, str | None, Problem]]) -> pd.DataFrame:
    """Return faults, each with its row and sku, as a frame in the order of the rows; those of a row stay in theirs."""
    records = [(row, sku, *(getattr(fault, name) for name in _FAULT_FIELDS)) for row, sku, fault in faults]
    frame = pd.DataFrame(records, columns=list(PROBLEM_COLUMNS), dtype=object)
    frame["code"] = frame["code"].map(str).astype(object)
    return frame.astype({"row": "int64"}).sort_values("row", kind="stable", ignore_index=True)


# --- texts: a look at all, a close one at the few that are odd


def _is_odd(texts: pd.Series) -> pd.Series:
    """Mark the texts that need a closer look: those that are not plain words, numbers and signs of a keyboard."""
    plain_texts = [
        text.isascii()
        and text.isprintable()
        and text[:1].isalnum()
        and text[-1] != " "
        and "E+" not in text
        and not text.startswith("Err:")
        for text in _texts(texts)
    ]
    return pd.Series(np.logical_not(plain_texts), texts.index, dtype=bool)


def _of_each(texts: pd.Series, read: Callable[[Any], Any]) -> pd.Series:
    """Return what `read` makes of each text; equal texts are read once."""
    codes, different = pd.factorize(texts)
    return pd.Series(_objects(map(read, different), len(different)).take(codes), texts.index, dtype=object)


def _objects(values: Iterable[Any], count: int) -> np.ndarray[Any, np.dtype[np.object_]]:
    return np.fromiter(values, dtype=object, count=count)


def _faults_in(*columns: pd.Series) -> Iterator[tuple[int, Problem]]:
    for cells in columns:
        for row, cell in zip(cells.index.tolist(), _texts(cells), strict=True):
            if isinstance(cell, Problem):
                yield row, cell


def _listed(tuples: pd.Series) -> Iterator[tuple[int, Any]]:
    """Yield what is in the tuples of a column, with the rows."""
    for row, several in zip(tuples.index.tolist(), _texts(tuples), strict=True):
        yield from ((row, value) for value in several)


def _changed(texts: pd.Series, odd: pd.Series, read: Callable[[str], str]) -> pd.Series:
    """Return the texts with what `read` makes of the odd ones."""
    if not odd.any():
        return texts
    return texts.where(~odd, _of_each(texts[odd], read).reindex(texts.index))


def _texts(texts: pd.Series) -> list[Any]:
    """Return the values of a column, which itself is slow to iterate over."""
    return list(texts.to_numpy(dtype=object))
