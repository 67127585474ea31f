"""What the cells of a row choose among what is offered."""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import repeat
from typing import Any, NamedTuple

from patternmill.offer import Category, Offer, Option
from patternmill.tables.cells import Fault, fault_of
from patternmill.tables.columns import Columns
from patternmill.tables.mapping import OPTION, SELECTIONS
from patternmill.text import key, shown
from patternmill.vocabulary import Kind, Likely, likely, things

#: Stands for a cell that a row does not have; no text holds it.
MISSING = "\0"
_SHOWN = 12
_AMBIGUOUS = "name the option in its own column `option:NAME`; or have what is offered named apart"


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
        #: Columns named as an option is, of which nobody said that they are remarks.
        self._alike = _named_as_options(columns, offer) if columns.unsaid else []
        #: The positions of the cells that decide.
        self.positions = (columns.used["category"], *columns.choices.values(), *self._alike)

    def choose(self, cells: Sequence[str]) -> Chosen:
        """Return what the cells at `positions` choose."""
        text = self._word(cells[0])
        category = self._category(text)
        selections: dict[str, str] = {}
        faults: list[Fault] = []
        if isinstance(category, Fault):
            faults = [category]
            if (category := self._called(category.likely)) is None:
                return Chosen(text, text, "{}", (*faults,))
        for one in self._written(cells[1:], category):
            choice = one if isinstance(one, Fault) else self._match(one, category)
            if isinstance(choice, Fault):
                faults.append(choice)
            elif choice.option in selections:
                twice = f"option {shown(choice.option)} is chosen twice"
                faults.append(Fault(choice.column, "duplicate_option", twice, "keep one of them"))
            else:
                selections[choice.option] = choice.value
        if category and self._alike:
            faults += self._hidden(category, selections, cells[1 + len(self._columns.choices) :])
        if category and not faults:
            faults += self._left_out(category, selections)
        name = (category.id, category.title) if category else (text, text)
        return Chosen(*name, json.dumps(selections, ensure_ascii=False, sort_keys=True), tuple(faults))

    def _word(self, text: str) -> str:
        return self._words.get(key(text), text.strip())

    def _category(self, text: str) -> Category | Fault | None:
        """Return the category that is meant; None where it cannot be known."""
        column, found = self._columns.title("category"), self._offer.find(text)
        if not text:
            return Fault(column, "empty_category", "the category is empty", "name an offered category")
        if fault := fault_of("word", column, text):
            return fault
        if len(found) > 1:
            message = f"{shown(text)} can be {' or '.join(shown(one.id) for one in found)}"
            return Fault(column, "ambiguous_category", message, "write the ID that is meant")
        if not found and self._offer.categories:
            return _unknown(
                column, "category", text, [one.title for one in self._offer.categories], "offered"
            )
        return found[0] if found else None

    def _called(self, meant: Likely) -> Category | None:
        """Return the category that is certainly meant by an unknown word, to find what else is wrong with the row."""
        found = self._offer.find(meant.names[0]) if meant.is_certain else ()
        return found[0] if len(found) == 1 else None

    def _written(self, cells: Sequence[str], category: Category | None) -> Iterator[_Choice | Fault]:
        """Yield each choice as it is written; an empty cell chooses nothing."""
        for (name, at), cell in zip(self._columns.choices.items(), cells, strict=False):
            column, option = self._columns.header[at], name.removeprefix(OPTION)
            if cell == MISSING:
                # An option that the category does not have is no loss.
                if name == SELECTIONS or not category or category.options is None or category.find(option):
                    yield missing_cell(column)
            elif name == SELECTIONS:
                try:
                    yield from (_Choice(column, *pair) for pair in parse_selections(cell).items())
                except ValueError as error:
                    yield Fault(
                        column, "malformed_selections", f"{shown(cell)} {error}", 'write {"option": "value"}'
                    )
            elif cell.strip():
                yield _Choice(column, option, cell)

    def _match(self, choice: _Choice, category: Category | None) -> _Choice | Fault:
        """Return the choice in the offer's spelling."""
        column, name, text = choice.column, choice.option, self._word(choice.value)
        if fault := fault_of("word", column, text) or fault_of("word", column, name.lstrip(MISSING)):
            return fault
        if category is None or category.options is None:
            return _Choice(column, name, text)
        by_value = name.startswith(MISSING)
        options = [one for one in category.options if one.values] if by_value else category.find(name)
        found = list[tuple[str, str]]()
        for one in options:
            found += zip(repeat(one.id), one.find(text), strict=False)
        if len(found) == 1 and (by_value or len(options) == 1):
            return _Choice(column, *found[0])
        if found or (len(options) > 1 and not by_value):
            pairs = found or [(one.id, text) for one in options]
            either = " or ".join(shown(": ".join(pair)) for pair in pairs)
            message = f"{shown(text)} can be {either}"
            return Fault(column, "ambiguous_option", message, _AMBIGUOUS)
        if not options:
            names = [one.id for one in category.options]
            return _unknown(column, "option", name, names, f"{category.title} has")
        offered = [value for one in options for value in one.texts]
        who = "any option has" if by_value else f"{options[0].title} has"
        return _unknown(column, "value", text, offered, who)

    def _hidden(self, category: Category, chosen: Mapping[str, str], cells: Sequence[str]) -> Iterator[Fault]:
        """Yield choices that may hide in columns which are carried only, named as options of the category."""
        for at, cell in zip(self._alike, cells, strict=True):
            title, header = self._columns.header[at], self._columns.header[at].strip()
            for option in _called(category, header) if cell.strip(f" {MISSING}") else ():
                if option.id not in chosen:
                    name = f"{OPTION}{option.id}"
                    message = f"{shown(cell)} chooses nothing, but {category.title} has that option"
                    remedy = f"name the column {shown(name)}; or `note:{header}`, if it is a remark"
                    choice = self._match(_Choice(title, option.id, cell), category)
                    wrong = [choice] if isinstance(choice, Fault) else []
                    # A column of what the category does not need may as well be a remark.
                    meant = Likely((name,), option.is_needed and all(one.likely.is_certain for one in wrong))
                    yield from (Fault(title, "option_column", message, remedy, name, "", meant), *wrong)

    def _left_out(self, category: Category, selections: Mapping[str, str]) -> Iterator[Fault]:
        for option in category.options or ():
            if option.is_needed and option.id not in selections:
                message = f"{category.title} needs the option {shown(option.title)}"
                remedy = f"choose one of {', '.join(option.texts[:_SHOWN]) or 'its values'}"
                yield Fault(self._columns.title("category"), "missing_option", message, remedy)


def _named_as_options(columns: Columns, offer: Offer) -> list[int]:
    every = offer.categories or ()
    return [at for at in columns.unsaid if any(_called(one, columns.header[at]) for one in every)]


def _called(category: Category, header: str) -> tuple[Option, ...]:
    """Return the options that a header names, in the category's words or the trade's."""
    meant, every = things(header, "option"), category.options or ()
    by_trade = (one for one in every if meant & (things(one.title, "option") | things(one.id, "option")))
    return category.find(header) or tuple(by_trade)


def missing_cell(column: str) -> Fault:
    message = f"the row ends before {shown(column)}"
    remedy = "write something there, or a separator for each empty cell (in results: delete this text)"
    return Fault(column, "missing_cells", message, remedy)


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


def _unknown(column: str, noun: Kind, text: str, offered: Sequence[str], who: str) -> Fault:
    meant = likely(text, tuple(offered), noun)
    near = meant.names[0] if meant.names else None
    message = f"unknown {noun} {shown(text)}; {who}: {', '.join(offered[:_SHOWN]) or 'none'}"
    remedy = f"did you mean {shown(near)}?" if near else f"write an offered {noun}"
    return Fault(column, f"unknown_{noun}", message, remedy, near, text, meant)
