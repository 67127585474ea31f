"""The offer in the service's answers, in any plausible shape; unknown shapes are not guessed at.

Pure functions on parsed JSON. What is not recognised is never guessed at and never raises.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
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
    PagingProgress,
    more_to_come,
    next_steps,
)
from patternmill.text import UNSAFE

_LIST_WRAPPERS = (
    "categories",
    "items",
    "data",
    "results",
    "result",
    "records",
    "list",
    "values",
    "edges",
    "models",
)
_CATEGORY_WRAPPERS = ("category", "data", "result", "item", "record", "node", "model")
_OPTION_HOLDERS = (
    "options",
    "optionGroups",
    "optionTypes",
    "selections",
    "selectionOptions",
    "selectionSchema",
    "selectionsSchema",
    "attributes",
    "parameters",
    "schema",
    "properties",
)
_NOT_RECORDS = frozenset({"error", "errors", *PAGING})

_CATEGORY_IDS = ("categoryId", "category_id", "id", "slug", "key", "code", "modelId", "model_id", "model")
_NAMES = ("name", "title", "label", "displayName", "display_name")
_OPTION_SPELLINGS = ("name", "option", "key", "id", "optionId", "code", "slug")
_OPTION_NAMES = (*_OPTION_SPELLINGS, *_NAMES[1:])
_VALUE_HOLDERS = (
    "values",
    "choices",
    "options",
    "allowed",
    "allowedValues",
    "allowed_values",
    "enum",
    "oneOf",
)
_VALUE_NAMES = ("value", "const", "id", "valueId", "key", "code", "slug", *_NAMES)
_REQUIRED = ("required", "isRequired", "is_required", "mandatory")
_DEEPEST = 3


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
    if found is None:
        return None
    read = [_listed(key, record) for key, record in found]
    if read and not any(read):
        return None
    before = before or CategoryList((), complete=True, pages=0)
    unread = before.records - len(before.categories) + read.count(None)
    categories = {category.id: category for category in before.categories}
    for category in filter(None, read):
        categories.setdefault(category.id, category)
    so_far = PagingProgress(
        before.pages + 1, len(categories) + unread, next(reversed(categories), None), sent
    )
    more = more_to_come(answer, _LIST_WRAPPERS, so_far)
    return CategoryList(
        tuple(categories.values()),
        complete=not unread and not more,
        records=so_far.records,
        last_page=len(read),
        pages=so_far.pages,
        steps=tuple(next_steps(answer, _LIST_WRAPPERS, so_far)) if more else (),
    )


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
    ids = [found for name in _CATEGORY_IDS if (found := _text(fields.get(name)))]
    name = _first_text(fields, _NAMES) or text
    if text in ids or (not ids and options is not None):
        return Category(text, name, options)
    alike = [found for found in ids if offer_key(text) in {offer_key(found), offer_key(name)}]
    return Category(alike[0], name, options) if alike else None


def _records_in(answer: Json, depth: int) -> Iterator[Fields]:
    """The answer, and the records that it wraps."""
    if isinstance(answer, dict) and depth:
        yield answer
        for name in _CATEGORY_WRAPPERS:
            yield from _records_in(answer.get(name), depth - 1)


def assemble_offer(listing: Json, details: Mapping[str, Json]) -> Offer:
    """The offer from one answer of `categories/list` and those of `categories/get` by category ID."""
    found = read_category_list(listing)
    return UNREADABLE_OFFER if found is None else offer_of(found, details)


def offer_of(found: CategoryList, details: Mapping[str, Json]) -> Offer:
    """The offer from a list and the answers of `categories/get`; categories without one are as the list has them."""
    categories = (
        read_category(details[category.id], category) if category.id in details else category
        for category in found.categories
    )
    notes = () if found.complete else (IN_PART,)
    return described_offer(tuple(categories), complete=found.complete, notes=notes)


def _find_records(answer: Json, depth: int) -> list[tuple[str | None, Json]] | None:
    """Every record, with its key where the records are a map."""
    if isinstance(answer, list):
        return [(None, record) for record in answer]
    if not isinstance(answer, dict) or depth == 0:
        return None
    for name in _LIST_WRAPPERS:
        if isinstance(answer.get(name), list | dict):
            inner = _find_records(answer[name], depth - 1)
            return inner if inner is not None else _mapped(answer[name])
    return _mapped(answer) if _looks_mapped(answer) else None


def _mapped(records: Json) -> list[tuple[str | None, Json]] | None:
    """A map from ID to record or name."""
    if not isinstance(records, dict) or not all(
        isinstance(record, dict | str) for record in records.values()
    ):
        return None
    return list(records.items())


def _looks_mapped(answer: Fields) -> bool:
    """A map at the top, where anything else is possible too, must have nothing but named records."""
    return bool(answer) and all(
        key not in _NOT_RECORDS and isinstance(record, dict) and any(name in record for name in _NAMES)
        for key, record in answer.items()
    )


def _listed(key: str | None, record: Json) -> Category | None:
    if isinstance(record, str):
        return _named(key or record, record)
    fields = _unwrapped(record, (*_CATEGORY_IDS, *_NAMES))
    if fields is None:
        return None
    identity = _first_text(fields, _CATEGORY_IDS) or key
    if identity is None:
        return None
    category = _named(identity, _first_text(fields, _NAMES) or key or identity)
    return category and replace(category, options=read_options(fields, depth=1))


def _named(identity: str, name: str) -> Category | None:
    usable = _is_usable(identity) and _is_usable(name)
    return Category(identity, name.strip()) if usable else None


def _unwrapped(record: Json, wanted: Iterable[str]) -> Fields | None:
    """The record itself, or the one nested in it under a usual name."""
    if not isinstance(record, dict):
        return None
    if any(name in record for name in wanted):
        return record
    return next((record[name] for name in _CATEGORY_WRAPPERS if isinstance(record.get(name), dict)), None)


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
    fields: Fields = spec if isinstance(spec, dict) else {"values": spec}
    name = key or _first_text(fields, _OPTION_NAMES)
    if not name or not _is_usable(name):
        return None
    values, labels = _values(_first_holder(fields, _VALUE_HOLDERS))
    if values is None and not isinstance(spec, dict | str | None):
        return None
    spellings = (_text(fields.get(field)) for field in _OPTION_SPELLINGS)
    others = tuple(dict.fromkeys(text for text in spellings if text and text != name))
    is_required = _is_required(fields)
    if is_required is None and required is not None:
        is_required = name in required
    return Option(name, values, is_required, others, labels)


def _values(holder: Json) -> tuple[tuple[str, ...] | None, tuple[tuple[str, str], ...]]:
    """The values, and their labels; no values when one of them cannot be read."""
    if isinstance(holder, dict):
        inner = next((holder[name] for name in _VALUE_HOLDERS if isinstance(holder.get(name), list)), None)
        return _values(inner) if inner is not None else (None, ())
    if not isinstance(holder, list):
        return None, ()
    read = [_value(one) for one in holder]
    if not read or None in read:
        return None, ()
    pairs = cast("list[tuple[str, tuple[str, ...]]]", read)
    values = tuple(dict.fromkeys(value for value, _ in pairs))
    return values, tuple((label, value) for value, labels in pairs for label in labels)


def _value(one: Json) -> tuple[str, tuple[str, ...]] | None:
    """The value to send, and what else it is called."""
    if not isinstance(one, dict):
        text = _text(one)
        return (text, ()) if text else None
    texts = tuple(dict.fromkeys(text for name in _VALUE_NAMES if (text := _text(one.get(name)))))
    return (texts[0], texts[1:]) if texts else None


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


def _first_holder(fields: Fields, names: Sequence[str]) -> Json:
    """The first of these fields that has a list or an object."""
    return next((fields[name] for name in names if isinstance(fields.get(name), list | dict)), None)


def _first_text(fields: Fields, names: Sequence[str]) -> str | None:
    return next((text for name in names if (text := _text(fields.get(name)))), None)


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
