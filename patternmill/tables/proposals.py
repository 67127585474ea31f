"""Proposes the lines that a sheet's mapping lacks: what each column and each unknown word probably means.

A proposal decides nothing: a person confirms it, or accepts with `--yes` those that can mean nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import pandas as pd

from patternmill.planning.offer import Category, Offer, offer_key
from patternmill.planning.problems import RowCode, rows_named
from patternmill.planning.rows import is_blank, sku_key, tidy
from patternmill.tables.checks import Checked
from patternmill.tables.choices import options_called, parts_of
from patternmill.tables.columns import (
    NEEDED,
    NOTE_PREFIX,
    OPTION_PREFIX,
    RESULT_COLUMNS,
    column_place,
    header_key,
    is_catalog_column,
    is_results_header,
    missing_columns,
)
from patternmill.tables.mapping import AS_SHOWN, NOTE, OPTION, SheetMapping, mapping_line
from patternmill.tables.sheet import Fit, Sheet
from patternmill.tables.text_encodings import likely_encodings
from patternmill.tables.trade_words import FEWEST_LETTERS, column_rank, is_alike, meant_by, name_key
from patternmill.text import plain

_MOST_ROWS = 2_000
#: The most unknown words; a sheet with more of them is wrong as a whole.
_MOST_WORDS = 500
_SEVERAL_NAMES = re.compile(r"\s*[/&+,;|・]\s*|\s+(?:und|and|et|y|e|en|o|oder|ou|or)\s+", re.IGNORECASE)


@dataclass(frozen=True)
class Question:
    """A question to a person about one line of a mapping."""

    section: str
    #: A header or a word of the sheet; or one of `sku`, `prompt` and `category`, for which the choices are headers.
    name: str
    #: The choices, each with an example where that helps.
    choices: Mapping[str, str]
    suggestion: str | None = None
    #: Whether nothing but the suggestion can be meant.
    is_certain: bool = False
    #: The places in the sheet, or what is in the column.
    about: str = ""

    def entry(self, answer: str) -> tuple[str, str, str]:
        """Return the section, the name and the meaning of the line."""
        is_looked_for = self.section == "columns" and self.name in NEEDED
        return (self.section, answer, self.name) if is_looked_for else (self.section, self.name, answer)

    @property
    def numbered(self) -> dict[str, str]:
        """Return the choices by their numbers, which begin with `#` where a choice is a number itself: `#1`."""
        sign = "#" if any(map(str.isdecimal, self.choices)) else ""
        return {f"{sign}{at}": choice for at, choice in enumerate(self.choices, 1)}

    def __str__(self) -> str:
        return f"{self.line}  # {self.about}" if self.about else self.line

    @property
    def line(self) -> str:
        """Return the proposed line, with a question mark where nothing is proposed."""
        _, name, meaning = self.entry(self.suggestion or "?")
        return mapping_line(name, meaning)


def encoding_questions(raw: bytes) -> list[Question]:
    """Ask in which encoding a text was saved, with words of it as the likely encodings read them."""
    likely = likely_encodings(raw)
    readings = {codec: _example(words) for codec, words, _ in likely}
    codec = next(iter(readings), "")
    # The likeliest is the first.
    is_certain = [are_words for _, _, are_words in likely[:2]] in ([True], [True, False])
    return [Question("reading", "encoding", readings, codec, is_certain, readings[codec])] if codec else []


def worksheet_questions(sheets: Sequence[Sheet]) -> list[Question]:
    """Ask which of several worksheets is meant, with the headers of each."""
    headers = {sheet.layout.worksheet or "": _example([*filter(None, sheet.header)], 9) for sheet in sheets}
    return [Question("reading", "worksheet", headers)] if len(sheets) > 1 else []


def number_questions(checked: Checked) -> list[Question]:
    """Ask once whether skus that are numbers are meant as the sheet shows them."""
    sheet, sku = checked.catalog.sheet, checked.catalog.columns.sku
    numbers = [text for (_, at), (_, text) in sheet.unfit.items() if at == sku and text]
    about = f"the skus are numbers: take them as shown ({_example(numbers)})"
    return [Question("reading", "sku_numbers", {AS_SHOWN: ""}, AS_SHOWN, True, about)] if numbers else []


def word_questions(checked: Checked) -> list[Question]:
    """Ask what unknown categories and values mean: the most frequent first, each once however many rows have it."""
    problems = checked.problems
    is_of_word = problems["code"].isin([RowCode.UNKNOWN_CATEGORY.value, RowCode.UNKNOWN_VALUE.value])
    unknown = problems[is_of_word & problems["offered"].map(bool).astype(bool)]
    unknown = unknown.assign(key=unknown["value"].map(lambda word: offer_key(word or "")))
    unknown = unknown[~unknown["key"].isin(set(map(offer_key, checked.catalog.mapping.values.values())))]
    counts = unknown.drop_duplicates(["key", "row"])["key"].value_counts(sort=False)
    keys = counts.sort_values(ascending=False, kind="stable").head(_MOST_WORDS).index
    groups = unknown.groupby("key", sort=False)
    return [_word_question(groups.get_group(key)) for key in keys]


def _word_question(problems: pd.DataFrame) -> Question:
    word, column = problems["value"].iloc[0] or "", problems["column"].iloc[0]
    choices = dict.fromkeys((value for offered in problems["offered"] for value in offered), "")
    meant = {meant_by(word, offered) for offered in set(problems["offered"])}
    suggestion, is_certain = meant.pop() if len(meant) == 1 else meant_by(word, tuple(choices))
    about = f"{plain(column or '')} of {rows_named(problems['row'], 3)}"
    return Question("values", word, choices, suggestion, is_certain and not meant, about)


def trade_score(mapping: SheetMapping, offer: Offer | None) -> Callable[[Sequence[str]], Fit]:
    """Return a function that tells how well a row names the columns of a catalog in the words of the trade."""
    categories = (offer.categories if offer else None) or ()

    def score(cells: Sequence[str]) -> Fit:
        keys = [header_key(name) for name in mapping.applied(cells)]
        needed = {
            column
            for column in NEEDED
            if any(column_place(key) == column or column_rank(column, key) for key in keys)
        }
        others = sum(is_catalog_column(key) or bool(_options_named(key, categories)) for key in keys)
        return len(needed) == len(NEEDED), len(needed) + others

    return score


def column_questions(sheet: Sheet, offer: Offer | None, mapping: SheetMapping) -> list[Question]:
    """Ask about the columns that nobody has confirmed, except those that choose nothing."""
    proposals = _ColumnProposals(sheet, offer, mapping)
    return [] if is_results_header(sheet.header) else list(proposals.questions())


class _ColumnProposals:
    def __init__(self, sheet: Sheet, offer: Offer | None, mapping: SheetMapping) -> None:
        self._header, self._offer, self._mapping = sheet.header, offer, mapping
        self._categories = (offer.categories if offer else None) or ()
        self._category = cache(self._find_category)
        self._rows = sheet.rows.drop(index=[*sheet.short, *sheet.surplus]).head(_MOST_ROWS)
        #: The name that the column at each position has, or would have.
        self._columns: dict[int, str] = {}
        for at, name in enumerate(map(header_key, mapping.applied(sheet.header))):
            key = header_key(sheet.header[at])
            if not key or key in mapping.targets or is_catalog_column(key) or name.startswith(NOTE_PREFIX):
                self._columns[at] = name

    def questions(self) -> Iterator[Question]:
        for at, name in self._columns.items():
            if name in RESULT_COLUMNS and self._values(at):
                yield Question("columns", self._header[at], {NOTE: ""}, NOTE, True, "the name of a result")
        missing = missing_columns(self._columns.values())
        for column in ("category", "sku", "prompt"):
            if column in missing:
                yield from self._needed(column)
        if "selections" not in self._columns.values():
            for at in self._open():
                yield from self._option(at)

    def _open(self) -> list[int]:
        return [at for at in range(len(self._header)) if at not in self._columns]

    def _values(self, at: int) -> list[str]:
        return list(dict.fromkeys(tidy(cell) for cell in self._rows[at].unique() if not is_blank(cell)))

    def _needed(self, column: str) -> Iterator[Question]:
        """Ask which column is the sku, the prompt or the category."""
        fits = [(*self._fit(column, at), self._header[at], at) for at in self._open()]
        if column != "category":
            # A column that is named like an option is neither sku nor prompt, whatever is in it.
            fits = [fit for fit in fits if fit[0] >= 1 or not _options_named(fit[2], self._categories)]
        if not fits:
            return
        fits.sort(key=lambda fit: -fit[0])
        choices = {header: _example(self._values(at)) for *_, header, at in fits}
        score, is_certain, header, at = fits[0]
        if score <= 0 or [other for other, *_ in fits].count(score) > 1:
            yield Question("columns", column, choices)
            return
        self._columns[at] = column
        yield Question("columns", column, choices, header, is_certain, choices[header])

    def _fit(self, column: str, at: int) -> tuple[float, bool]:
        """Return how well a column fits as the needed one, and whether its name and its cells leave no doubt."""
        rank, values = column_rank(column, self._header[at]), self._values(at)
        if column == "category":
            matches = sum(self._category(value) is not None for value in values)
            is_fitting = matches > 0 and matches * 2 >= len(values)
            return rank + 4 * is_fitting, is_fitting and rank > 0
        with_spaces = sum(" " in value for value in values)
        if column == "sku":
            is_unique = len(set(map(sku_key, values))) == len(self._rows) > 0
            return rank + (is_unique and (rank > 0 or not with_spaces)) / 2, rank == 2 and is_unique
        return rank + (with_spaces * 2 > len(values)) / 2, rank == 2

    def _find_category(self, cell: str) -> Category | None:
        word, names = self._mapping.word(tidy(cell)), [category.name for category in self._categories]
        matches = self._offer.find(word) if self._offer else ()
        if not matches and self._offer and (meant := meant_by(word, names))[1]:
            matches = self._offer.find(meant[0] or "")
        return matches[0] if len(matches) == 1 else None

    def _option(self, at: int) -> Iterator[Question]:
        """Ask which option a column chooses, where its name or its cells suggest that it chooses one."""
        header, cells = self._header[at], self._cells_by_category(at)
        parts = [
            (category, part)
            for category, cell in cells
            for part in ([cell] if self._options_offering(category, cell) else parts_of(cell))
        ]
        hits = [self._options_offering(category, part) for category, part in parts]
        categories = {category for category, _ in cells} or self._categories
        named = set[str]().union(*(_options_named(word, categories) for word in _SEVERAL_NAMES.split(header)))
        names = named.union(*hits)
        if len(named) == 1 and all(
            named <= {option.name for option in each.options or ()} for each in categories
        ):
            names = named
        taken = self._columns.values()
        if not named and all(OPTION_PREFIX + name in taken for name in names):
            return
        is_each = bool(hits) and all(len(offering) == 1 for offering in hits)
        is_one = len(names) == 1 and len(parts) == len(cells)
        target = OPTION_PREFIX + min(names) if is_one else OPTION
        is_taken = target != OPTION and target in taken
        if is_taken or (column_rank("sku", header) and not any(hits)):
            target = NOTE  # a shop's `Handle` is no `handles` of a bag
        self._columns[at] = target
        is_certain = target != NOTE and bool(named) and (is_each or is_one)
        every = (option.name for category in self._categories for option in category.options or ())
        options = (OPTION_PREFIX + name for name in (*sorted(named), *every))
        choices = dict.fromkeys((target, *options, OPTION, NOTE), "")
        yield Question("columns", header, choices, target, is_certain, _example([cell for _, cell in cells]))

    def _options_offering(self, category: Category, cell: str) -> set[str]:
        """Return the names of the options that offer a value, or offer what is certainly meant by it."""
        word = self._mapping.word(cell)
        return {
            option.name
            for option in category.options or ()
            if option.values is not None and (option.find_value(word) or meant_by(word, option.values)[1])
        }

    def _cells_by_category(self, at: int) -> list[tuple[Category, str]]:
        """Return the different cells of a column with the categories of their rows."""
        place = next((at for at, name in self._columns.items() if column_place(name) == "category"), None)
        if place is None:
            return []
        different = self._rows[[place, at]].drop_duplicates().itertuples(index=False, name=None)
        pairs = [(self._category(word), tidy(cell)) for word, cell in different if not is_blank(cell)]
        return [(category, cell) for category, cell in dict.fromkeys(pairs) if category and category.options]


def _options_named(header: str, categories: Iterable[Category]) -> set[str]:
    """Return the options that a header names, by the trade's words or nearly so."""
    every = list(categories)
    own = header.partition(":")[2] if header_key(header).startswith(OPTION_PREFIX) else header
    names = {option.name for category in every for option in options_called(category, own)}
    if names or len(name_key(own)) < FEWEST_LETTERS:
        return names
    return {
        option.name for category in every for option in category.options or () if is_alike(own, option.name)
    }


def _example(texts: Sequence[str], most: int = 3) -> str:
    return plain(", ".join(texts[:most]))
