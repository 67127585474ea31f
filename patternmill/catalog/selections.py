"""The selections of a row as they are written, matched to the offer, and columns that only look like selections."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from patternmill.catalog.catalog_file import CatalogFile
from patternmill.catalog.column_mapping import ColumnMapping
from patternmill.catalog.normal_text import normalised
from patternmill.catalog.offer import Category, Nearest, Offer, Option, listed, offer_key
from patternmill.catalog.problems import Problem, RowCode, unfit_problem
from patternmill.catalog.rows import (
    ANY_OPTION,
    NOTE_PREFIX,
    OPTION_PREFIX,
    Columns,
    header_key,
    is_blank,
    tidy,
)
from patternmill.catalog.trade_words import names_option, same_word
from patternmill.text import plain, shown

#: In place of an option's name.
ANY = ANY_OPTION.removeprefix(OPTION_PREFIX)
_BETWEEN = re.compile(r"\s*[/,;|+\n]\s*")
#: What a column of selections in JSON may be called by mistake.
_NEAR_SELECTIONS = frozenset({"selection", "option", "options", "choice", "choices"})
_CALLED_OPTION = re.compile(r"\b(?:options?|opts?)\b[ :.]*", re.IGNORECASE)
_EXAMPLE = 'write it as {"size": "large", "fabric": "linen"}'


#: A choice of a row, as written: its column, the option and the value.
Choice = tuple[str, str, str]


def offered(names: Sequence[str]) -> str:
    return f"offered: {listed(names) or 'none'}"


def did_you_mean(nearest: str | None, otherwise: str) -> str:
    return f"did you mean {shown(nearest)}?" if nearest else otherwise


def unfound(offer: Offer, column: str, text: str, noun: str, nearest: Nearest) -> Problem:
    """Why a category or a model (`noun`) is none that is offered, or could be several."""
    found, known = offer.find(text), offer.categories or ()
    if found:
        ids = tuple(one.id for one in found)
        code = RowCode.AMBIGUOUS_CATEGORY if noun == "category" else RowCode.UNKNOWN_MODEL
        message = f"the {noun} {shown(text)} can be {', '.join(map(shown, ids))}"
        return Problem(column, code, message, "write the ID that is meant", text, None, ids)
    code = RowCode.UNKNOWN_CATEGORY if noun == "category" else RowCode.UNKNOWN_MODEL
    names = tuple(dict.fromkeys(one.name for one in known))
    near = nearest.find(text, tuple(dict.fromkeys((*names, *(one.id for one in known)))))
    message = f"unknown {noun} {shown(text)}; {offered(names)}"
    remedy = did_you_mean(near, f"write an offered {noun}")
    return Problem(column, code, message, remedy, text, near, names)


def read_choices(
    cells: Mapping[int, str],
    columns: Columns,
    header: Sequence[str],
    mapping: ColumnMapping,
    category: Category | None,
) -> tuple[list[Choice], list[Problem]]:
    """What the row chooses, in the words of the mapping, and what cannot be read. An empty cell chooses nothing."""
    if columns.selections is not None:
        column = header[columns.selections]
        pairs, problems = _from_json(cells[columns.selections], column)
        return [(column, name, mapping.word(value)) for name, value in pairs], problems
    read: list[Choice | Problem] = []
    for index, name in columns.options.items():
        column, cell = header[index], cells[index]
        if not cell.strip():
            continue
        if name == ANY:
            read += _of_any_option(column, cell, mapping, category)
        else:
            read.append((column, name, mapping.word(cell)))
    return (
        [one for one in read if not isinstance(one, Problem)],
        [one for one in read if isinstance(one, Problem)],
    )


def parts_of(cell: str) -> list[str]:
    """The values of a cell that holds those of several options: `50x50 / linen`."""
    return [part for part in _BETWEEN.split(cell.strip()) if part]


def _of_any_option(
    column: str, cell: str, mapping: ColumnMapping, category: Category | None
) -> list[Choice | Problem]:
    """What the cell chooses as a whole, or else each of its parts."""
    if unfit := unfit_problem(column, mapping.word(cell)):
        return [unfit]
    whole = _option_of(column, mapping.word(cell), category)
    if not isinstance(whole, Problem) or whole.code is not RowCode.UNKNOWN_VALUE:
        return [whole]
    return [_option_of(column, mapping.word(part), category) for part in parts_of(cell)]


def _option_of(column: str, value: str, category: Category | None) -> Choice | Problem:
    """The one option of the category that offers the value."""
    if category is None or category.options is None:
        message = f"the options are not known, so that {shown(value)} could be any"
        return Problem(column, RowCode.AMBIGUOUS_OPTION, message, "name the option: `option:size`", value)
    names = [one.name for one in category.options if one.values and one.find_value(tidy(value)) is not None]
    if len(names) == 1:
        return column, names[0], value
    if names:
        every = " and ".join(map(shown, names))
        message = f"{shown(value)} is offered by {every} of category {shown(category.name)}"
        remedy = f"say in the mapping which option the column is: `{OPTION_PREFIX}{names[0]}`"
        return Problem(column, RowCode.AMBIGUOUS_OPTION, message, remedy, value)
    values = tuple(dict.fromkeys(text for one in category.options for text in one.values or ()))
    what = f"no option of category {shown(category.name)} has the value {shown(value)}"
    message = f"{what}; {offered(values)}"
    return Problem(column, RowCode.UNKNOWN_VALUE, message, "write an offered value", value, None, values)


def resolve(
    choices: Iterable[Choice],
    category: Category | None,
    nearest: Nearest,
    elsewhere: Collection[str] = (),
    *,
    fill_in: Callable[[Option], str] = lambda option: f"fill in `option:{option.name}`",
) -> tuple[dict[str, str], list[Problem]]:
    """The selections in the offered spelling, sorted by name, and everything that is wrong with them.

    `elsewhere`: the names of options in another column, which is a fault of its own; `fill_in`: the remedy where
    one is missing.
    """
    selections: dict[str, str] = {}
    problems: list[Problem] = []
    for column, option, value in choices:
        unfit = unfit_problem(column, option) or unfit_problem(column, value)
        result = unfit or _matched(column, tidy(option), tidy(value), category, nearest)
        if isinstance(result, Problem):
            problems.append(result)
        elif result[0] in selections:
            message = f"option {shown(result[0])} is chosen twice"
            problems.append(Problem(column, RowCode.DUPLICATE_OPTION, message, "keep one of the two"))
        else:
            selections[result[0]] = result[1]
    return dict(sorted(selections.items())), [*problems, *_missing(choices, category, elsewhere, fill_in)]


def _from_json(cell: str, column: str) -> tuple[list[tuple[str, str]], list[Problem]]:
    try:
        value = json.loads(cell if cell.strip() else "{}", object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        reason = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
        return [], [_malformed(column, f"the selections are no JSON ({reason})")]
    if not isinstance(value, dict):
        return [], [_malformed(column, "the selections are no JSON object")]
    wrong = [
        f"the value of {shown(name)} in the selections is no text"
        if name.strip()
        else "a name in the selections is empty"
        for name, text in value.items()
        if not isinstance(text, str) or not name.strip()
    ]
    if wrong:
        return [], [_malformed(column, message) for message in wrong]
    return [(name, text) for name, text in value.items() if text.strip()], []


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    names = [name for name, _ in pairs]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ValueError(f"{shown(twice)} is named twice")
    return dict(pairs)


def _malformed(column: str, message: str) -> Problem:
    return Problem(column, RowCode.MALFORMED_SELECTIONS, message, _EXAMPLE)


def _matched(
    column: str, name: str, value: str, category: Category | None, nearest: Nearest
) -> tuple[str, str] | Problem:
    if category is None or category.options is None:
        return normalised(name), normalised(value)
    found = category.find_option(name)
    if found is None:
        names = tuple(option.name for option in category.options)
        message = f"unknown option {shown(name)} for category {shown(category.name)}; {offered(names)}"
        near = nearest.find(name, names)
        remedy = did_you_mean(near, "leave its cell empty")
        return Problem(column, RowCode.UNKNOWN_OPTION, message, remedy, name, near, names)
    spelling, option = found
    values = option.values or ()
    if (offered_value := option.find_value(value)) is not None:
        return spelling, offered_value if option.values is not None else normalised(value)
    message = f"unknown value {shown(value)} for option {shown(option.name)}; {offered(values)}"
    near = nearest.find(value, values)
    remedy = did_you_mean(near, f"write an offered {shown(option.name)}")
    return Problem(column, RowCode.UNKNOWN_VALUE, message, remedy, value, near, values)


def _missing(
    choices: Iterable[Choice],
    category: Category | None,
    elsewhere: Collection[str],
    fill_in: Callable[[Option], str],
) -> Iterator[Problem]:
    """Required options without a cell. One that was chosen wrongly is not missing as well."""
    written = {offer_key(option) for _, option, _ in choices}
    for option in (category.options if category else None) or ():
        spellings = {offer_key(name) for name in (option.name, *option.spellings)}
        if option.required and option.name not in elsewhere and not written & spellings:
            values = option.values or ()
            message = f"option {shown(option.name)} is required; {offered(values)}"
            only = values[0] if len(values) == 1 else None
            yield Problem(None, RowCode.MISSING_OPTION, message, fill_in(option), option.name, only, values)


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
