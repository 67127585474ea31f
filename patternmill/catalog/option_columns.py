"""Carried columns that are called like an option of the row's category: nothing is bought of what nobody confirmed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from patternmill.catalog.catalog_file import CatalogFile
from patternmill.catalog.offer import Category, Option
from patternmill.catalog.problems import Problem, RowCode
from patternmill.catalog.rows import NOTE_PREFIX, OPTION_PREFIX, header_key, is_blank, tidy
from patternmill.catalog.selections import Choice
from patternmill.catalog.trade_words import names_option, same_word
from patternmill.text import plain, shown

#: What a column of selections in JSON may be called by mistake.
_NEAR_SELECTIONS = frozenset({"selection", "option", "options", "choice", "choices"})
_CALLED_OPTION = re.compile(r"\b(?:options?|opts?)\b[ :.]*", re.IGNORECASE)


class OptionColumns:
    """The carried columns of one file, compared with the options of the rows' categories."""

    def __init__(self, file: CatalogFile) -> None:
        self._file = file
        names = [header_key(name) for name in file.mapping.applied(file.header)]
        self._carried = [one for one in file.columns.carried if not names[one].startswith(NOTE_PREFIX)]
        self._json = [index for index in self._carried if header_key(file.header[index]) in _NEAR_SELECTIONS]
        self._common = [index for index in self._carried if names_option(file.header[index])]
        #: By category ID: the columns that are called like options of it, and like which.
        self._by_category: dict[str, Mapping[int, tuple[Option, ...]]] = {}

    def misplaced(
        self, cells: tuple[str, ...], category: Category | None, choices: Iterable[Choice]
    ) -> list[tuple[str | None, Problem]]:
        """Options in carried columns that the row chooses nowhere else: their names where known, and the problems."""
        if category is None or category.options is None:
            what = "the options are not known"
            return [
                (None, self._problem(index, cells[index], what, self._file.header[index].strip()))
                for index in self._common
                if not is_blank(cells[index])
            ]
        columns = self._columns_of(category)
        for index in self._json:
            if cells[index].lstrip().startswith("{"):
                return [(None, self._problem(index, cells[index], "it may be meant as selections", ""))]
        chosen = _chosen(choices, category) if columns else frozenset()
        found: list[tuple[str | None, Problem]] = []
        for index, options in columns.items():
            option = next((option for option in options if option.name not in chosen), None)
            if option is not None and not is_blank(cells[index]):
                what = f"{shown(option.name)} is an option of category {shown(category.name)}"
                found.append((option.name, self._problem(index, cells[index], what, option.name)))
        return found

    def fill_in(self, category: Category | None, option: Option) -> str:
        """How a row of the category chooses an option that it does not choose yet."""
        if self._file.columns.selections is not None:
            return f"write {shown(option.name)} into the selections"
        for index, name in self._file.columns.options.items() if category is not None else ():
            own = category.find_option(tidy(name)) if category is not None else None
            if own is not None and own[1].name == option.name:
                return f"fill in {shown(self._file.header[index])}"
        return f"fill in `{OPTION_PREFIX}{plain(option.name)}`, a column that the file does not have yet"

    def _columns_of(self, category: Category) -> Mapping[int, tuple[Option, ...]]:
        if category.id not in self._by_category:
            named = {index: options_called(category, self._file.header[index]) for index in self._carried}
            self._by_category[category.id] = {index: options for index, options in named.items() if options}
        return self._by_category[category.id]

    def _problem(self, index: int, cell: str, what: str, option: str) -> Problem:
        header = self._file.header[index]
        message = f"{shown(cell)} in column {shown(header)} chooses nothing, but {what}"
        name = f"{OPTION_PREFIX}{plain(option)}" if option else "selections"
        remedy = (
            f"say once what the column is with `patternmill check`, or rename it: to `{name}`, "
            f"or to `{NOTE_PREFIX}{plain(header.strip())}` if it is only a remark"
        )
        return Problem(header, RowCode.OPTION_COLUMN, message, remedy, header, name)


def options_called(category: Category, header: str) -> tuple[Option, ...]:
    """The options of a category that the trade may call this."""
    name = _CALLED_OPTION.sub("", header)
    return tuple(
        option
        for option in category.options or ()
        if any(same_word(name, own) for own in (option.name, *option.spellings))
    )


def _chosen(choices: Iterable[Choice], category: Category) -> frozenset[str]:
    found = (category.find_option(tidy(option)) for _, option, _ in choices)
    return frozenset(option.name for _, option in filter(None, found))
