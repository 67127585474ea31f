"""The selections of a row as they are written, matched to the offer."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from patternmill.catalog.column_mapping import ColumnMapping
from patternmill.catalog.normal_text import normalised
from patternmill.catalog.offer import Category, Nearest, Offer, Option, listed, offer_key
from patternmill.catalog.problems import Problem, RowCode
from patternmill.catalog.rows import ANY_OPTION, OPTION_PREFIX, Columns, tidy
from patternmill.catalog.slips import unfit_problem
from patternmill.text import shown

#: In place of an option's name.
ANY = ANY_OPTION.removeprefix(OPTION_PREFIX)
_BETWEEN = re.compile(r"\s*[/,;|+\n]\s*")
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


def resolved(
    offer: Offer | None, category: str, selections: Mapping[str, str]
) -> tuple[str, Mapping[str, str]] | None:
    """The ID of a category and its selections in the offered spelling; None where the offer has none, or several."""
    found = offer.find(category) if offer is not None else ()
    if len(found) != 1:
        return None
    choices = [(name, name, value) for name, value in selections.items()]
    values, problems = resolve(choices, found[0], Nearest(0))
    return None if problems else (found[0].id, values)


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
