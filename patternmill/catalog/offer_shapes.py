"""Reads the offer in the service's answers: pure functions on parsed JSON, which never raise.

The interface shows no shape of it, so a field may have any of a few names, compared without case, `_` and `-`. A shape
that is not read here is not guessed at: what it says is not checked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from patternmill.catalog.offer import Category, Offer, Option, described_offer
from patternmill.text import UNSAFE

Json = object
Fields = Mapping[str, Json]

#: What an answer may be wrapped in, once.
_ENVELOPES = ("data", "result", "category")
_LISTS = ("categories", "models", "items", "data", "results", "result", "records", "list")
#: The lists that may also be an object, from ID to record or name.
_MAPS = ("categories", "models")
_IDS = ("categoryid", "modelid", "id", "code", "slug", "key")
_NAMES = ("name", "title", "label", "displayname")
_OPTIONS = ("options", "optiongroups", "attributes", "parameters", "selections")
_OPTION_NAMES = ("name", "option", "key", "id", "optionid", "code", "slug")
_VALUES = ("values", "choices", "options", "allowed", "allowedvalues", "enum")
_VALUE_NAMES = ("value", "id", "valueid", "key", "code", "slug", *_NAMES)
_REQUIRED = ("required", "isrequired", "mandatory")
#: The objects of an answer that may describe its pages, besides the answer itself.
_PAGING = ("pagination", "paging", "page", "pageinfo", "meta", "links")
_CURSOR = "nextcursor"
_MORE = ("hasmore", "hasnext", "hasnextpage")
_TOTALS = ("total", "totalcount")


@dataclass(frozen=True, slots=True)
class ListPage:
    """One page of a list of categories or models."""

    categories: tuple[Category, ...]
    #: What leads to the next page; None: no further page can be asked for.
    cursor: Json
    #: Whether the answer shows that there is another page.
    has_more: bool
    #: How many the whole list has; 0 where the answer does not say so.
    total: int


def read_page(answer: Json) -> ListPage | None:
    """Return a page of `categories/list` or `models/list`, or None when its shape is not known."""
    fields = _opened(answer)
    lists = {name: value for name, value in fields.items() if isinstance(value, list) or name in _MAPS}
    records = answer if isinstance(answer, list) else _first(lists, _LISTS)
    listed = [_category(key, record) for key, record in _keyed(records)]
    categories = tuple(category for category in listed if category is not None)
    if records is None or (listed and not categories):
        return None
    levels = [fields, *(_plain(fields.get(name)) for name in _PAGING)]
    ends = any(level.get(name) is False for level in levels for name in _MORE)
    totals = [level.get(name) for level in levels for name in _TOTALS]
    return ListPage(
        categories,
        cursor=None if ends else next((level[_CURSOR] for level in levels if level.get(_CURSOR)), None),
        has_more=any(map(_shows_more, levels)),
        total=max((total for total in totals if isinstance(total, int)), default=0),
    )


def read_options(answer: Json) -> tuple[Option, ...] | None:
    """Return the options in a category's record, or None when their shape is not known."""
    holder = _first(_opened(answer), _OPTIONS)
    options = [_option(key, spec) for key, spec in _keyed(holder)]
    read = tuple(option for option in options if option is not None)
    return read if holder is not None and len(read) == len(options) else None


def offer_of(listed: Iterable[Category], details: Mapping[str, Json]) -> Offer:
    """Return the offer of a list; `details`: the answers of `categories/get` by category ID.

    A category without readable details is as the list has it.
    """
    read = ((category, read_options(details.get(category.id))) for category in listed)
    return described_offer(
        tuple(one if options is None else replace(one, options=options) for one, options in read)
    )


def _plain(record: Json) -> Fields:
    """Return the fields by plain names; of `categoryId` and `category_id` the interface's own spelling counts."""
    fields: dict[str, Json] = {}
    if isinstance(record, dict):
        for key in sorted(record, key=lambda key: "_" in key or "-" in key):
            fields.setdefault(key.replace("_", "").replace("-", "").lower(), record[key])
    return fields


def _opened(answer: Json) -> Fields:
    """Return the fields of an answer, with those of the object that it is wrapped in."""
    fields = _plain(answer)
    wrapped = (fields[name] for name in _ENVELOPES if isinstance(fields.get(name), dict))
    return {**fields, **_plain(next(wrapped, None))}


def _first(fields: Fields, names: Sequence[str]) -> list[Json] | dict[str, Json] | None:
    """Return the first of these fields that is a list or an object."""
    return next((value for name in names if isinstance(value := fields.get(name), list | dict)), None)


def _keyed(holder: list[Json] | dict[str, Json] | None) -> Iterator[tuple[str | None, Json]]:
    """Yield each record, with its key where the records are an object."""
    if isinstance(holder, dict):
        yield from holder.items()
    else:
        yield from ((None, record) for record in holder or ())


def _category(key: str | None, record: Json) -> Category | None:
    """Return the category of a record; of a text, which is its name and, without a key, its ID."""
    if isinstance(record, str):
        record = {"id": key or record, "name": record}
    fields = {"key": key, **_plain(record)} if isinstance(record, dict) else {}
    ids, names = _texts(fields, _IDS), _texts(fields, _NAMES)
    return Category(ids[0], (*names, *ids)[0], read_options(record)) if ids else None


def _option(key: str | None, spec: Json) -> Option | None:
    """Return the option of a record in a list, or of what an object has under its name: a record, or its values."""
    fields = {"values": spec} if isinstance(spec, list) else _plain(spec)
    spellings = _texts(fields, _OPTION_NAMES)
    name = key or next(iter((*spellings, *_texts(fields, _NAMES))), "")
    values = _values(fields)
    if values is None or not _is_usable(name):
        return None
    others = tuple(text for text in spellings if text != name)
    offered = tuple(dict.fromkeys(texts[0] for texts in values)) or None
    labels = tuple((label, texts[0]) for texts in values for label in texts[1:])
    return Option(name, offered, _is_required(fields), others, labels)


def _values(fields: Fields) -> list[tuple[str, ...]] | None:
    """Return each value with its labels; no values where the record has none, None where they cannot be read."""
    if fields and not any(isinstance(one, list | dict) for one in fields.values()):
        return []
    holder = _first(fields, _VALUES)
    records = [one if isinstance(one, dict) else {"value": one} for one in holder or ()]
    read = [_texts(_plain(record), _VALUE_NAMES) for record in records]
    return read if isinstance(holder, list) and read and all(read) else None


def _is_required(fields: Fields) -> bool | None:
    """Return None where the answer does not say so, or has a default for what is left out."""
    if fields.get("default") is not None:
        return None
    return next((stated for name in _REQUIRED if isinstance(stated := fields.get(name), bool)), None)


def _shows_more(fields: Fields) -> bool:
    """Return whether another page is promised, or named in a way that is not followed."""
    others = (value for name, value in fields.items() if name.startswith("next") and name != _CURSOR)
    return any(fields.get(name) is True for name in _MORE) or any(others)


def _texts(fields: Fields, names: Sequence[str]) -> tuple[str, ...]:
    """Return what these fields say, each text once."""
    return tuple(dict.fromkeys(text for name in names if (text := _text(fields.get(name)))))


def _text(value: Json) -> str | None:
    """Return a text, or a whole number as text."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        return None
    try:
        text = str(value).strip()
    except ValueError:  # a number of thousands of digits
        return None
    return text if _is_usable(text) else None


def _is_usable(text: str) -> bool:
    """Return whether a person can see and type it."""
    return bool(text.strip()) and not UNSAFE.search(text)
