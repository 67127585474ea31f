"""Columns that hold an option of the row's category without being one: found by their name, or by their cells."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping

from patternmill.catalog.columns import column_letter, header_key
from patternmill.catalog.csv_reader import CatalogFile
from patternmill.catalog.offer import Category, Option, offer_key
from patternmill.catalog.problems import Finding, RowCode, plain, shown
from patternmill.catalog.rows import is_blank, tidy
from patternmill.catalog.selections import WrittenSelection, read_choices

NOTE_PREFIX = "note:"
#: What options are often called, for when nobody knows which there are.
_COMMON = frozenset({"size", "color", "fabric", "material", "finish"})
#: What a column of selections in JSON may be called by mistake.
_NEAR_SELECTIONS = frozenset({"selection", "option", "choice"})
#: Cells that say nothing of what their column is.
_ANYWHERE = frozenset({"none", "yes", "no", "true", "false", "0", "1", "x", "-", "n/a"})
_SPELLINGS = {"colour": "color", "coloring": "color", "fibre": "fiber", "grey": "gray", "centre": "center"}
_ASIDE = re.compile(r"\([^()]*\)|\[[^\[\]]*\]")
_CALLED_OPTION = re.compile(r"^(options?|opts?)\b[ :.]*|[ :.]*\boptions?$")
_PLURAL = re.compile(r"(?<=sh)es$|(?<=ch)es$|(?<=x)es$|(?<=[^s])s$")
#: So many different cells are more than any option has values.
_MOST_VALUES = 500

#: By category ID, and the index of the column.
Place = tuple[str, int]
Suspects = Mapping[Place, tuple[Option, ...]]


class OptionColumns:
    """The carried columns of one file, held against the options of the rows' categories."""

    def __init__(self, file: CatalogFile, category_of: Callable[[str], Category | None]) -> None:
        self._file, self._category_of = file, category_of
        self._carried = [index for index in file.columns.carried if not is_note(file.header[index])]
        self._names = {index: _name_key(file.header[index]) for index in self._carried}
        self._common = [index for index, name in self._names.items() if name in _COMMON]
        self._near = [index for index, name in self._names.items() if name in _NEAR_SELECTIONS]
        #: By category ID.
        self._suspects: dict[str, Mapping[int, tuple[Option, ...]]] = {}
        self._by_values = self._found_by_values()

    def passed_over(
        self, cells: tuple[str, ...], category: Category | None, choices: Iterable[WrittenSelection]
    ) -> list[tuple[str | None, Finding]]:
        """The options of the row that stand in other columns, and that it does not choose otherwise, by name."""
        if category is None or category.options is None:
            return [(None, self._unknown(index)) for index in self._common if not is_blank(cells[index])]
        suspects = self._suspects_of(category)
        chosen = _chosen(choices, category) if suspects else frozenset()
        found = (
            (index, _first_not(chosen, suspects[index])) for index in suspects if not is_blank(cells[index])
        )
        options = (
            (one.name, self._finding(index, cells[index], category, one)) for index, one in found if one
        )
        return [
            *options,
            *((None, self._selections(index)) for index in self._near if _is_json(cells[index])),
        ]

    def _suspects_of(self, category: Category) -> Mapping[int, tuple[Option, ...]]:
        """The columns that look like options of this category, and like which."""
        if category.id not in self._suspects:
            by_name = {index: _named(category, name) for index, name in self._names.items()}
            both = {
                index: (*by_name[index], *self._by_values.get((category.id, index), ()))
                for index in self._carried
            }
            self._suspects[category.id] = {index: options for index, options in both.items() if options}
        return self._suspects[category.id]

    def _finding(self, index: int, cell: str, category: Category, option: Option) -> Finding:
        header = self._file.header[index]
        name = shown(header) if header.strip() else column_letter(index)
        return Finding(
            header,
            RowCode.OPTION_COLUMN,
            f"{shown(cell)} in column {name} chooses nothing, but {shown(option.name)} is an option of category"
            f" {shown(category.name)}",
            f"{self._way_to_choose(category, option)}, or rename the column to"
            f" `{NOTE_PREFIX}{plain(header.strip() or option.name)}` if it is only a remark",
        )

    def _unknown(self, index: int) -> Finding:
        """Of a column that is called as options are, where nobody knows which options there are."""
        header = self._file.header[index]
        return Finding(
            header,
            RowCode.OPTION_COLUMN,
            f"what options there are is not known, and column {shown(header)} chooses nothing as it is named",
            f"rename the column to `option:{plain(header.strip())}`, or to "
            f"`{NOTE_PREFIX}{plain(header.strip())}` if it is only a remark",
        )

    def _selections(self, index: int) -> Finding:
        header = self._file.header[index]
        return Finding(
            header,
            RowCode.OPTION_COLUMN,
            f"the selections in column {shown(header)} choose nothing",
            f"rename the column to `selections`, or to `{NOTE_PREFIX}{plain(header.strip())}` if it is only a remark",
        )

    def _way_to_choose(self, category: Category, option: Option) -> str:
        if self._file.columns.selections is not None:
            return f"write {shown(option.name)} into the selections"
        for column in self._file.columns.options:
            found = category.find_option(tidy(column.name))
            if found is not None and found[1].name == option.name:
                return f"write it into the column {shown(self._file.header[column.index])}"
        return f"rename the column to `option:{plain(option.name)}`"

    def _found_by_values(self) -> Suspects:
        found = {
            place: options
            for place, cells in self._cells_by_place().items()
            if (options := _options_with(self._categories[place[0]], cells))
        }
        chosen = self._chosen_anywhere({category_id for category_id, _ in found}) if found else {}
        return {
            place: tuple(option for option in options if option.name not in chosen[place[0]])
            for place, options in found.items()
        }

    def _cells_by_place(self) -> dict[Place, set[str]]:
        """The different cells of each column in the rows of each category whose options are known."""
        self._categories: dict[str, Category] = {}
        found: dict[Place, set[str]] = {}
        for cells, category in self._rows():
            self._categories[category.id] = category
            for index in self._carried:
                values = found.setdefault((category.id, index), set())
                if len(values) <= _MOST_VALUES and not is_blank(cells[index]):
                    values.add(cells[index])
        return found

    def _chosen_anywhere(self, category_ids: set[str]) -> dict[str, frozenset[str]]:
        """The options that some row of a category chooses in their own place."""
        chosen = dict.fromkeys(category_ids, frozenset[str]())
        for cells, category in self._rows():
            if category.id in category_ids:
                choices, _ = read_choices(cells, self._file.columns, self._file.header)
                chosen[category.id] |= _chosen(choices, category)
        return chosen

    def _rows(self) -> Iterator[tuple[tuple[str, ...], Category]]:
        width, index = len(self._file.header), self._file.columns.category
        if not self._carried:
            return
        for record in self._file.records:
            if len(record.cells) == width:
                category = self._category_of(record.cells[index])
                if category is not None and category.options is not None:
                    yield record.cells, category


def is_note(header: str) -> bool:
    """Whether a column is declared to be a remark."""
    before, colon, _ = header_key(header).partition(":")
    return bool(colon) and before.rstrip() == NOTE_PREFIX[:-1]


def _options_with(category: Category, cells: set[str]) -> tuple[Option, ...]:
    """The options that offer each of these cells as a value."""
    if not cells or len(cells) > _MOST_VALUES or {offer_key(cell) for cell in cells} <= _ANYWHERE:
        return ()
    return tuple(
        option
        for option in category.options or ()
        if option.values is not None and all(option.find_value(tidy(cell)) is not None for cell in cells)
    )


def _chosen(choices: Iterable[WrittenSelection], category: Category) -> frozenset[str]:
    found = (category.find_option(tidy(choice.option)) for choice in choices)
    return frozenset(option.name for _, option in filter(None, found))


def _first_not(chosen: frozenset[str], options: Iterable[Option]) -> Option | None:
    return next((option for option in options if option.name not in chosen), None)


def _is_json(cell: str) -> bool:
    return cell.lstrip().startswith("{")


def _named(category: Category, name: str) -> tuple[Option, ...]:
    """The options that this can be the name of."""
    return tuple(
        option
        for option in category.options or ()
        if name and any(_name_key(one) == name for one in (option.name, *option.spellings))
    )


def _name_key(text: str) -> str:
    """What the names have in common that people give one option: `Colour`, `colors`, `Color (inside)`."""
    key = _CALLED_OPTION.sub("", offer_key(_ASIDE.sub(" ", text))) or offer_key(text)
    words = (_PLURAL.sub("", word) if len(word) > 3 else word for word in key.split())
    return " ".join(_SPELLINGS.get(word, word) for word in words)
