"""The offer of one environment: categories, their options, and how a written name is matched to them."""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from patternmill.catalog.normal_text import normalised
from patternmill.text import UNSAFE, shown

#: How many different unknown names get a suggestion; with more the file is wrong as a whole.
SUGGESTIONS = 2_000
_LONGEST_SUGGESTED = 100
_MOST_NAMED = 12
_SEPARATORS = re.compile(r"[\s_-]+")
_NUMBERS = re.compile(r"\d+")


def offer_key(text: str) -> str:
    """What spellings have in common that differ in case, in space, `-` and `_`, or in nothing that a person sees."""
    return _SEPARATORS.sub(" ", normalised(text)).strip().casefold()


def suggestion_key(text: str) -> str:
    """The same for what is proposed to a person, never taken: full-width letters and digits are those of a keyboard."""
    return offer_key(text if text.isascii() else unicodedata.normalize("NFKC", text))


def numbers_in(text: str) -> list[str]:
    return _NUMBERS.findall(suggestion_key(text))


@dataclass(frozen=True, slots=True)
class Option:
    """One choice of a category. None: the service's answer does not contain it."""

    name: str
    values: tuple[str, ...] | None = None
    required: bool | None = None
    #: Other spellings of the name in the answer, accepted as they are.
    spellings: tuple[str, ...] = ()
    #: The answer's label of a value, and the value itself.
    labels: tuple[tuple[str, str], ...] = ()

    def find_value(self, text: str) -> str | None:
        """The offered value: exact, else by its `offer_key`, where that is unambiguous."""
        if self.values is None or text in self.values:
            return text
        labels = dict(self.labels)
        if text in labels:
            return labels[text]
        key = offer_key(text)
        by_value = {value for value in self.values if offer_key(value) == key}
        found = by_value or {value for label, value in self.labels if offer_key(label) == key}
        return found.pop() if len(found) == 1 else None


@dataclass(frozen=True, slots=True)
class Category:
    """A product type. `options` None: they could not be read, so they are not checked."""

    id: str
    name: str
    options: tuple[Option, ...] | None = None
    #: When some of its options were read that are from memory; None: all of them are as read now.
    read_on: str | None = None

    @property
    def checkable(self) -> bool:
        return self.options is not None and all(option.values is not None for option in self.options)

    def find_option(self, text: str) -> tuple[str, Option] | None:
        """The offered spelling and the option: exact, else by its `offer_key`, where that is unambiguous."""
        for option in self.options or ():
            if text == option.name or text in option.spellings:
                return text, option
        key = offer_key(text)
        names = ((name, one) for one in self.options or () for name in (one.name, *one.spellings))
        found = {option.name: option for name, option in names if offer_key(name) == key}
        return next(iter(found.items())) if len(found) == 1 else None


@dataclass(frozen=True)
class Offer:
    """What an environment offers. `categories` None: the list could not be read, so nothing is checked."""

    categories: tuple[Category, ...] | None
    #: One sentence on what could not be read.
    note: str | None
    #: When a remembered offer was read.
    read_on: str | None = None

    def find(self, text: str) -> tuple[Category, ...]:
        """The categories that this ID or name can mean: none, one, or several when a name is ambiguous."""
        by_id, by_name, by_key = self._indexes
        return by_id.get(text) or by_name.get(text) or by_key.get(offer_key(text), ())

    @cached_property
    def _indexes(self) -> tuple[Mapping[str, tuple[Category, ...]], ...]:
        every = self.categories or ()
        return (
            _grouped((one.id, one) for one in every),
            _grouped((one.name, one) for one in every),
            _grouped((offer_key(text), one) for one in every for text in (one.name, one.id)),
        )


UNREADABLE_OFFER = Offer(None, "Categories and options were not checked: the list of them cannot be read.")


def described_offer(categories: tuple[Category, ...], note: str | None = None) -> Offer:
    """Return the offer; its note is `note`, and what of it is not known."""
    blind = [one.name for one in categories if not one.checkable]
    unchecked = f"Options were not checked for {listed(blind)}: they cannot be read." if blind else None
    return Offer(categories, " ".join(filter(None, (note, unchecked))) or None)


def merged(now: Offer, before: Offer | None) -> Offer:
    """Return the offer as read now; what could not be read now is as it was read `before`, category by category.

    The note names what was read before.
    """
    if before is None or before.categories is None:
        return now
    known = {one.id: replace(one, read_on=one.read_on or before.read_on) for one in before.categories}
    if now.categories is None:
        every = tuple(known.values())
        note = f"The categories could not be read now; those read {_dates(every)} were used."
        return described_offer(every, note)
    kept = {
        one.id: replace(one, options=known[one.id].options, read_on=known[one.id].read_on)
        for one in now.categories
        if one.options is None and one.id in known and known[one.id].options is not None
    }
    if not kept:
        return now
    names = listed([one.name for one in kept.values()])
    note = f"The options of {names} could not be read now; those read {_dates(kept.values())} were used."
    return described_offer(tuple(kept.get(one.id, one) for one in now.categories), note)


def _dates(categories: Iterable[Category]) -> str:
    dates = sorted({one.read_on for one in categories if one.read_on})
    if not dates:
        return "before"
    return f"on {dates[0]}" + (f" to {dates[-1]}" if len(dates) > 1 else "")


def listed(names: Sequence[str]) -> str:
    """The first names in one line, with invisible characters as escapes."""
    named = (name if UNSAFE.search(name) is None else shown(name) for name in names[:_MOST_NAMED])
    more = len(names) - _MOST_NAMED
    return ", ".join(named) + (f" and {more} more" if more > 0 else "")


class Nearest:
    """Finds the offered name that was probably meant; bounded in time over a whole file."""

    def __init__(self, budget: int = SUGGESTIONS) -> None:
        self._budget = budget
        self._known: dict[tuple[str, tuple[str, ...]], str | None] = {}

    def find(self, text: str, offered: tuple[str, ...]) -> str | None:
        if (text, offered) in self._known:
            return self._known[text, offered]
        if len(text) > _LONGEST_SUGGESTED or len(self._known) >= self._budget:
            return None
        # A number is not nearly another: `12oz` is no `11oz`.
        by_key = {suggestion_key(name): name for name in offered if numbers_in(name) == numbers_in(text)}
        near = difflib.get_close_matches(suggestion_key(text), by_key, n=1, cutoff=0.6)
        self._known[text, offered] = found = by_key[near[0]] if near else None
        return found


def _grouped(pairs: Iterable[tuple[str, Category]]) -> dict[str, tuple[Category, ...]]:
    groups: dict[str, dict[str, Category]] = {}
    for text, category in pairs:
        groups.setdefault(text, {}).setdefault(category.id, category)
    return {text: tuple(found.values()) for text, found in groups.items()}
