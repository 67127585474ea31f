"""Every fault of every row in one pass, and the rows that are fit to be bought."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial

from patternmill.catalog.catalog_file import CatalogFile, Record
from patternmill.catalog.extras import ExtraColumns, Extras
from patternmill.catalog.normal_text import normalised
from patternmill.catalog.offer import Category, Nearest, Offer, offer_key
from patternmill.catalog.problems import (
    Problem,
    RowCode,
    error_problem,
    placeholder_problem,
    rows_named,
    shortened_number_problem,
    unfit_problem,
)
from patternmill.catalog.rows import Row, column_letter, is_blank, sku_key, tidy
from patternmill.catalog.selections import Choice, OptionColumns, offered, read_choices, resolve, unfound
from patternmill.text import shown

UNCHECKED = "Categories and options were not checked, because no offer was read."
_CACHED = 4096
_QUOTES = 'straight quotes ("..."), with no space before them'


@dataclass(frozen=True, slots=True)
class Entry:
    """One record of the file: its row, or why it is refused."""

    record: Record
    row: Row | None
    problems: tuple[Problem, ...]


@dataclass(frozen=True)
class CheckedCatalog:
    """The whole file after checking, with one entry a record, in the file's order."""

    file: CatalogFile
    entries: tuple[Entry, ...]
    #: In sentences: what could not be checked.
    notes: tuple[str, ...]
    offer: Offer | None = None
    extras: Extras = field(default_factory=Extras)

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        return tuple(entry.row for entry in self.entries if entry.row is not None)

    @cached_property
    def problems(self) -> tuple[Problem, ...]:
        return tuple(problem for entry in self.entries for problem in entry.problems)

    @property
    def accepted_count(self) -> int:
        return len(self.rows)

    @property
    def refused_count(self) -> int:
        return len(self.entries) - len(self.rows)


#: In characters; the interface names no bound.
PROMPT_LIMIT = 4000


def check_rows(
    file: CatalogFile, offer: Offer | None, *, prompt_limit: int = PROMPT_LIMIT, extras: Extras | None = None
) -> CheckedCatalog:
    """`prompt_limit` is in characters. Faults of rows are not raised."""
    extras = extras or Extras()
    checker = _RowChecker(file, offer, prompt_limit, extras)
    entries = tuple(map(checker.check, file.records))
    read_as = f"Read as {file.layout.text}." if file.layout is not None else None
    notes = (read_as, *file.notes, UNCHECKED if offer is None else offer.note, extras.note)
    return CheckedCatalog(file, entries, tuple(filter(None, notes)), offer, extras)


#: The ID of a row's category, the category where the offer is known, and what is wrong with it.
_Resolved = tuple[str, Category | None, Problem | None]
#: What rows with the same category and the same cells of options choose; the selections, and what is wrong with them.
_Chosen = tuple[list[Choice], dict[str, str], list[Problem]]


class _RowChecker:
    """Checks records one by one; equal cells are resolved once."""

    def __init__(self, file: CatalogFile, offer: Offer | None, prompt_limit: int, extras: Extras) -> None:
        self._header, self._columns, self._mapping = file.header, file.columns, file.mapping
        self._offer, self._prompt_limit = offer, prompt_limit
        self._nearest = Nearest()
        self._repeated = _repeated_skus(file)
        self._faults = file.faults
        self._extra_columns = ExtraColumns(file, extras)
        self._other_columns = OptionColumns(file)
        options = file.columns.options if file.columns.selections is None else (file.columns.selections,)
        self._choice_cells = (file.columns.category, *options)
        self._category = lru_cache(_CACHED)(self._resolved)
        self._choose = lru_cache(_CACHED)(self._chosen)

    def check(self, record: Record) -> Entry:
        sku = self._sku_of(record)
        if misfit := self._misfit(record):
            return _refused(record, sku, [misfit, *self._repeated.get(sku_key(sku), ())])
        return self._check_cells(record, sku)

    def _check_cells(self, record: Record, sku: str) -> Entry:
        cells, columns = record.cells, self._columns
        prompt = normalised(cells[columns.prompt])
        category, _, unknown = self._category(cells[columns.category])
        selections, mismatched = self._selections(cells)
        extras, unfit = self._extra_columns.read(cells)
        problems = [
            *self._sku_problems(record, sku),
            *self._prompt_problems(prompt, cells[columns.prompt]),
            *filter(None, [unknown]),
            *mismatched,
            *unfit,
        ]
        if faults := self._faults.get(record.line):
            problems = [*faults, *self._others(faults, problems)]
        if problems:
            return _refused(record, sku, problems)
        row = Row(prompt, category, selections, **extras, line=record.line, sku=sku, cells=cells)
        return Entry(record, row, ())

    def _others(self, faults: Sequence[Problem], problems: Iterable[Problem]) -> Iterator[Problem]:
        """What else is wrong with a row: what its text may be wrong in is not what a faulty cell holds."""
        columns = {fault.column for fault in faults}
        named = self._columns.options.items()
        options = {offer_key(name) for index, name in named if self._header[index] in columns}
        for problem in problems:
            is_missing = problem.code is RowCode.MISSING_OPTION
            if problem.column not in columns and not (
                is_missing and offer_key(problem.value or "") in options
            ):
                yield problem

    def _category_text(self, cell: str) -> str:
        return tidy(self._mapping.word(tidy(cell)))

    def _selections(self, cells: tuple[str, ...]) -> tuple[dict[str, str], list[Problem]]:
        """What the row chooses, and what is wrong with it."""
        texts = tuple([cells[index] for index in self._choice_cells])
        choices, selections, problems = self._choose(texts)
        misplaced = self._other_columns.misplaced(cells, self._category(texts[0])[1], choices)
        if misplaced:
            *_, problems = self._choose(texts, frozenset(name for name, _ in misplaced if name))
        return selections, [*problems, *(problem for _, problem in misplaced)]

    def _chosen(self, texts: tuple[str, ...], elsewhere: frozenset[str] = frozenset()) -> _Chosen:
        _, category, _ = self._category(texts[0])
        cells = dict(zip(self._choice_cells, texts, strict=True))
        choices, misread = read_choices(cells, self._columns, self._header, self._mapping, category)
        fill_in = partial(self._other_columns.fill_in, category)
        selections, mismatched = resolve(choices, category, self._nearest, elsewhere, fill_in=fill_in)
        if any(one.code is RowCode.MALFORMED_SELECTIONS for one in misread):
            # What the cell cannot say is not missing as well.
            mismatched = [one for one in mismatched if one.code is not RowCode.MISSING_OPTION]
        return choices, selections, [*misread, *mismatched]

    def _sku_of(self, record: Record) -> str:
        index = self._columns.sku
        return tidy(record.cells[index]) if index < len(record.cells) else ""

    def _misfit(self, record: Record) -> Problem | None:
        width, found = len(self._header), len(record.cells)
        if found > width:
            message = f"the row has {found} cells, but the header has {width}"
            remedy = "delete the separators at its end"
            if not all(map(is_blank, record.cells[width:])):
                remedy = f"put the text that holds the separator within {_QUOTES}"
            return Problem(None, RowCode.SURPLUS_CELLS, message, remedy)
        if found < width:
            first = shown(self._header[found].strip() or column_letter(found))
            message = f"the row has {found} cells, but the header has {width}; it ends before {first}"
            return Problem(None, RowCode.MISSING_CELLS, message, "write a comma for each empty cell")
        return None

    def _sku_problems(self, record: Record, sku: str) -> Sequence[Problem]:
        column = self._header[self._columns.sku]
        if is_blank(sku):
            return [Problem(column, RowCode.EMPTY_SKU, "the sku is empty", "write a sku of its own")]
        unfit = unfit_problem(column, record.cells[self._columns.sku]) or shortened_number_problem(
            column, sku
        )
        return [unfit] if unfit is not None else self._repeated.get(sku_key(sku), ())

    def _prompt_problems(self, prompt: str, cell: str) -> list[Problem]:
        column = self._header[self._columns.prompt]
        if is_blank(prompt):
            return [Problem(column, RowCode.EMPTY_PROMPT, "the prompt is empty", "describe the pattern")]
        if fault := error_problem(column, cell) or placeholder_problem(column, prompt):
            return [fault]
        if len(prompt) <= self._prompt_limit:
            return []
        message = f"the prompt has {len(prompt)} characters; {self._prompt_limit} are allowed"
        remedy = f"shorten it by {len(prompt) - self._prompt_limit}"
        return [Problem(column, RowCode.PROMPT_TOO_LONG, message, remedy)]

    def _resolved(self, cell: str) -> _Resolved:
        column, text = self._header[self._columns.category], self._category_text(cell)
        if is_blank(text):
            known = self._offer.categories if self._offer else None
            names = tuple(category.name for category in known or ())
            remedy = offered(names) if names else "write the category's name or ID"
            message = "the category is empty"
            empty = Problem(column, RowCode.EMPTY_CATEGORY, message, remedy, offered=names)
            return text, None, empty
        if unfit := unfit_problem(column, cell):
            return text, None, unfit
        if self._offer is None or self._offer.categories is None:
            return normalised(text), None, None
        found = self._offer.find(text)
        if len(found) == 1:
            return found[0].id, found[0], None
        return text, None, unfound(self._offer, column, text, "category", self._nearest)


def _refused(record: Record, sku: str, problems: Iterable[Problem]) -> Entry:
    return Entry(record, None, tuple(problem.at(record.line, sku or None) for problem in problems))


def _repeated_skus(file: CatalogFile) -> dict[str, Sequence[Problem]]:
    """Of each sku that several rows have, by its key, what they all are refused for."""
    index, rows = file.columns.sku, defaultdict[str, list[Record]](list)
    for record in file.records:
        if index < len(record.cells) and (key := sku_key(record.cells[index])):
            rows[key].append(record)
    remedy = (
        "if that is a mistake, keep one of these rows and delete the others; if you want them all, give each a sku"
        " of its own (case and spaces do not distinguish skus)"
    )
    found: dict[str, Sequence[Problem]] = {}
    for key, alike in rows.items():
        if len(alike) > 1:
            sku = tidy(alike[0].cells[index])
            message = f"the sku {shown(sku)} is in {rows_named(record.line for record in alike)}"
            found[key] = [Problem(file.header[index], RowCode.DUPLICATE_SKU, message, remedy, sku)]
    return found
