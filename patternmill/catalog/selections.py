"""The selections of a row as they are written, matched to the offer."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from patternmill.catalog.column_mapping import ColumnMapping
from patternmill.catalog.normal_text import normalised
from patternmill.catalog.offer import Category, Nearest, Offer, Option, listed, offer_key
from patternmill.catalog.problems import Finding, RowCode
from patternmill.catalog.rows import ANY_OPTION, OPTION_PREFIX, Columns, tidy
from patternmill.catalog.slips import unfit_finding
from patternmill.text import shown

#: In place of an option's name.
ANY = ANY_OPTION.removeprefix(OPTION_PREFIX)
_BETWEEN = re.compile(r"\s*[/,;|+\n]\s*")
_EXAMPLE = 'write it as {"size": "large", "fabric": "linen"}'


@dataclass(frozen=True, slots=True)
class WrittenSelection:
    """One option chosen in a row, as written, and its column."""

    column: str
    option: str
    value: str


def offered(names: Sequence[str]) -> str:
    return f"offered: {listed(names) or 'none'}"


def did_you_mean(nearest: str | None, otherwise: str) -> str:
    return f"did you mean {shown(nearest)}?" if nearest else otherwise


def unfound(offer: Offer, column: str, text: str, noun: str, nearest: Nearest) -> Finding:
    """Why a category or a model (`noun`) is none that is offered, or could be several."""
    found, known = offer.find(text), offer.categories or ()
    if found:
        ids = tuple(one.id for one in found)
        code = RowCode.AMBIGUOUS_CATEGORY if noun == "category" else RowCode.UNKNOWN_MODEL
        message = f"the {noun} {shown(text)} can be {', '.join(map(shown, ids))}"
        return Finding(column, code, message, "write the ID that is meant", text, None, ids)
    code = RowCode.UNKNOWN_CATEGORY if noun == "category" else RowCode.UNKNOWN_MODEL
    names = tuple(dict.fromkeys(one.name for one in known))
    near = nearest.find(text, tuple(dict.fromkeys((*names, *(one.id for one in known)))))
    message = f"unknown {noun} {shown(text)}; {offered(names)}"
    remedy = did_you_mean(near, f"write an offered {noun}")
    return Finding(column, code, message, remedy, text, near, names)


def read_choices(
    cells: Sequence[str],
    columns: Columns,
    header: Sequence[str],
    mapping: ColumnMapping,
    category: Category | None,
) -> tuple[tuple[WrittenSelection, ...], tuple[Finding, ...]]:
    """What the row chooses, in the words of the mapping, and what cannot be read. An empty cell chooses nothing."""
    if columns.selections is not None:
        choices, findings = _from_json(cells[columns.selections], header[columns.selections])
        return tuple(replace(one, value=mapping.word(one.value)) for one in choices), findings
    chosen: list[WrittenSelection] = []
    found: list[Finding] = []
    for column in columns.options:
        cell = cells[column.index]
        if not cell.strip():
            continue
        choice = WrittenSelection(header[column.index], column.name, mapping.word(cell))
        read = [choice] if column.name != ANY else _of_any_option(choice, cell, mapping, category)
        chosen += [one for one in read if isinstance(one, WrittenSelection)]
        found += [one for one in read if isinstance(one, Finding)]
    return tuple(chosen), tuple(found)


def parts_of(cell: str) -> list[str]:
    """The values of a cell that holds those of several options: `50x50 / linen`."""
    return [part for part in _BETWEEN.split(cell.strip()) if part]


def _of_any_option(
    choice: WrittenSelection, cell: str, mapping: ColumnMapping, category: Category | None
) -> list[WrittenSelection | Finding]:
    """What the cell chooses as a whole, or else each of its parts."""
    if unfit := unfit_finding(choice.column, choice.value):
        return [unfit]
    whole = _option_of(choice, category)
    if isinstance(whole, WrittenSelection) or whole.code is not RowCode.UNKNOWN_VALUE:
        return [whole]
    return [_option_of(replace(choice, value=mapping.word(part)), category) for part in parts_of(cell)]


def _option_of(choice: WrittenSelection, category: Category | None) -> WrittenSelection | Finding:
    """The one option of the category that offers the value."""
    if category is None or category.options is None:
        message = f"the options are not known, so that {shown(choice.value)} could be any"
        remedy = "name the option: `option:size`"
        return Finding(choice.column, RowCode.AMBIGUOUS_OPTION, message, remedy, choice.value)
    options = [
        one for one in category.options if one.values and one.find_value(tidy(choice.value)) is not None
    ]
    if len(options) == 1:
        return replace(choice, option=options[0].name)
    if options:
        names = " and ".join(shown(one.name) for one in options)
        message = f"{shown(choice.value)} is offered by {names} of category {shown(category.name)}"
        remedy = f"say in the mapping which option the column is: `{OPTION_PREFIX}{options[0].name}`"
        return Finding(choice.column, RowCode.AMBIGUOUS_OPTION, message, remedy, choice.value)
    values = tuple(dict.fromkeys(value for one in category.options for value in one.values or ()))
    what = f"no option of category {shown(category.name)} has the value {shown(choice.value)}"
    message = f"{what}; {offered(values)}"
    remedy = "write an offered value"
    return Finding(choice.column, RowCode.UNKNOWN_VALUE, message, remedy, choice.value, None, values)


def resolve(
    choices: Iterable[WrittenSelection],
    category: Category | None,
    nearest: Nearest,
    elsewhere: Collection[str] = (),
    *,
    fill_in: Callable[[Option], str] = lambda option: f"fill in `option:{option.name}`",
) -> tuple[dict[str, str], tuple[Finding, ...]]:
    """The selections in the offered spelling, sorted by name, and everything that is wrong with them.

    `elsewhere`: the names of options in another column, which is a fault of its own; `fill_in`: the remedy where
    one is missing.
    """
    selections: dict[str, str] = {}
    findings: list[Finding] = []
    for choice in choices:
        unfit = unfit_finding(choice.column, choice.option) or unfit_finding(choice.column, choice.value)
        result = unfit or _matched(choice, category, nearest)
        if isinstance(result, Finding):
            findings.append(result)
        elif result[0] in selections:
            message = f"option {shown(result[0])} is chosen twice"
            findings.append(Finding(choice.column, RowCode.DUPLICATE_OPTION, message, "keep one of the two"))
        else:
            selections[result[0]] = result[1]
    return dict(sorted(selections.items())), (*findings, *_missing(choices, category, elsewhere, fill_in))


def resolved(
    offer: Offer | None, category: str, selections: Mapping[str, str]
) -> tuple[str, Mapping[str, str]] | None:
    """The ID of a category and its selections in the offered spelling; None where the offer has none, or several."""
    found = offer.find(category) if offer is not None else ()
    if len(found) != 1:
        return None
    choices = [WrittenSelection(name, name, value) for name, value in selections.items()]
    values, findings = resolve(choices, found[0], Nearest(0))
    return None if findings else (found[0].id, values)


def _from_json(cell: str, column: str) -> tuple[tuple[WrittenSelection, ...], tuple[Finding, ...]]:
    try:
        value = json.loads(cell if cell.strip() else "{}", object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        reason = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
        return (), (_malformed(column, f"the selections are no JSON ({reason})"),)
    if not isinstance(value, dict):
        return (), (_malformed(column, "the selections are no JSON object"),)
    wrong = [
        f"the value of {shown(name)} in the selections is no text"
        if name.strip()
        else "a name in the selections is empty"
        for name, text in value.items()
        if not isinstance(text, str) or not name.strip()
    ]
    if wrong:
        return (), tuple(_malformed(column, message) for message in wrong)
    return tuple(WrittenSelection(column, *pair) for pair in value.items() if pair[1].strip()), ()


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    names = [name for name, _ in pairs]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ValueError(f"{shown(twice)} is named twice")
    return dict(pairs)


def _malformed(column: str, message: str) -> Finding:
    return Finding(column, RowCode.MALFORMED_SELECTIONS, message, _EXAMPLE)


def _matched(
    choice: WrittenSelection, category: Category | None, nearest: Nearest
) -> tuple[str, str] | Finding:
    name, value = tidy(choice.option), tidy(choice.value)
    if category is None or category.options is None:
        return normalised(name), normalised(value)
    found = category.find_option(name)
    if found is None:
        names = tuple(option.name for option in category.options)
        message = f"unknown option {shown(name)} for category {shown(category.name)}; {offered(names)}"
        near = nearest.find(name, names)
        remedy = did_you_mean(near, "leave its cell empty")
        return Finding(choice.column, RowCode.UNKNOWN_OPTION, message, remedy, name, near, names)
    spelling, option = found
    offered_value = option.find_value(value)
    if offered_value is None:
        return _unknown_value(choice.column, option, value, nearest)
    return spelling, offered_value if option.values is not None else normalised(value)


def _unknown_value(column: str, option: Option, value: str, nearest: Nearest) -> Finding:
    values = option.values or ()
    message = f"unknown value {shown(value)} for option {shown(option.name)}; {offered(values)}"
    near = nearest.find(value, values)
    remedy = did_you_mean(near, f"write an offered {shown(option.name)}")
    return Finding(column, RowCode.UNKNOWN_VALUE, message, remedy, value, near, values)


def _missing(
    choices: Iterable[WrittenSelection],
    category: Category | None,
    elsewhere: Collection[str],
    fill_in: Callable[[Option], str],
) -> Iterator[Finding]:
    """Required options without a cell. One that was chosen wrongly is not missing as well."""
    written = {offer_key(choice.option) for choice in choices}
    for option in (category.options if category else None) or ():
        spellings = {offer_key(name) for name in (option.name, *option.spellings)}
        if option.required and option.name not in elsewhere and not written & spellings:
            values = option.values or ()
            message = f"option {shown(option.name)} is required; {offered(values)}"
            only = values[0] if len(values) == 1 else None
            yield Finding(None, RowCode.MISSING_OPTION, message, fill_in(option), option.name, only, values)
