"""Matches what rows choose with the offer, resolving each combination of category and options once."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from patternmill.planning.normal_text import normalised
from patternmill.planning.offer import Category, Nearest, Offer, Option, offer_key
from patternmill.planning.problems import Problem, RowCode
from patternmill.planning.rows import is_blank, tidy
from patternmill.tables.cells import did_you_mean, names_offered, unfit_problem, unknown_name
from patternmill.tables.columns import ANY_OPTION, NOTE_PREFIX, OPTION_PREFIX, Columns, header_key
from patternmill.tables.mapping import SheetMapping
from patternmill.tables.trade_words import names_option, same_word
from patternmill.text import plain, shown

#: The word that stands in place of an option's name.
ANY = ANY_OPTION.removeprefix(OPTION_PREFIX)
_BETWEEN = re.compile(r"\s*[/,;|+\n]\s*")
#: Names that a column of selections in JSON may be given by mistake.
_NEAR_SELECTIONS = frozenset({"selection", "option", "options", "choice", "choices"})
_CALLED_OPTION = re.compile(r"\b(?:options?|opts?)\b[ :.]*", re.IGNORECASE)
_EXAMPLE = 'write it as {"size": "large", "fabric": "linen"}'


class Chosen(NamedTuple):
    """The choice of all rows that have one combination of cells."""

    #: The ID of the category, or its text where the category is not known.
    category: str
    #: Options with their values in the offered spelling, sorted by name.
    selections: Mapping[str, str]
    #: The category's name in the offer; None where the category is not known.
    category_name: str | None
    #: Whether category and options were looked up in an offer.
    is_checked: bool
    #: The keys of the selections, where folded keys would stand for two values of the offer.
    exact_keys: Mapping[str, str] | None
    problems: tuple[Problem, ...]
    #: The positions of the columns of required options that are not chosen; -1 where the sheet has no such column.
    missing: tuple[int, ...] = ()


class _Choice(NamedTuple):
    """One option and its value, as written in a column."""

    column: str
    option: str
    value: str


class ChoiceResolver:
    """Resolves the cells of one sheet that choose a category or options."""

    def __init__(self, columns: Columns, mapping: SheetMapping, offer: Offer | None) -> None:
        self._columns, self._word, self._offer = columns, mapping.word, offer
        self._nearest = Nearest()
        self._category = cache(self._find_category)
        self._lookalikes = _Lookalikes(columns, mapping, offer)
        #: The positions of the columns that decide: equal cells in them are equal choices.
        self.positions: tuple[int, ...] = (columns.category, *columns.choices, *self._lookalikes.positions)

    def resolve(self, texts: Sequence[str]) -> Chosen:
        """Return what rows with these cells, in the order of `positions`, choose."""
        cells = dict(zip(self.positions, texts, strict=True))
        text, category, unknown = self._category(cells[self._columns.category])
        written = list(self._written(cells, category, is_known=unknown is None))
        choices = [choice for choice in written if isinstance(choice, _Choice)]
        problems = [fault for fault in written if isinstance(fault, Problem)]
        # A cell that cannot be read is one fault; its options are not reported as missing too.
        is_malformed = any(problem.code is RowCode.MALFORMED_SELECTIONS for problem in problems)
        selections, mismatches = self._selections(choices, category)
        are_lookalikes = unknown is None and bool(self._lookalikes.positions)
        misplaced = self._lookalikes.misplaced(cells, category, choices) if are_lookalikes else []
        elsewhere = {option for option, _ in misplaced}
        missing = [] if is_malformed else list(self._missing(choices, category, elsewhere))
        of_others = (problem for _, problem in (*missing, *misplaced))
        problems = [*([unknown] if unknown else []), *problems, *mismatches, *of_others]
        return Chosen(
            text,
            selections,
            category.name if category is not None else None,
            category is not None and category.options is not None,
            category.exact_keys(selections) if category is not None and not problems else None,
            tuple(problems),
            tuple(position for position, _ in missing),
        )

    def _find_category(self, cell: str) -> tuple[str, Category | None, Problem | None]:
        """Return the ID or the text of a category, the category where it is offered, and what is wrong with it."""
        column = self._columns.header[self._columns.category]
        text = tidy(self._word(tidy(cell)))
        offered = self._offer.categories if self._offer else None
        if is_blank(text):
            names = tuple(category.name for category in offered or ())
            remedy = names_offered(names) if names else "write the category's name or ID"
            empty = Problem(column, RowCode.EMPTY_CATEGORY, "the category is empty", remedy, offered=names)
            return text, None, empty
        if unfit := unfit_problem(column, cell):
            return text, None, unfit
        if self._offer is None or offered is None:
            return normalised(text), None, None
        matches = self._offer.find(text)
        if len(matches) == 1:
            return matches[0].id, matches[0], None
        return text, None, unknown_name(self._offer, column, text, "category", self._nearest)

    def _written(
        self, cells: Mapping[int, str], category: Category | None, *, is_known: bool
    ) -> Iterator[_Choice | Problem]:
        """Yield what is chosen, in the words of the mapping, and what cannot be read. Empty cells choose nothing."""
        if (position := self._columns.named.get("selections")) is not None:
            column = self._columns.header[position]
            try:
                yield from (_Choice(column, *pair) for pair in _read_json(cells[position], self._word))
            except ValueError as error:
                yield from (
                    Problem(column, RowCode.MALFORMED_SELECTIONS, message, _EXAMPLE) for message in error.args
                )
            return
        for position, name in self._columns.options.items():
            column, value = self._columns.header[position], self._word(cells[position])
            if not cells[position].strip():
                continue
            if name != ANY:
                yield _Choice(column, name, value)
            elif unfit := unfit_problem(column, value):
                yield unfit
            elif is_known:
                # Which option is meant can only be told once the category is known.
                whole = _option_of(column, value, category)
                is_whole = isinstance(whole, _Choice) or whole.code is not RowCode.UNKNOWN_VALUE
                parts = () if is_whole else parts_of(cells[position])
                yield from (_option_of(column, self._word(part), category) for part in parts)
                yield from (whole,) if is_whole else ()

    def _selections(
        self, choices: Iterable[_Choice], category: Category | None
    ) -> tuple[dict[str, str], list[Problem]]:
        selections: dict[str, str] = {}
        problems: list[Problem] = []
        for choice in choices:
            unfit = unfit_problem(choice.column, choice.option) or unfit_problem(choice.column, choice.value)
            match = unfit or self._match(choice.column, tidy(choice.option), tidy(choice.value), category)
            if isinstance(match, Problem):
                problems.append(match)
            elif match[0] in selections:
                twice = f"option {shown(match[0])} is chosen twice"
                problems.append(
                    Problem(choice.column, RowCode.DUPLICATE_OPTION, twice, "keep one of the two")
                )
            else:
                selections[match[0]] = match[1]
        return dict(sorted(selections.items())), problems

    def _match(
        self, column: str, name: str, value: str, category: Category | None
    ) -> tuple[str, str] | Problem:
        """Return the option and the value in the offered spelling, or what is wrong with them."""
        if category is None or category.options is None:
            return normalised(name), normalised(value)
        match = category.find_option(name)
        if match is None:
            names = tuple(option.name for option in category.options)
            what = f"unknown option {shown(name)} for category {shown(category.name)}"
            return self._unknown(column, RowCode.UNKNOWN_OPTION, what, name, names, "leave its cell empty")
        spelling, option = match
        if (offered := option.find_value(value)) is not None:
            return spelling, offered if option.values is not None else normalised(value)
        what = f"unknown value {shown(value)} for option {shown(option.name)}"
        return self._unknown(
            column, RowCode.UNKNOWN_VALUE, what, value, option.values or (), "use one of these"
        )

    def _unknown(
        self, column: str, code: RowCode, what: str, word: str, offered: tuple[str, ...], otherwise: str
    ) -> Problem:
        nearest = self._nearest.find(word, offered)
        message, remedy = f"{what}; {names_offered(offered)}", did_you_mean(nearest, otherwise)
        return Problem(column, code, message, remedy, word, nearest, offered)

    def _missing(
        self, choices: Iterable[_Choice], category: Category | None, elsewhere: Collection[str | None]
    ) -> Iterator[tuple[int, Problem]]:
        """Yield required options without a cell, and their columns. One that was chosen wrongly is not missing."""
        if category is None:
            return
        written = {offer_key(choice.option) for choice in choices}
        for option in category.options or ():
            spellings = {offer_key(name) for name in (option.name, *option.spellings)}
            if not option.required or option.name in elsewhere or written & spellings:
                continue
            position, remedy = self._place_of(category, option)
            values = option.values or ()
            message = f"option {shown(option.name)} is required; {names_offered(values)}"
            only = values[0] if len(values) == 1 else None
            yield position, Problem(None, RowCode.MISSING_OPTION, message, remedy, option.name, only, values)

    def _place_of(self, category: Category, option: Option) -> tuple[int, str]:
        """Return the column in which a row of the category chooses the option, and what to write there."""
        if (position := self._columns.named.get("selections")) is not None:
            return position, f"write {shown(option.name)} into the selections"
        for position, name in self._columns.options.items():
            match = category.find_option(tidy(name))
            if match is not None and match[1].name == option.name:
                return position, f"fill in {shown(self._columns.header[position])}"
        return -1, f"fill in `{OPTION_PREFIX}{plain(option.name)}`, a column that the file does not have yet"


class _Lookalikes:
    """The carried columns that are named like options and would be ignored silently."""

    def __init__(self, columns: Columns, mapping: SheetMapping, offer: Offer | None) -> None:
        self._header = columns.header
        names = [header_key(name) for name in mapping.applied(columns.header)]
        carried = [at for at in columns.carried if not names[at].startswith(NOTE_PREFIX)]
        self._json = [at for at in carried if header_key(columns.header[at]) in _NEAR_SELECTIONS]
        self._common = [at for at in carried if names_option(columns.header[at])]
        offered = (offer.categories if offer and carried else None) or ()
        #: For each category ID, the columns that are named like options of it, with those options.
        self._by_category = {
            category.id: {
                at: options for at in carried if (options := options_called(category, columns.header[at]))
            }
            for category in offered
        }
        is_blind = not offered or any(category.options is None for category in offered)
        positions = {*self._json, *(self._common if is_blind else ())}
        self.positions = tuple(sorted(positions.union(*self._by_category.values())))

    def misplaced(
        self, cells: Mapping[int, str], category: Category | None, choices: Iterable[_Choice]
    ) -> list[tuple[str | None, Problem]]:
        """Return options in carried columns that the row chooses nowhere else: their names if known, and problems."""
        if category is None or category.options is None:
            what = "the options are not known"
            filled = (at for at in self._common if not is_blank(cells[at]))
            return [(None, self._problem(at, cells[at], what, self._header[at].strip())) for at in filled]
        for at in self._json:
            if cells[at].lstrip().startswith("{"):
                return [(None, self._problem(at, cells[at], "it may be meant as selections", ""))]
        matches = (category.find_option(tidy(choice.option)) for choice in choices)
        chosen = {option.name for _, option in filter(None, matches)}
        misplaced: list[tuple[str | None, Problem]] = []
        for at, options in self._by_category[category.id].items():
            name = next((option.name for option in options if option.name not in chosen), None)
            if name is not None and not is_blank(cells[at]):
                what = f"{shown(name)} is an option of category {shown(category.name)}"
                misplaced.append((name, self._problem(at, cells[at], what, name)))
        return misplaced

    def _problem(self, position: int, cell: str, what: str, option: str) -> Problem:
        header = self._header[position]
        message = f"{shown(cell)} in column {shown(header)} chooses nothing, but {what}"
        name = f"{OPTION_PREFIX}{plain(option)}" if option else "selections"
        remedy = (
            f"say once what the column is with `patternmill check`, or rename it: to `{name}`, "
            f"or to `{NOTE_PREFIX}{plain(header.strip())}` if it is only a remark"
        )
        return Problem(header, RowCode.OPTION_COLUMN, message, remedy, header, name)


def parts_of(cell: str) -> list[str]:
    """Return the values of a cell that holds values of several options: `50x50 / linen`."""
    return [part for part in _BETWEEN.split(cell.strip()) if part]


def options_called(category: Category, header: str) -> tuple[Option, ...]:
    """Return the options of a category that the trade may call by this name."""
    name = _CALLED_OPTION.sub("", header)
    return tuple(
        option
        for option in category.options or ()
        if any(same_word(name, spelling) for spelling in (option.name, *option.spellings))
    )


def _option_of(column: str, value: str, category: Category | None) -> _Choice | Problem:
    """Return the choice of the only option of the category that offers the value, or why there is none."""
    if category is None or category.options is None:
        message = f"the options are not known, so that {shown(value)} could be any"
        return Problem(column, RowCode.AMBIGUOUS_OPTION, message, "name the option: `option:size`", value)
    options = [option for option in category.options if option.values]
    names = [option.name for option in options if option.find_value(tidy(value)) is not None]
    if len(names) == 1:
        return _Choice(column, names[0], value)
    if names:
        every = " and ".join(map(shown, names))
        message = f"{shown(value)} is offered by {every} of category {shown(category.name)}"
        remedy = f"say in the mapping which option the column is: `{OPTION_PREFIX}{names[0]}`"
        return Problem(column, RowCode.AMBIGUOUS_OPTION, message, remedy, value)
    values = tuple(dict.fromkeys(text for option in options for text in option.values or ()))
    what = f"no option of category {shown(category.name)} has the value {shown(value)}"
    message = f"{what}; {names_offered(values)}"
    return Problem(column, RowCode.UNKNOWN_VALUE, message, "use one of these", value, None, values)


def _read_json(cell: str, word: Callable[[str], str]) -> list[tuple[str, str]]:
    """Return the pairs of an object of texts. Raises ValueError with all that is wrong with it."""
    try:
        value = json.loads(cell if cell.strip() else "{}", object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        reason = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
        raise ValueError(f"the selections are no JSON ({reason})") from None
    if not isinstance(value, dict):
        raise ValueError("the selections are no JSON object")
    wrong = [
        f"the value of {shown(name)} in the selections is no text"
        if name.strip()
        else "a name in the selections is empty"
        for name, text in value.items()
        if not isinstance(text, str) or not name.strip()
    ]
    if wrong:
        raise ValueError(*wrong)
    return [(name, word(text)) for name, text in value.items() if text.strip()]


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    names = [name for name, _ in pairs]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ValueError(f"{shown(twice)} is named twice")
    return dict(pairs)
