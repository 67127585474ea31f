"""Reads the offer from the service's answers: pure functions on parsed JSON, which never raise.

The interface shows no shape of it, so a field may have any of a few names, compared without case, `_` and `-`. A shape
that is not read here is not guessed at: what it says is not checked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from patternmill.planning.offer import Category, Offer, Option, described_offer
from patternmill.text import UNSAFE

Fields = Mapping[str, Any]

#: The fields in one of which an answer may be wrapped, once.
_ENVELOPES = ("data", "result", "category")
_LISTS = ("categories", "models", "items", "data", "results")
_IDS = ("categoryid", "modelid", "id", "code", "slug", "key")
_NAMES = ("name", "title", "label", "displayname")
_OPTIONS = ("options", "optiongroups", "attributes", "parameters")
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
    #: The cursor that leads to the next page; None: no further page can be asked for.
    cursor: Any
    #: Whether the answer shows that there is another page.
    has_more: bool
    #: The length of the whole list; 0 where the answer does not state it.
    total: int


def read_page(answer: Any) -> ListPage | None:
    """Return a page of `categories/list` or `models/list`, or None when its shape is not known."""
    fields = _unwrapped(answer)
    records = answer if isinstance(answer, list) else _first(fields, _LISTS, list)
    if records is None:
        return None
    categories = tuple(category for record in records if (category := _category(record)) is not None)
    if records and not categories:
        return None
    for name in _PAGING:
        fields = {**_plain(fields.get(name)), **fields}
    more, following = [fields.get(name) for name in _MORE], fields.get(_CURSOR) or None
    # Another page may be named in a way that is not followed here, such as an address or a page number.
    is_named = any(value for name, value in fields.items() if name.startswith("next") and name != _CURSOR)
    return ListPage(
        categories,
        cursor=None if False in more else following,
        has_more=True in more or is_named,
        total=_first(fields, _TOTALS, int) or 0,
    )


def read_options(answer: Any) -> tuple[Option, ...] | None:
    """Return the options in a category's record, or None when their shape is not known."""
    holder = _first(_unwrapped(answer), _OPTIONS, list | dict)
    if holder is None:
        return None
    pairs = holder.items() if isinstance(holder, dict) else ((None, spec) for spec in holder)
    options: list[Option] = []
    for key, spec in pairs:
        if (option := _option(key, spec)) is None:
            return None
        options.append(option)
    return tuple(options)


def offer_of(categories: Iterable[Category], details: Mapping[str, Any]) -> Offer:
    """Return the offer of listed categories; `details`: the answers of `categories/get` by category ID.

    A category without readable details stays as the list has it.
    """
    read = ((category, read_options(details.get(category.id))) for category in categories)
    return described_offer(
        tuple(
            category if options is None else replace(category, options=options) for category, options in read
        )
    )


def _plain(record: Any) -> Fields:
    """Return the fields by plain names; of both `categoryId` and `category_id` the interface's spelling counts."""
    fields: dict[str, Any] = {}
    if isinstance(record, dict):
        for key in sorted(record, key=lambda key: "_" in key or "-" in key):
            fields.setdefault(key.replace("_", "").replace("-", "").lower(), record[key])
    return fields


def _unwrapped(answer: Any) -> Fields:
    """Return the fields of an answer, with those of the object that it is wrapped in."""
    fields = _plain(answer)
    return {**fields, **_plain(_first(fields, _ENVELOPES, dict))}


def _first(fields: Fields, names: Sequence[str], kind: Any) -> Any:
    """Return the first of these fields that is of a kind, or None."""
    for name in names:
        if isinstance(value := fields.get(name), kind):
            return value
    return None


def _category(record: Any) -> Category | None:
    """Return the category of a record, or of a text, which is its name and its ID."""
    fields = {"id": record} if isinstance(record, str) else _plain(record)
    ids, names = _texts(fields, _IDS), _texts(fields, _NAMES)
    return Category(ids[0], (*names, *ids)[0], read_options(record)) if ids else None


def _option(key: str | None, spec: Any) -> Option | None:
    """Return the option of a record in a list, or of what an object has under its name: a record, or its values."""
    fields = {"values": spec} if isinstance(spec, list) else _plain(spec)
    spellings = _texts(fields, _OPTION_NAMES)
    name = key or next(iter((*spellings, *_texts(fields, _NAMES))), "")
    values = _values(fields)
    if values is None or not _is_usable(name):
        return None
    return Option(
        name,
        values=tuple(dict.fromkeys(texts[0] for texts in values)) or None,
        required=_is_required(fields),
        spellings=tuple(text for text in spellings if text != name),
        labels=tuple((label, texts[0]) for texts in values for label in texts[1:]),
    )


def _values(fields: Fields) -> list[tuple[str, ...]] | None:
    """Return each value with its labels; no values where the record has none, None where they cannot be read."""
    if fields and not any(isinstance(value, list | dict) for value in fields.values()):
        return []
    records = _first(fields, _VALUES, list | dict)
    if not records or not isinstance(records, list):
        return None
    read = [_plain(record) if isinstance(record, dict) else {"value": record} for record in records]
    values = [_texts(record, _VALUE_NAMES) for record in read]
    return values if all(values) else None


def _is_required(fields: Fields) -> bool | None:
    """Return whether an option is required; None where the answer does not say, or has a default for it."""
    required: bool | None = _first(fields, _REQUIRED, bool)
    return required if fields.get("default") is None else None


def _texts(fields: Fields, names: Sequence[str]) -> tuple[str, ...]:
    """Return the texts of these fields, and whole numbers as texts, each once."""
    texts: dict[str, None] = {}
    for name in names:
        value = fields.get(name)
        if isinstance(value, str | int) and not isinstance(value, bool):
            with suppress(ValueError):  # a number of thousands of digits
                texts[str(value).strip()] = None
    return tuple(filter(_is_usable, texts))


def _is_usable(text: str) -> bool:
    """Return whether a person can see and type a text."""
    return bool(text.strip()) and not UNSAFE.search(text)
