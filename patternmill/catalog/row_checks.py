"""Every fault of every row in one pass, and the rows that are fit to be bought."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from patternmill.catalog.columns import column_letter, header_key
from patternmill.catalog.csv_reader import CatalogFile, Record
from patternmill.catalog.offer import Category, Nearest, Offer
from patternmill.catalog.option_columns import OptionColumns
from patternmill.catalog.problems import Finding, Problem, RowCode, shown
from patternmill.catalog.rows import Row, is_blank, sku_key, tidy
from patternmill.catalog.selections import (
    did_you_mean,
    mojibake_finding,
    offered,
    read_choices,
    resolve,
    unfit_finding,
)

UNCHECKED = "Categories and options were not checked, because no offer was read."
_MOST_LINES_NAMED = 5
_CACHED = 4096
_MISFITS = frozenset({RowCode.SURPLUS_CELLS.value, RowCode.MISSING_CELLS.value})


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
    #: What they were checked against.
    offer: Offer | None = None

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


def check_rows(file: CatalogFile, offer: Offer | None, *, prompt_limit: int) -> CheckedCatalog:
    """Check every record; `prompt_limit` is in characters. Faults of rows are not raised."""
    checker = _RowChecker(file, offer, prompt_limit)
    entries = tuple(map(checker.check, file.records))
    note = UNCHECKED if offer is None else offer.note
    return CheckedCatalog(file, entries, (note,) if note else (), offer)


def categories_written(file: CatalogFile) -> frozenset[str]:
    """The categories as the rows name them."""
    index = file.columns.category
    return frozenset(tidy(record.cells[index]) for record in file.records if index < len(record.cells))


def _error_code_column(file: CatalogFile) -> int | None:
    named = (index for index in file.columns.results if header_key(file.header[index]) == "error_code")
    return next(named, None) if file.columns.ours else None


@dataclass(frozen=True, slots=True)
class _Resolved:
    """A category cell, and what the offer has for it."""

    id: str
    category: Category | None
    finding: Finding | None


class _RowChecker:
    """Checks records one by one; equal cells are resolved once."""

    def __init__(self, file: CatalogFile, offer: Offer | None, prompt_limit: int) -> None:
        self._header, self._columns = file.header, file.columns
        self._offer, self._prompt_limit = offer, prompt_limit
        self._nearest = Nearest()
        self._lines_by_sku = _lines_by_sku(file)
        self._resolve_category = lru_cache(_CACHED)(self._resolved)
        self._error_code = _error_code_column(file)
        self._shared_texts: dict[str, str] = {}
        self._other_columns = OptionColumns(file, lambda cell: self._resolve_category(cell).category)

    def check(self, record: Record) -> Entry:
        sku = self._sku_of(record)
        misfit = self._misfit(record)
        if misfit is not None:
            return _refused(record, sku, [misfit, *self._duplicates(record, sku)])
        return self._check_cells(record, sku)

    def _check_cells(self, record: Record, sku: str) -> Entry:
        cells, columns = record.cells, self._columns
        prompt, written = tidy(cells[columns.prompt]), tidy(cells[columns.category])
        category = self._resolve_category(cells[columns.category])
        choices, misread = read_choices(cells, columns, self._header)
        misplaced = self._other_columns.misplaced(cells, category.category, choices)
        elsewhere = [name for name, _ in misplaced if name]
        selections, mismatched = resolve(choices, category.category, self._nearest, elsewhere)
        findings = [
            *self._sku_findings(record, sku),
            *self._prompt_findings(prompt, cells[columns.prompt]),
            *([category.finding] if category.finding else []),
            *misread,
            *mismatched,
            *(finding for _, finding in misplaced),
        ]
        if findings:
            return _refused(record, sku, findings)
        row = Row(
            line=record.line,
            sku=sku,
            prompt=self._shared(prompt),
            category=self._shared(written),
            category_id=category.id,
            selections=selections,
            cells=cells,
            written=_shared_if_equal({tidy(one.option): tidy(one.value) for one in choices}, selections),
            is_resolved=category.category is not None and category.category.checkable,
        )
        return Entry(record, row, ())

    def _shared(self, text: str) -> str:
        return self._shared_texts.setdefault(text, text)

    def _sku_of(self, record: Record) -> str:
        index = self._columns.sku
        return tidy(record.cells[index]) if index < len(record.cells) else ""

    def _misfit(self, record: Record) -> Finding | None:
        width, found = len(self._header), len(record.cells)
        if found > width:
            return Finding(
                None,
                RowCode.SURPLUS_CELLS,
                f"the row has {found} cells, but the header has {width}",
                'put the text that holds a comma within quotes ("...")',
            )
        if found < width:
            first = self._header[found].strip() or column_letter(found)
            return Finding(
                None,
                RowCode.MISSING_CELLS,
                f"the row has {found} cells, but the header has {width}; it ends before {shown(first)}",
                "write a comma for each empty cell",
            )
        return self._earlier_misfit(record)

    def _earlier_misfit(self, record: Record) -> Finding | None:
        """Results have as many cells in each row as the header: what an earlier run found is in the error code."""
        index = self._error_code
        code = record.cells[index].strip() if index is not None else ""
        if index is None or code not in _MISFITS:
            return None
        return Finding(
            self._header[index],
            RowCode(code),
            "the row had surplus or missing cells in an earlier run",
            f"put its cells right, then clear its {shown(self._header[index])} cell",
        )

    def _sku_findings(self, record: Record, sku: str) -> list[Finding]:
        column = self._header[self._columns.sku]
        if is_blank(sku):
            return [Finding(column, RowCode.EMPTY_SKU, "the sku is empty", "give each row a sku of its own")]
        unfit = unfit_finding(column, record.cells[self._columns.sku])
        return [*([unfit] if unfit else []), *self._duplicates(record, sku)]

    def _duplicates(self, record: Record, sku: str) -> list[Finding]:
        lines = self._lines_by_sku.get(sku_key(sku), ())
        if len(lines) < 2:
            return []
        others = [str(line) for line in lines[: _MOST_LINES_NAMED + 1] if line != record.line]
        more = len(lines) - 1 - len(others[:_MOST_LINES_NAMED])
        named = ", ".join(others[:_MOST_LINES_NAMED]) + (f" and {more} more" if more > 0 else "")
        return [
            Finding(
                self._header[self._columns.sku],
                RowCode.DUPLICATE_SKU,
                f"the sku {shown(sku)} is in row {named} too",
                "give each row a sku of its own (case and spaces do not tell skus apart)",
            )
        ]

    def _prompt_findings(self, prompt: str, cell: str) -> list[Finding]:
        column = self._header[self._columns.prompt]
        if is_blank(prompt):
            return [Finding(column, RowCode.EMPTY_PROMPT, "the prompt is empty", "describe the pattern")]
        if misread := mojibake_finding(column, cell):
            return [misread]
        if len(prompt) <= self._prompt_limit:
            return []
        return [
            Finding(
                column,
                RowCode.PROMPT_TOO_LONG,
                f"the prompt has {len(prompt)} characters; {self._prompt_limit} are allowed",
                f"shorten it by {len(prompt) - self._prompt_limit}",
            )
        ]

    def _resolved(self, cell: str) -> _Resolved:
        column, text = self._header[self._columns.category], tidy(cell)
        if is_blank(text):
            empty = Finding(
                column, RowCode.EMPTY_CATEGORY, "the category is empty", self._offered_categories()
            )
            return _Resolved(text, None, empty)
        if unfit := unfit_finding(column, cell):
            return _Resolved(text, None, unfit)
        if self._offer is None or self._offer.categories is None:
            return _Resolved(text, None, None)
        found = self._offer.find(text)
        if len(found) == 1:
            return _Resolved(found[0].id, found[0], None)
        return _Resolved(text, None, self._not_one_category(column, text, found))

    def _not_one_category(self, column: str, text: str, found: Sequence[Category]) -> Finding:
        if found:
            ids = ", ".join(shown(category.id) for category in found)
            return Finding(
                column,
                RowCode.AMBIGUOUS_CATEGORY,
                f"the category {shown(text)} can be {ids}",
                "write the ID that is meant",
            )
        if self._offer is not None and not self._offer.complete:
            return Finding(
                column,
                RowCode.UNLISTED_CATEGORY,
                f"the category {shown(text)} is not in the part of the list of categories that could be read",
                "write its ID, or check again later",
            )
        known = self._offer.categories if self._offer and self._offer.categories else ()
        names = tuple(dict.fromkeys(category.name for category in known))
        ids_too = (*names, *(category.id for category in known if category.id not in names))
        return Finding(
            column,
            RowCode.UNKNOWN_CATEGORY,
            f"unknown category {shown(text)}; {offered(names)}",
            did_you_mean(self._nearest.find(text, ids_too), "choose one of them"),
        )

    def _offered_categories(self) -> str:
        if self._offer is None or not self._offer.categories:
            return "write the category's name or ID"
        return offered(tuple(category.name for category in self._offer.categories))


def _refused(record: Record, sku: str, findings: Iterable[Finding]) -> Entry:
    return Entry(record, None, tuple(finding.at(record.line, sku or None) for finding in findings))


def _shared_if_equal(written: dict[str, str], selections: dict[str, str]) -> dict[str, str]:
    """One object for both, as in most rows they are the same."""
    return selections if written == selections else written


def _lines_by_sku(file: CatalogFile) -> dict[str, tuple[int, ...]]:
    """The rows of each sku that more than one row has."""
    index, lines = file.columns.sku, dict[str, list[int]]()
    for record in file.records:
        key = sku_key(record.cells[index]) if index < len(record.cells) else ""
        if key:
            lines.setdefault(key, []).append(record.line)
    return {key: tuple(found) for key, found in lines.items() if len(found) > 1}
