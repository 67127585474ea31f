"""Carried columns that have the names of options."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from patternmill.catalog.catalog_file import CatalogFile
from patternmill.catalog.column_mapping import NOTE_PREFIX
from patternmill.catalog.column_words import ASIDE
from patternmill.catalog.offer import Category, Nearest, Option, offer_key
from patternmill.catalog.problems import Finding, RowCode
from patternmill.catalog.rows import OPTION_PREFIX, column_letter, header_key, is_blank, tidy
from patternmill.catalog.selections import WrittenSelection, offered
from patternmill.text import plain, shown

#: What options are often called, for where the offer is not known.
_COMMON = frozenset({"size", "color", "fabric", "material", "finish"})
#: What a column of selections in JSON may be called by mistake.
_NEAR_SELECTIONS = frozenset({"selection", "option", "choice"})
#: Cells that do not show what their column is.
ANYWHERE = frozenset({"none", "yes", "no", "true", "false", "0", "1", "x", "-", "n/a"})
_SPELLINGS = {"colour": "color", "coloring": "color", "fibre": "fiber", "grey": "gray", "centre": "center"}
_CALLED_OPTION = re.compile(r"^(options?|opts?)\b[ :.]*|[ :.]*\boptions?$")
_PLURAL = re.compile(r"(?<=sh)es$|(?<=ch)es$|(?<=x)es$|(?<=[^s])s$")


class OptionColumns:
    """The carried columns of one file, compared with the options of the rows' categories."""

    def __init__(self, file: CatalogFile, nearest: Nearest) -> None:
        self._file, self._nearest = file, nearest
        names = file.mapping.applied(file.header)
        self._carried = [index for index in file.columns.carried if not is_note(names[index])]
        self._names = {index: option_key(file.header[index]) for index in self._carried}
        self._common = [index for index, name in self._names.items() if name in _COMMON]
        self._near = [index for index, name in self._names.items() if name in _NEAR_SELECTIONS]
        #: By category ID: the columns that look like options of it, and like which.
        self._by_category: dict[str, Mapping[int, tuple[Option, ...]]] = {}

    def misplaced(
        self, cells: tuple[str, ...], category: Category | None, choices: Iterable[WrittenSelection]
    ) -> list[tuple[str | None, Finding]]:
        """Options in carried columns that the row chooses nowhere else: their names where known, and the findings."""
        if category is None or category.options is None:
            return [(None, self._unknown(index)) for index in self._common if not is_blank(cells[index])]
        columns = self._columns_of(category)
        chosen = _chosen(choices, category) if columns else frozenset()
        found: list[tuple[str | None, Finding]] = []
        for index, options in columns.items():
            option = next((option for option in options if option.name not in chosen), None)
            if option is not None and not is_blank(cells[index]):
                found.append((option.name, self._misplaced(index, cells[index], category, option)))
        for index in self._near:
            if cells[index].lstrip().startswith("{"):
                message = f"the selections in column {shown(self._file.header[index])} choose nothing"
                found.append((None, self._finding(index, message, "selections")))
        return found

    def fill_in(self, category: Category | None, option: Option) -> str:
        """How a row of the category chooses an option that it does not choose yet."""
        header = self._header_of(category, option) if category is not None else None
        if header is not None:
            return f"fill in {shown(header)}"
        if category is not None and (place := self._right_place(category, option)):
            return place
        for index, name in self._names.items():
            if category is not None and option in _named(category, name):
                header = shown(self._file.header[index])
                return f"rename the column {header} to `{OPTION_PREFIX}{plain(option.name)}`, and fill in its cell"
        return f"fill in `{OPTION_PREFIX}{plain(option.name)}`, a column that the file does not have yet"

    def _columns_of(self, category: Category) -> Mapping[int, tuple[Option, ...]]:
        if category.id not in self._by_category:
            named = {index: _named(category, name) for index, name in self._names.items()}
            self._by_category[category.id] = {index: options for index, options in named.items() if options}
        return self._by_category[category.id]

    def _misplaced(self, index: int, cell: str, category: Category, option: Option) -> Finding:
        header = self._file.header[index]
        column = shown(header) if header.strip() else column_letter(index)
        message = (
            f"{shown(cell)} in column {column} chooses nothing, but {shown(option.name)} is an option of category"
            f" {shown(category.name)}{self._unless_offered(cell, option)}"
        )
        place = self._right_place(category, option)
        name = f"{OPTION_PREFIX}{option.name}" if place is None else None
        return self._finding(index, message, name, place or "", note=option.name)

    def _unless_offered(self, cell: str, option: Option) -> str:
        """What a cell would have to be in its right place."""
        if option.find_value(tidy(cell)) is not None:
            return ""
        values = option.values or ()
        near = self._nearest.find(tidy(cell), values)
        return f", and is none of its values; {offered(values)}" + (
            f"; did you mean {shown(near)}?" if near else ""
        )

    def _unknown(self, index: int) -> Finding:
        """Of a column that has the name of a common option, where the offered options are unknown."""
        header = self._file.header[index]
        message = f"the options are not known, and column {shown(header)} chooses nothing as it is named"
        return self._finding(index, message, f"{OPTION_PREFIX}{header.strip()}")

    def _finding(
        self, index: int, message: str, name: str | None, place: str = "", *, note: str = ""
    ) -> Finding:
        """`name`: what the column should be called; None where `place` says how its cells belong elsewhere.

        `note`: what a column without a name may be called as a remark.
        """
        header = self._file.header[index]
        remedy = f"rename the column to `{plain(name)}`" if name else place
        rename = "to" if name else "rename the column to"
        remark = f"{rename} `{NOTE_PREFIX}{plain(header.strip() or note)}` if it is only a remark"
        once = "`patternmill map` asks once what it is"
        return Finding(header, RowCode.OPTION_COLUMN, message, f"{remedy}, or {remark}; {once}", header, name)

    def _right_place(self, category: Category, option: Option) -> str | None:
        """Where the row's choice belongs, in a file that has a place for it; None: in a column of its own."""
        index = self._file.columns.selections
        if index is not None:
            header = self._file.header[index]
            place = "" if header_key(header) == "selections" else f", in the column {shown(header)}"
            return f"write {shown(option.name)} into the selections{place}"
        own = self._header_of(category, option)
        return None if own is None else f"write it into the column {shown(own)}"

    def _header_of(self, category: Category, option: Option) -> str | None:
        """What the file itself calls the column of an option; a person may have confirmed it under any name."""
        for column in self._file.columns.options:
            found = category.find_option(tidy(column.name))
            if found is not None and found[1].name == option.name:
                return self._file.header[column.index]
        return None


def is_note(header: str) -> bool:
    before, colon, _ = header_key(header).partition(":")
    return bool(colon) and before.rstrip() == NOTE_PREFIX[:-1]


def _chosen(choices: Iterable[WrittenSelection], category: Category) -> frozenset[str]:
    found = (category.find_option(tidy(choice.option)) for choice in choices)
    return frozenset(option.name for _, option in filter(None, found))


def _named(category: Category, name: str) -> tuple[Option, ...]:
    """The options that this can be the name of."""
    return tuple(
        option
        for option in category.options or ()
        if name and name in map(option_key, (option.name, *option.spellings))
    )


def option_key(text: str) -> str:
    """What common names of one option share: `Colour`, `colors`, `Color (inside)`."""
    key = _CALLED_OPTION.sub("", offer_key(ASIDE.sub(" ", text))) or offer_key(text)
    words = (_PLURAL.sub("", word) if len(word) > 3 else word for word in key.split())
    return " ".join(_SPELLINGS.get(word, word) for word in words)
