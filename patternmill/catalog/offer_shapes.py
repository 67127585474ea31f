"""The offer in the service's answers, in any plausible shape; unknown shapes are not guessed at.

Pure functions on parsed JSON. What is not recognised never raises. Names are compared without case, `_` and `-`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from patternmill.catalog.offer import (
    IN_PART,
    UNREADABLE_OFFER,
    Category,
    Offer,
    Option,
    described_offer,
    offer_key,
)
from patternmill.catalog.offer_pages import (
    PAGING,
    Fields,
    Json,
    PageStep,
    next_steps,
    plain_name,
)
from patternmill.text import UNSAFE

_LISTS = ("categories", "items", "data", "results", "result", "records", "list", "values", "edges", "models")
_WRAPPERS = ("category", "data", "result", "item", "record", "node", "model")
_NOT_RECORDS = frozenset({"error", "errors", "warnings", *PAGING})
_NAMES = ("name", "title", "label", "displayname")
_CATEGORY_IDS = ("categoryid", "id", "slug", "key", "code", "modelid", "model")
_OPTION_HOLDERS = (
    *("options", "optiongroups", "optiontypes", "selections", "selectionoptions", "selectionschema"),
    *("selectionsschema", "optionsschema", "attributes", "parameters", "schema", "properties"),
)
_OPTION_SPELLINGS = ("name", "option", "key", "id", "optionid", "code", "slug")
_VALUE_HOLDERS = ("values", "choices", "options", "allowed", "allowedvalues", "enum", "oneof")
_VALUE_NAMES = ("value", "const", "id", "valueid", "key", "code", "slug", *_NAMES)
_REQUIRED = ("required", "isrequired", "mandatory")
_DEEPEST = 3
#: A record, with its key where the records are a map.
Listed = tuple[str | None, Json]


@dataclass(frozen=True, slots=True)
class CategoryList:
    """The categories listed on the pages that were read; `complete` is False when there may be more."""

    categories: tuple[Category, ...]
    complete: bool
    #: Different records, and those that cannot be read.
    records: int = 0
    #: Records on the last page.
    last_page: int = 0
    pages: int = 1
    #: The requests that may get the next page, where the last one shows that it exists.
    steps: tuple[PageStep, ...] = ()


def read_category_list(
    answer: Json, before: CategoryList | None = None, sent: frozenset[str] = frozenset()
) -> CategoryList | None:
    """The answer of `categories/list`, or None when its shape is not known.

    `before`: the list up to the page before this one. `sent`: the values that were sent to get this one.
    """
    found = _find_records(answer, _DEEPEST)
    read = [_listed(key, record) for key, record in found or ()]
    if found is None or (read and not any(read)):
        return None
    before = before or CategoryList((), complete=True, pages=0)
    unread = before.records - len(before.categories) + read.count(None)
    categories = {category.id: category for category in before.categories}
    for category in filter(None, read):
        categories.setdefault(category.id, category)
    ordered = tuple(categories.values())
    last_id = ordered[-1].id if ordered else None
    pages, records = before.pages + 1, len(ordered) + unread
    steps = tuple(next_steps(answer, _LISTS, pages=pages, records=records, last_id=last_id, sent=sent))
    return CategoryList(ordered, not unread and not steps, records, len(read), pages, steps)


def read_models(answer: Json) -> Offer | None:
    """The answer of `models/list` as an offer without options, or None when its shape is not known."""
    found = read_category_list(answer)
    if found is None or not found.categories:
        return None
    return Offer(found.categories, note=None, complete=found.complete)


def read_category(answer: Json, listed: Category) -> Category:
    """The listed category with the options of its `categories/get` answer, where they can be read."""
    options = read_options(answer)
    return listed if options is None else replace(listed, options=options)


def read_options(answer: Json, depth: int = _DEEPEST) -> tuple[Option, ...] | None:
    """The options in a category's record, or None when their shape is not known."""
    for record in _records_in(answer, depth):
        holder = _first_holder(record, _OPTION_HOLDERS)
        if holder is not None:
            return _read_options(holder, _names_in(record.get("required")))
    return None


def read_unlisted_category(answer: Json, text: str) -> Category | None:
    """The category that `categories/get` has under this ID, though the list does not have it; None otherwise.

    A record with another ID counts only when that is the same in another spelling, or has this name.
    """
    options = read_options(answer)
    records = (one for one in _records_in(answer, _DEEPEST) if any(name in one for name in _CATEGORY_IDS))
    fields: Fields = next(records, {})
    if (not fields and options is None) or not _is_usable(text):
        return None
    ids = _texts(fields, _CATEGORY_IDS)
    name = next(iter(_texts(fields, _NAMES)), text)
    if text in ids or (not ids and options is not None):
        return Category(text, name, options)
    alike = [found for found in ids if offer_key(text) in {offer_key(found), offer_key(name)}]
    return Category(alike[0], name, options) if alike else None


def offer_of(found: CategoryList | None, details: Mapping[str, Json]) -> Offer:
    """The offer from a list and the answers of `categories/get` by category ID; what has none is as the list has it."""
    if found is None:
        return UNREADABLE_OFFER
    categories = tuple(read_category(details.get(one.id), one) for one in found.categories)
    return described_offer(categories, complete=found.complete, notes=() if found.complete else (IN_PART,))


def _plain(record: Mapping[str, Json]) -> Fields:
    """By plain names; of `categoryId` and `category_id` the interface's own spelling counts."""
    fields: dict[str, Json] = {}
    for key in sorted(record, key=lambda key: "_" in key or "-" in key):
        fields.setdefault(plain_name(key), record[key])
    return fields


def _records_in(answer: Json, depth: int) -> Iterator[Fields]:
    """The answer, and the records that it wraps, by plain names."""
    if isinstance(answer, dict) and depth:
        fields = _plain(answer)
        yield fields
        for name in _WRAPPERS:
            yield from _records_in(fields.get(name), depth - 1)


def _find_records(answer: Json, depth: int, *, anywhere: bool = True) -> list[Listed] | None:
    """Every record: under a usual name, or else `anywhere`, where each one has an ID and a name."""
    if isinstance(answer, list):
        return [(None, record) for record in answer]
    if not isinstance(answer, dict) or depth == 0:
        return None
    fields = _plain(answer)
    usual = _first_holder(fields, _LISTS)
    if isinstance(usual, list | dict):
        inner = _find_records(usual, depth - 1, anywhere=False)
        return inner if inner is not None else _mapped(usual)
    if answer and all(key not in _NOT_RECORDS and _has(one, _NAMES) for key, one in answer.items()):
        return list(answer.items())
    if not anywhere or _is_category(answer):
        return None
    aside = {*_NOT_RECORDS, *_OPTION_HOLDERS}
    others = (_find_records(one, depth - 1) for key, one in fields.items() if key not in aside)
    return next((found for found in others if found and all(_is_category(one) for _, one in found)), None)


def _mapped(records: Json) -> list[Listed] | None:
    """A map from ID to record or name."""
    if not isinstance(records, dict) or not all(isinstance(one, dict | str) for one in records.values()):
        return None
    return list(records.items())


def _has(record: Json, names: Sequence[str]) -> bool:
    return isinstance(record, dict) and not set(names).isdisjoint(map(plain_name, record))


def _is_category(record: Json) -> bool:
    return _has(record, _CATEGORY_IDS) and _has(record, _NAMES)


def _listed(key: str | None, record: Json) -> Category | None:
    if isinstance(record, str):
        return _named(key or record, record)
    records = (one for one in _records_in(record, 2) if _has(one, (*_CATEGORY_IDS, *_NAMES)))
    fields: Fields = next(records, {})
    identity = next(iter(_texts(fields, _CATEGORY_IDS)), key)
    if identity is None or not fields:
        return None
    category = _named(identity, next(iter(_texts(fields, _NAMES)), key or identity))
    return category and replace(category, options=read_options(fields, depth=1))


def _named(identity: str, name: str) -> Category | None:
    usable = _is_usable(identity) and _is_usable(name)
    return Category(identity, name.strip()) if usable else None


def _read_options(holder: Json, required: frozenset[str] | None) -> tuple[Option, ...] | None:
    if isinstance(holder, list):
        read = [_option(None, spec, required) for spec in holder]
    elif not isinstance(holder, dict):
        return None
    elif isinstance(holder.get("properties"), dict):
        return _read_options(holder["properties"], _names_in(holder.get("required")) or frozenset())
    else:
        read = [_option(name, spec, required) for name, spec in holder.items()]
    return None if None in read else tuple(cast("list[Option]", read))


def _option(key: str | None, spec: Json, required: frozenset[str] | None) -> Option | None:
    """The option in a list's record (without a key) or under its name in a map: a record, its values, or a remark."""
    if key is None and isinstance(spec, str):
        return Option(spec) if _is_usable(spec) else None
    fields: Fields = _plain(spec) if isinstance(spec, dict) else {"values": spec}
    spellings = _texts(fields, _OPTION_SPELLINGS)
    name = key or next(iter((*spellings, *_texts(fields, _NAMES))), None)
    if not name or not _is_usable(name):
        return None
    values, labels = _values(_first_holder(fields, _VALUE_HOLDERS))
    if values is None and not isinstance(spec, dict | str | None):
        return None
    others = tuple(text for text in spellings if text != name)
    is_required = _is_required(fields)
    if is_required is None and required is not None:
        is_required = name in required
    return Option(name, values, is_required, others, labels)


def _first_holder(fields: Fields, names: Sequence[str]) -> Json:
    """The first of these fields that has a list or an object."""
    return next((fields[name] for name in names if isinstance(fields.get(name), list | dict)), None)


def _values(holder: Json) -> tuple[tuple[str, ...] | None, tuple[tuple[str, str], ...]]:
    """The values, and their labels; no values when one of them cannot be read."""
    if isinstance(holder, dict):
        holder = _first_holder(_plain(holder), _VALUE_HOLDERS)
    # The value to send, and what else it is called; nothing where it cannot be read.
    read = [
        _texts(_plain(one), _VALUE_NAMES) if isinstance(one, dict) else _texts({"value": one}, ("value",))
        for one in (holder if isinstance(holder, list) else ())
    ]
    if not all(read):
        return None, ()
    values = tuple(dict.fromkeys(texts[0] for texts in read))
    return values or None, tuple((label, texts[0]) for texts in read for label in texts[1:])


def _is_required(spec: Fields) -> bool | None:
    """None where the answer does not have it, or has a default for what is left out."""
    if spec.get("default") is not None:
        return None
    for name in _REQUIRED:
        if isinstance(spec.get(name), bool):
            return cast(bool, spec[name])
    return not spec["optional"] if isinstance(spec.get("optional"), bool) else None


def _names_in(required: Json) -> frozenset[str] | None:
    if not isinstance(required, list):
        return None
    return frozenset(name for name in required if isinstance(name, str))


def _texts(fields: Fields, names: Sequence[str]) -> tuple[str, ...]:
    """What these fields say, each text once."""
    return tuple(dict.fromkeys(text for name in names if (text := _text(fields.get(name)))))


def _text(value: Json) -> str | None:
    """A text or a whole number, as text."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        return None
    try:
        text = str(value).strip()
    except ValueError:  # a number of thousands of digits
        return None
    return text if _is_usable(text) else None


def _is_usable(text: str) -> bool:
    """Whether a person can see and type it."""
    return bool(text.strip()) and not UNSAFE.search(text)
