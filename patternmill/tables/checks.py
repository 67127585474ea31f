"""Every fault of every row in one pass, and the rows that are fit to be bought: frames in, frames out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
from patternmill.tables.choices import ChoiceResolver, Chosen
from patternmill.tables.columns import column_letter
from patternmill.tables.extras import ExtraCells
from patternmill.tables.slips import (
    LONGEST_PLACEHOLDER,
    error_problem,
    placeholder_problem,
    shortened_number_problem,
    unfit_problem,
)
from patternmill.text import shown

UNCHECKED = "Categories and options were not checked, because no offer was read."
#: In characters; the interface names no bound.
PROMPT_LIMIT = 4000
#: The columns of the frame of rows: the fields of a Row but for its line and cells, in their order behind the sku.
ROW_COLUMNS = ("sku", *(name for name in Content.__slots__))
#: The columns of the frame of problems; `row` as a spreadsheet numbers it.
PROBLEM_COLUMNS = ("row", "sku", "column", "code", "message", "remedy", "value", "nearest", "offered")
#: What separates the cells of a text file, for people.
_SIGNS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
_REPEATED = (
    "if that is a mistake, keep one of these rows and delete the others; if you want them all, give each a sku of its"
    " own (case and spaces do not distinguish skus)"
)

#: What is wrong with rows, by their numbers; a row may have several.
Faults = Iterable[tuple[int, Problem]]


@dataclass(frozen=True)
class Checked:
    """A catalog's sheet after checking."""

    catalog: Catalog
    #: The rows that are fit, by row number: sku, prompt, category, selections, model, reference, refinements.
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
        skus, *others = (_texts(self.rows[name]) for name in ROW_COLUMNS)
        fit = {
            line: Row(*fields, line=line, sku=sku)
            for line, sku, fields in zip(
                self.rows.index.tolist(), skus, zip(*others, strict=True), strict=True
            )
        }
        problems: dict[int, list[Problem]] = {}
        for row, sku, column, code, *rest in self.problems.itertuples(index=False, name=None):
            problems.setdefault(row, []).append(Problem(column, RowCode(code), *rest).at(row, sku))
        sku_column = self.catalog.columns.header[self.catalog.columns.sku]
        lines = self.catalog.sheet.rows.index.tolist()
        return tuple([_entry(line, fit.get(line), problems.get(line, ()), sku_column) for line in lines])


def _entry(line: int, row: Row | None, problems: Iterable[Problem], sku_column: str) -> Entry:
    of_sku = (one for one in problems if one.column == sku_column)
    is_readable = row is not None or all(one.code is RowCode.DUPLICATE_SKU for one in of_sku)
    return Entry(line, row, tuple(problems), is_readable)


def recorded_rows(catalog: Catalog, entries: Sequence[Entry], extras: Extras) -> Checked:
    """Return rows that were checked before, as they were understood then."""
    fit = [entry.row for entry in entries if entry.row is not None]
    cells = [[getattr(row, name) for name in ROW_COLUMNS] for row in fit]
    rows = pd.DataFrame(cells, [row.line for row in fit], list(ROW_COLUMNS), dtype=object)
    faults = [(entry.line, problem) for entry in entries for problem in entry.problems]
    skus = {entry.line: problem.sku or "" for entry in entries for problem in entry.problems}
    return Checked(catalog, rows, _problem_frame(faults, skus), extras=extras)


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
        self._rows = catalog.sheet.rows
        cells = self._rows[self._columns.sku]
        self._odd_skus = _is_odd(cells)
        self._skus = _changed(cells, self._odd_skus, tidy)

    def checked(self) -> Checked:
        prompts = self._rows[self._columns.prompt]
        self._odd_prompts = _is_odd(prompts) | prompts.str.contains("  ", regex=False)
        prompts = _changed(prompts, self._odd_prompts, normalised)
        chosen = self._chosen()
        model, reference, refinements = self._extra_cells()
        misfits, sku_faults = dict(self._misfits(chosen)), dict(self._sku_faults())
        faults = [
            *misfits.items(),
            *sku_faults.items(),
            *self._repeated_skus(misfits, sku_faults),
            *self._prompt_faults(),
            *_listed(chosen["problems"]),
            *_problems_in(model),
            *_problems_in(reference),
            *((row, one) for row, one in _listed(refinements) if isinstance(one, Problem)),
        ]
        skus = dict(zip(self._rows.index, self._skus, strict=True)) if faults or self._sheet.unfit else {}
        problems = _problem_frame(self._without_doubles(faults, misfits), skus)
        fit = ~self._rows.index.isin(problems["row"])
        rows = pd.DataFrame(
            {
                "sku": self._skus,
                "prompt": prompts,
                "category": chosen["category"],
                "selections": chosen["selections"],
                "model": model,
                "reference": reference,
                "refinements": refinements,
                "take": None,
                "category_name": chosen["category_name"],
                "is_checked": chosen["is_checked"],
                "exact_keys": chosen["exact_keys"],
            }
        )
        rows = rows if fit.all() else rows[fit]
        return Checked(self._catalog, rows, problems, self._notes(), self._offer, self._extras)

    def _notes(self) -> tuple[str, ...]:
        read_as = None if self._sheet.is_usual else f"Read as {self._sheet.layout.text}."
        unchecked = UNCHECKED if self._offer is None else self._offer.note
        return tuple(filter(None, (read_as, *self._sheet.notes, unchecked, self._extras.note)))

    # --- cells that are no text, and rows of another shape

    def _misfits(self, chosen: pd.DataFrame) -> Iterator[tuple[int, Problem]]:
        """Yield rows with more cells than the header, and those that end before a column that they need."""
        header = self._sheet.header
        width = len(self._columns.kept) if self._columns.surplus else len(header)
        for row, cells in self._sheet.surplus.items():
            message = f"the row has {width + len(cells)} cells, but the header has {width}"
            remedy = "delete the separators at its end"
            if not all(map(is_blank, cells)):
                sign = _SIGNS.get(self._sheet.layout.delimiter or ",", "separator")
                remedy = f'quote the cell that contains the {sign} ("...", with no space before the quote)'
            if self._columns.surplus:
                column = shown(header[self._columns.surplus[0]])
                remedy = f"put what is in {column} where it belongs, and empty it there"
            yield row, Problem(None, RowCode.SURPLUS_CELLS, message, remedy)
        needed = max(self._columns.sku, self._columns.prompt, self._columns.category)
        for row, count in self._sheet.short.items():
            missing = [position for position in chosen["missing"][row] if position is not None]
            if count <= max(needed, *missing, 0):
                before = shown(header[count].strip() or column_letter(count))
                message = f"the row has {count} cells, but the header has {width}; it ends before {before}"
                yield row, Problem(None, RowCode.MISSING_CELLS, message, "write a comma for each empty cell")

    def _not_text(self) -> Iterator[tuple[int, Problem]]:
        """Yield cells of a workbook that are no text, in the columns that a catalog uses."""
        for row, position in sorted(self._sheet.unfit):
            is_sku = position == self._columns.sku
            if position in self._columns.used and (fault := self._sheet.fault(row, position, is_sku=is_sku)):
                yield row, Problem(self._sheet.header[position], RowCode.NOT_TEXT, *fault)

    def _without_doubles(self, faults: Faults, misfits: dict[int, Problem]) -> list[tuple[int, Problem]]:
        """Return the faults without those that follow from another: of a row's shape, or of a cell that is no text."""
        not_text = list(self._not_text())
        odd_cells = {(row, fault.column) for row, fault in not_text}
        by_header = {self._sheet.header[position]: name for position, name in self._columns.options.items()}
        odd_options = {
            (row, offer_key(by_header[column])) for row, column in odd_cells if column in by_header
        }
        of_row = (RowCode.SURPLUS_CELLS, RowCode.MISSING_CELLS, RowCode.DUPLICATE_SKU)
        kept = [
            (row, fault)
            for row, fault in faults
            if (row not in misfits or fault.code in of_row)
            and (row, fault.column) not in odd_cells
            and not (
                fault.code is RowCode.MISSING_OPTION and (row, offer_key(fault.value or "")) in odd_options
            )
        ]
        return [*not_text, *kept]

    # --- skus and prompts

    def _sku_faults(self) -> Faults:
        return _problems_in(_of_each(self._rows.loc[self._odd_skus, self._columns.sku], self._sku_fault))

    def _sku_fault(self, cell: str) -> Problem | None:
        column, sku = self._sheet.header[self._columns.sku], tidy(cell)
        if is_blank(sku):
            return Problem(column, RowCode.EMPTY_SKU, "the sku is empty", "write a sku of its own")
        return unfit_problem(column, cell) or shortened_number_problem(column, sku)

    def _repeated_skus(
        self, misfits: Mapping[int, Problem], unfit: Mapping[int, Problem]
    ) -> Iterator[tuple[int, Problem]]:
        """Yield every row of each sku that several rows have: which of them is meant is not known."""
        # By their hashes first: the keys of all rows would take more memory than the skus.
        hashes = pd.Series(
            [hash(sku_key(sku)) for sku in _texts(self._skus)], self._skus.index, dtype="int64"
        )
        keys = self._skus[hashes.duplicated(keep=False)].map(sku_key)
        keys = keys[keys.duplicated(keep=False) & keys.ne("")]
        column = self._sheet.header[self._columns.sku]
        for rows in keys.groupby(keys, sort=False).groups.values():
            sku = self._skus[rows[0]]
            message = f"the sku {shown(sku)} is in {rows_named(rows)}"
            problem = Problem(column, RowCode.DUPLICATE_SKU, message, _REPEATED, sku)
            for row in rows:
                if row in misfits or row not in unfit:
                    yield int(row), problem

    def _prompt_faults(self) -> Faults:
        cells = self._rows[self._columns.prompt]
        length = cells.str.len()
        suspects = cells[self._odd_prompts | length.le(LONGEST_PLACEHOLDER) | length.gt(self._prompt_limit)]
        return _problems_in(_of_each(suspects, self._prompt_fault))

    def _prompt_fault(self, cell: str) -> Problem | None:
        column, prompt = self._sheet.header[self._columns.prompt], normalised(cell)
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
        columns = {name: [getattr(one, name) for one in resolved] for name in Chosen.__slots__}
        of_each = {name: _objects(cells, len(resolved)).take(combination) for name, cells in columns.items()}
        return pd.DataFrame(of_each, self._rows.index)

    def _extra_cells(self) -> tuple[pd.Series, pd.Series, pd.Series]:
        """Return models, references and the tuples of refinements; a Problem where a cell cannot be read."""
        cells, header = ExtraCells(self._extras), self._sheet.header
        nothing = pd.Series([None] * len(self._rows), self._rows.index, dtype=object)
        model, reference = (
            _of_each(self._rows[position], partial(read, header[position]))
            if position is not None
            else nothing
            for read, position in (
                (cells.model, self._columns.named.get("model")),
                (cells.reference, self._columns.named.get("reference")),
            )
        )
        steps = [
            _of_each(self._rows[position], partial(cells.refinement, operation, header[position]))
            for position, operation in self._columns.refinements.items()
        ]
        tuples = (
            (tuple(filter(None, row)) for row in zip(*steps, strict=True)) if steps else (() for _ in nothing)
        )
        return model, reference, pd.Series(_objects(tuples, len(nothing)), nothing.index, dtype=object)


def _problem_frame(faults: Faults, skus: Mapping[int, str]) -> pd.DataFrame:
    """Return the faults as a frame in the order of the rows; those of a row stay in theirs."""
    records = [
        (
            row,
            skus[row] or None,
            p.column,
            p.code.value,
            p.message,
            p.remedy,
            p.value,
            p.suggestion,
            p.offered,
        )
        for row, p in faults
    ]
    frame = pd.DataFrame(records, columns=list(PROBLEM_COLUMNS), dtype=object)
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


def _problems_in(cells: pd.Series) -> Iterator[tuple[int, Problem]]:
    return _marked(cells, lambda cell: isinstance(cell, Problem))


def _marked(values: pd.Series, is_marked: Callable[[Any], bool]) -> Iterator[tuple[int, Any]]:
    """Yield the values that are marked, with their rows; equal values are looked at once."""
    codes, different = pd.factorize(values, use_na_sentinel=False)
    marks = np.fromiter(map(is_marked, different), dtype=bool, count=len(different))
    marked = values[marks.take(codes)]
    return zip(map(int, marked.index), marked, strict=True)


def _listed(tuples: pd.Series) -> Iterator[tuple[int, Any]]:
    """Yield what is in the tuples of a column, with the rows."""
    for row, several in zip(tuples.index, tuples.to_numpy(dtype=object), strict=True):
        for one in several:
            yield row, one


def _changed(texts: pd.Series, odd: pd.Series, read: Callable[[str], str]) -> pd.Series:
    """Return the texts with what `read` makes of the odd ones."""
    if not odd.any():
        return texts
    return texts.where(~odd, _of_each(texts[odd], read).reindex(texts.index))


def _texts(texts: pd.Series) -> list[Any]:
    """Return the values of a column, which itself is slow to iterate over."""
    return list(texts.to_numpy(dtype=object))
