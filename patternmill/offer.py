"""What an environment offers. The interface does not state the shapes of its answers, so several are read."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from itertools import chain
from operator import attrgetter
from typing import Any, TypeVar

from pydantic import AliasChoices as Names
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from patternmill.errors import Refusal
from patternmill.text import key

#: Where a list of categories may be, and what a category's record may be wrapped in.
_LISTS = ("categories", "items", "data", "results", "list", "records")
_WRAPPERS = ("category", "data", "result", "item")
_OPTIONS = ("options", "optionGroups", "selections", "attributes", "parameters")
_VALUES = ("values", "choices", "options", "allowedValues", "allowed", "enum")
_ID = attrgetter("id")
_TIMES = re.compile(r"(?<=\d)\s*[x×]\s*(?=\d)")


@lru_cache(4096)
def word(text: str) -> str:
    """Return what spellings of one word share: its key, and no spaces around the `x` of `50 x 50`."""
    return _TIMES.sub("x", key(text))


class _Record(BaseModel):
    """Something that is offered: `id` is sent, `label` is what people call it."""

    model_config = ConfigDict(frozen=True, coerce_numbers_to_str=True, str_strip_whitespace=True)

    id: str = Field(min_length=1)
    label: str = Field("", validation_alias=Names("label", "title", "displayName", "name"))

    @model_validator(mode="before")
    @classmethod
    def _wrap(cls, value: Any) -> Any:
        """Read a text as a record of that name alone."""
        return value if isinstance(value, dict) else {"id": value}

    @property
    def title(self) -> str:
        return self.label or self.id


class Value(_Record):
    id: str = Field(min_length=1, validation_alias=Names("value", "id", "key", "code", "name", "label"))


class Option(_Record):
    """One choice of a category. Without values, any text is taken."""

    id: str = Field(min_length=1, validation_alias=Names("name", "key", "option", "id", "optionId", "label"))
    values: tuple[Value, ...] | None = Field(None, validation_alias=Names(*_VALUES))
    required: bool = Field(False, validation_alias=Names("required", "isRequired", "mandatory"))
    default: Any = None

    @property
    def is_needed(self) -> bool:
        return self.required and self.default is None

    @property
    def texts(self) -> tuple[str, ...]:
        return tuple(one.id for one in self.values or ())

    def find(self, text: str) -> tuple[str, ...]:
        """Return the offered values that this text can mean; any text is one where no values are known."""
        return (text,) if self.values is None else tuple(dict.fromkeys(map(_ID, _meant(self.values, text))))


class Category(_Record):
    """A type of product. `options` is None where they cannot be read, and so are not checked."""

    id: str = Field(min_length=1, validation_alias=Names("categoryId", "category_id", "id", "slug", "key"))
    label: str = Field("", validation_alias=Names("name", "title", "label", "displayName"))
    options: tuple[Option, ...] | None = Field(None, validation_alias=Names(*_OPTIONS))

    @field_validator("options", mode="before")
    @classmethod
    def _list(cls, value: Any) -> Any:
        """Read a map of options as a list of them."""
        if not isinstance(value, dict):
            return value
        wrapped = {name: one if isinstance(one, dict) else {"values": one} for name, one in value.items()}
        return [{"name": name, **one} for name, one in wrapped.items()]

    def find(self, text: str) -> tuple[Option, ...]:
        """Return the options that this name can mean."""
        return _meant(self.options or (), text)


Record = TypeVar("Record", Value, Option, Category)


def _meant(offered: Iterable[Record], text: str) -> tuple[Record, ...]:
    """Return the records that a text can mean: those with its very key, else those with the same word."""
    meant, alike, exact = word(text), list[Record](), list[Record]()
    for one in offered:
        if meant in (word(one.id), word(one.title)):
            (exact if key(text) in (key(one.id), key(one.title)) else alike).append(one)
    return tuple(exact or alike)


class Offer(BaseModel):
    """The categories of an environment; None where their list cannot be read, so that nothing is checked."""

    categories: tuple[Category, ...] | None = None
    notes: tuple[str, ...] = ()
    #: What was answered now, by category ID; the list under "".
    answers: Mapping[str, Any] = {}

    def find(self, text: str) -> tuple[Category, ...]:
        """Return the categories that this ID or name can mean. An ID that is written exactly means that one."""
        found = _meant(self.categories or (), text)
        return tuple(one for one in found if one.id == text) or found if len(found) > 1 else found


Ask = Callable[[str, dict[str, Any]], Awaitable[Any]]
Recall = Callable[[str], Any]


async def read_offer(
    ask: Ask,
    recall: Recall,
    words: Iterable[str] | None,
    alike: Callable[[str], Iterable[str]] = lambda word: (),
) -> Offer:
    """Return the offer as far as these words of a sheet name it, or those that are alike; None: all of it.

    What cannot be reached now is what was read last, category by category. Raises Refusal for what never was.
    """
    answers: dict[str, Any] = {}

    async def answer(operation: str, category_id: str = "") -> Any:
        found = await ask(operation, {"categoryId": category_id} if category_id else {})
        if found is not None:
            answers[category_id] = found
        elif (found := recall(category_id)) is None:
            message = f"The service does not say what it offers ({operation} has no answer)."
            raise Refusal("offer_unreachable", message, "Run the same command again when it is up.")
        return found

    offer = parse_list(await answer("categories/list"))
    every = offer.categories or ()
    chosen = list(every)
    if words is not None:
        chosen = []
        for one in words:
            chosen += offer.find(one) or chain.from_iterable(map(offer.find, alike(one)))
    named = dict(zip(map(_ID, chosen), chosen, strict=True))
    details = await asyncio.gather(*map(partial(answer, "categories/get"), named))
    named = dict(zip(named, map(with_options, named.values(), details), strict=True))
    notes = [*offer.notes, *_notes(named.values(), answers)]
    found = offer.categories and tuple(map(named.get, map(_ID, every), every))
    return Offer(categories=found, notes=tuple(notes), answers=answers)


def _notes(named: Iterable[Category], answers: Mapping[str, Any]) -> Iterator[str]:
    if "" not in answers:
        yield "The list of categories is the last one read: the service is away."
    for category in named:
        if category.id not in answers:
            yield f"The options of {category.title} are the last ones read: the service is away."
        if category.options is None:
            yield f"Options of {category.title} are sent as written, not checked: they cannot be read."


def parse_list(answer: Any) -> Offer:
    """Return the offer of an answer of `categories/list`, without options."""
    try:
        found = tuple(map(Category.model_validate, _records(answer) or ()))
    except ValidationError:
        found = ()
    note = "Categories are sent as written, not checked: the list of them cannot be read."
    return Offer(categories=found or None, notes=() if found else (note,))


def _records(answer: Any, depth: int = 3) -> Sequence[Any] | None:
    if isinstance(answer, list):
        return answer
    if not isinstance(answer, dict) or depth == 0:
        return None
    for name in _LISTS:
        if (found := _records(answer.get(name), depth - 1)) is not None:
            return found
    return None


def with_options(category: Category, answer: Any) -> Category:
    """Return the category with the options of an answer of `categories/get`, if they can be read."""
    answers = [answer, *map(answer.get, _WRAPPERS)] if isinstance(answer, dict) else []
    for record in answers:
        if not isinstance(record, dict):
            continue
        try:
            found = Category.model_validate({"id": category.id, **record})
        except ValidationError:
            continue
        if found.options is not None:
            return found.model_copy(update={"id": category.id, "label": category.label or found.label})
    return category


def offer_lines(offer: Offer, named: Iterable[str]) -> Iterator[str]:
    """Yield the categories that these words name, or all, with their options as they are written in a sheet."""
    yield from (f"Note: {note}" for note in offer.notes)
    chosen = [one for text in named for one in offer.find(text)] or offer.categories or ()
    for category in chosen:
        yield f"{category.title} ({category.id})"
        for option in category.options or ():
            needed = ", required" if option.is_needed else ""
            yield f"  option:{option.id}{needed}: {', '.join(option.texts) or 'any text'}"
