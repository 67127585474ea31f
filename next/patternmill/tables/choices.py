"""What the cells of a row choose among what is offered."""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from patternmill.offer import Category, Offer, Option, word
from patternmill.tables.cells import fault_of, told
from patternmill.tables.columns import Columns
from patternmill.tables.mapping import OPTION, SELECTIONS
from patternmill.text import key, nearest, shown

#: Stands for a cell that a row does not have; no text holds it.
MISSING = "\0"
_SHOWN = 12


class Fault(NamedTuple):
    """A fault of a row; `written` is the word or header that `suggestion` may be meant by."""

    column: str | None
    code: str
    message: str
    remedy: str
    suggestion: str | None = None
    written: str = ""


class Chosen(NamedTuple):
    """What all rows with the same cells choose. `selections` is JSON."""

    category_id: str
    category: str
    selections: str
    faults: tuple[Fault, ...]


class _Choice(NamedTuple):
    column: str
    option: str
    value: str


class Chooser:
    """Finds the category, the options and their values of a row, and what is wrong with them."""

    def __init__(self, columns: Columns, offer: Offer, words: Mapping[str, str]) -> None:
        self._columns, self._offer, self._words = columns, offer, words
        options = {
            word(name)
            for one in offer.categories or ()
            for option in one.options or ()
            for name in option.names
        }
        #: Columns named as an option is, of which nobody said that they are remarks.
        self._alike = [at for at in columns.unsaid if word(columns.header[at]) in options]
        #: The positions of the cells that decide.
        self.positions = (columns.used["category"], *columns.choices.values(), *self._alike)

    def choose(self, cells: Sequence[str]) -> Chosen:
        """Return what the cells at `positions` choose."""
        faults: list[Fault] = []
        text = self._words.get(key(cells[0]), cells[0].strip())
        category = self._category(text, faults)
        if faults or (category is None and self._offer.categories):
            return Chosen(text, text, "{}", tuple(faults))
        options = cells[1 : 1 + len(self._columns.choices)]
        selections: dict[str, str] = {}
        for choice in self._written(options, category, faults):
            name, value = self._match(choice, category, faults) or ("", "")
            if name in selections:
                twice = f"option {shown(name)} is chosen twice"
                faults.append(Fault(choice.column, "duplicate_option", twice, "keep one of the two"))
            elif name:
                selections[name] = value
        if category and not faults:
            faults += self._hidden(category, selections, cells[len(cells) - len(self._alike) :])
            faults += self._left_out(category, selections, {fault.suggestion for fault in faults})
        chosen = json.dumps(dict(sorted(selections.items())), ensure_ascii=False)
        return Chosen(
            category.id if category else text, category.title if category else text, chosen, tuple(faults)
        )

    def _category(self, text: str, faults: list[Fault]) -> Category | None:
        column = self._columns.title("category")
        found = self._offer.find(text)
        if not text:
            faults.append(
                Fault(column, "empty_category", "the category is empty", "name an offered category")
            )
        elif rule := fault_of("word", text):
            faults.append(Fault(column, rule.code, told(rule, text), rule.remedy))
        elif len(found) > 1:
            message = f"{shown(text)} can be {', '.join(shown(one.id) for one in found)}"
            faults.append(Fault(column, "ambiguous_category", message, "write the ID that is meant"))
        elif not found and self._offer.categories:
            faults.append(_unknown(column, "category", text, self._offer.names, "offered"))
        return found[0] if len(found) == 1 else None

    def _written(
        self, cells: Sequence[str], category: Category | None, faults: list[Fault]
    ) -> Iterator[_Choice]:
        """Yield each choice as it is written; an empty cell chooses nothing."""
        for (name, at), cell in zip(self._columns.choices.items(), cells, strict=True):
            column, option = self._columns.header[at], name.removeprefix(OPTION)
            if cell == MISSING:
                if (
                    name == SELECTIONS
                    or category is None
                    or category.options is None
                    or category.find(option)
                ):
                    faults.append(missing_cell(column))
            elif name == SELECTIONS:
                try:
                    yield from (_Choice(column, *pair) for pair in parse_selections(cell).items())
                except ValueError as error:
                    message = f"{shown(cell)} {error}"
                    faults.append(Fault(column, "malformed_selections", message, 'write {"option": "value"}'))
            elif value := cell.strip():
                yield _Choice(column, option, value)

    def _match(
        self, choice: _Choice, category: Category | None, faults: list[Fault]
    ) -> tuple[str, str] | None:
        """Return the option and value that are meant, in the offer's spelling."""
        column, name, text = (
            choice.column,
            choice.option,
            self._words.get(key(choice.value), choice.value.strip()),
        )
        if rule := fault_of("word", text) or fault_of("word", name.lstrip(MISSING)):
            faults.append(Fault(column, rule.code, told(rule, text), rule.remedy))
        elif category is None or category.options is None:
            return name, text
        elif name.startswith(MISSING):
            return self._by_value(column, text, category.options, faults)
        elif len(options := category.find(name)) != 1:
            faults.append(_no_option(column, name, category, options))
        elif len(values := options[0].find(text)) == 1:
            return options[0].name, values[0]
        elif values:
            message = f"{shown(text)} of {shown(name)} can be {' or '.join(map(shown, values))}"
            faults.append(
                Fault(column, "ambiguous_value", message, "ask the service's people to name them apart")
            )
        else:
            faults.append(_unknown(column, "value", text, options[0].texts, f"{options[0].name} has"))
        return None

    def _by_value(
        self, column: str, text: str, options: Sequence[Option], faults: list[Fault]
    ) -> tuple[str, str] | None:
        """Return the one option that offers this value, for a column that says only that it is an option."""
        found = [(one.name, value) for one in options if one.values is not None for value in one.find(text)]
        if len(found) == 1:
            return found[0]
        if found:
            message = f"{shown(text)} can be {' or '.join(shown(name) for name, _ in found)}"
            faults.append(Fault(column, "ambiguous_option", message, "use a column `option:NAME`"))
        else:
            offered = [value for one in options for value in one.texts]
            faults.append(_unknown(column, "value", text, offered, "any option has"))
        return None

    def _hidden(
        self, category: Category, selections: Mapping[str, str], cells: Sequence[str]
    ) -> Iterator[Fault]:
        """Yield choices that may hide in columns which are carried only, named as options of the category."""
        for at, cell in zip(self._alike, cells, strict=True):
            header = self._columns.header[at].strip()
            for option in category.find(header):
                if option.name not in selections and cell.strip(f" {MISSING}"):
                    message = f"{shown(cell)} chooses nothing, but {category.title} has an option {shown(option.name)}"
                    remedy = f"name the column `{OPTION}{option.name}`, or `note:{header}` if it is a remark"
                    name = f"{OPTION}{option.name}"
                    yield Fault(self._columns.header[at], "option_column", message, remedy, name, header)

    def _left_out(
        self, category: Category, selections: Mapping[str, str], hidden: set[str | None]
    ) -> Iterator[Fault]:
        for option in category.options or ():
            needed = option.required and option.default is None and option.name not in selections
            if needed and f"{OPTION}{option.name}" not in hidden:
                message = f"{category.title} needs the option {shown(option.name)}"
                remedy = f"choose one of {', '.join(option.texts[:_SHOWN]) or 'its values'}"
                yield Fault(self._columns.title("category"), "missing_option", message, remedy)


def missing_cell(column: str) -> Fault:
    message = f"the row ends before {shown(column)}"
    return Fault(column, "missing_cells", message, "write a separator for each empty cell")


def parse_selections(text: str) -> dict[str, str]:
    """Return the options of a cell that holds a JSON object. Raises ValueError that says what is wrong."""
    try:
        chosen = json.loads(text.strip() or "{}", object_pairs_hook=_unique)
    except (json.JSONDecodeError, RecursionError):
        raise ValueError("is not JSON") from None
    if not isinstance(chosen, dict):
        raise ValueError("is not a JSON object")
    if wrong := [name for name, value in chosen.items() if not isinstance(value, str)]:
        raise ValueError(f"has a value for {shown(wrong[0])} that is no text")
    return chosen


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({key(name) for name, _ in pairs}) < len(pairs):
        raise ValueError("names an option twice")
    return dict(pairs)


def _no_option(column: str, name: str, category: Category, found: Sequence[Option]) -> Fault:
    if found:
        message = f"{shown(name)} can be {' or '.join(shown(one.name) for one in found)}"
        return Fault(column, "ambiguous_option", message, "ask the service's people to name them apart")
    return _unknown(
        column, "option", name, [one.name for one in category.options or ()], f"{category.title} has"
    )


_nearest = lru_cache(nearest)


def _unknown(column: str, noun: str, text: str, offered: Sequence[str], who: str) -> Fault:
    near = _nearest(text, tuple(offered))
    message = f"unknown {noun} {shown(text)}; {who}: {', '.join(offered[:_SHOWN]) or 'none'}"
    remedy = f"did you mean {shown(near)}?" if near else f"write an offered {noun}"
    return Fault(column, f"unknown_{noun}", message, remedy, near, text)
