"""The offer of one environment: categories, their options, and how a written name is matched to them."""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from patternmill.planning.normal_text import folded_keys
from patternmill.planning.normal_text import offer_key as offer_key
from patternmill.text import UNSAFE, shown

#: The most different unknown names that get a suggestion; with more of them the file is wrong as a whole.
_MOST_SUGGESTED = 2_000
_LONGEST_SUGGESTED = 100
_MOST_NAMED = 12
_NUMBERS = re.compile(r"\d+")


def suggestion_key(text: str) -> str:
    """Return the key for suggesting a name, never for choosing one: full-width letters and digits count as plain."""
    return offer_key(text if text.isascii() else unicodedata.normalize("NFKC", text))


def numbers_in(text: str) -> list[str]:
    return _NUMBERS.findall(suggestion_key(text))


@dataclass(frozen=True, slots=True)
class Option:
    """One choice of a category. A field is None where the service's answer does not contain it."""

    name: str
    values: tuple[str, ...] | None = None
    required: bool | None = None
    #: Other spellings of the name in the answer, accepted as they are.
    spellings: tuple[str, ...] = ()
    #: Pairs of the answer's label for a value and the value itself.
    labels: tuple[tuple[str, str], ...] = ()

    def find_value(self, text: str) -> str | None:
        """Return the offered value that a text names exactly, or else by its `offer_key` where only one has it."""
        if self.values is None or text in self.values:
            return text
        labels = dict(self.labels)
        if text in labels:
            return labels[text]
        key = offer_key(text)
        by_value = {value for value in self.values if offer_key(value) == key}
        matches = by_value or {value for label, value in self.labels if offer_key(label) == key}
        return matches.pop() if len(matches) == 1 else None


@dataclass(frozen=True, slots=True)
class Category:
    """A product type. Where `options` is None they could not be read, and are not checked."""

    id: str
    name: str
    options: tuple[Option, ...] | None = None
    #: When its options were read, where they are remembered ones; None if they were read now.
    read_on: str | None = None

    @property
    def checkable(self) -> bool:
        return self.options is not None and all(option.values is not None for option in self.options)

    def exact_keys(self, selections: Mapping[str, str]) -> Mapping[str, str] | None:
        """Return the keys of selections, in the offer's exact spelling where a folded key would stand for two names.

        An option is identified by its name, whichever of its spellings was chosen. None where folding the selections
        is enough, as it nearly always is.
        """
        options = {text: option for option in self.options or () for text in (option.name, *option.spellings)}
        names = Counter(offer_key(option.name) for option in self.options or ())
        keys: dict[str, str] = {}
        for text, value in selections.items():
            option = options.get(text, Option(text))
            name, folded = offer_key(option.name), offer_key(value)
            is_shared = sum(offer_key(other) == folded for other in option.values or ()) > 1
            keys[option.name if names[name] > 1 else name] = value if is_shared else folded
        return keys if keys != folded_keys(selections) else None

    def find_option(self, text: str) -> tuple[str, Option] | None:
        """Return the name and the option that a text names exactly, or else by its `offer_key` where only one has it.

        The name is the spelling that the offer has.
        """
        names = [(name, option) for option in self.options or () for name in (option.name, *option.spellings)]
        if exact := [(name, option) for name, option in names if name == text]:
            return exact[0]
        matches = {option.name: option for name, option in names if offer_key(name) == offer_key(text)}
        return next(iter(matches.items())) if len(matches) == 1 else None


@dataclass(frozen=True)
class Offer:
    """The categories of an environment with their options. Where they are None, nothing could be read or is checked."""

    categories: tuple[Category, ...] | None
    #: One sentence on what could not be read.
    note: str | None
    #: When a remembered offer was read.
    read_on: str | None = None

    def find(self, text: str) -> tuple[Category, ...]:
        """Return the categories that an ID or a name can mean: none, one, or several when a name is ambiguous."""
        by_id, by_name, by_key = self._indexes
        return by_id.get(text) or by_name.get(text) or by_key.get(offer_key(text), ())

    @cached_property
    def _indexes(self) -> tuple[Mapping[str, tuple[Category, ...]], ...]:
        categories = self.categories or ()
        return (
            _grouped((category.id, category) for category in categories),
            _grouped((category.name, category) for category in categories),
            _grouped((offer_key(text), each) for each in categories for text in (each.name, each.id)),
        )


UNREADABLE_OFFER = Offer(None, "Categories and options were not checked: the list of them cannot be read.")


def described_offer(categories: tuple[Category, ...], note: str | None = None) -> Offer:
    """Return an offer whose note is `note` followed by a sentence on the options that are not known."""
    blind = [category.name for category in categories if not category.checkable]
    unchecked = f"Options were not checked for {listed(blind)}: they cannot be read." if blind else None
    return Offer(categories, " ".join(filter(None, (note, unchecked))) or None)


def merged(now: Offer, before: Offer | None) -> Offer:
    """Return the offer as read now, completed category by category with what was read before and could not be now.

    The note names what was read before.
    """
    if before is None or before.categories is None:
        return now
    remembered = {
        category.id: replace(category, read_on=category.read_on or before.read_on)
        for category in before.categories
    }
    if now.categories is None:
        categories = tuple(remembered.values())
        note = f"The categories could not be read now; those read {_dates(categories)} were used."
        return described_offer(categories, note)
    blind = (category.id for category in now.categories if category.options is None)
    used = {id: remembered[id] for id in blind if id in remembered and remembered[id].options is not None}
    if not used:
        return now
    categories = tuple(
        replace(category, options=used[category.id].options, read_on=used[category.id].read_on)
        if category.id in used
        else category
        for category in now.categories
    )
    names = listed([category.name for category in categories if category.id in used])
    note = f"The options of {names} could not be read now; those read {_dates(used.values())} were used."
    return described_offer(categories, note)


def _dates(categories: Iterable[Category]) -> str:
    dates = sorted({category.read_on for category in categories if category.read_on})
    return f"on {' to '.join(dates[:1] + dates[1:][-1:])}" if dates else "before"


def listed(names: Sequence[str]) -> str:
    """Return the first names in one line, with invisible characters as escapes."""
    named = (name if UNSAFE.search(name) is None else shown(name) for name in names[:_MOST_NAMED])
    more = len(names) - _MOST_NAMED
    return ", ".join(named) + (f" and {more} more" if more > 0 else "")


class Nearest:
    """Finds the offered name that was probably meant, in bounded time over a whole file."""

    def __init__(self) -> None:
        self._nearest: dict[tuple[str, tuple[str, ...]], str | None] = {}

    def find(self, text: str, offered: tuple[str, ...]) -> str | None:
        """Return the offered name that is nearest to a text, if one is near enough."""
        if (text, offered) in self._nearest:
            return self._nearest[text, offered]
        if len(text) > _LONGEST_SUGGESTED or len(self._nearest) >= _MOST_SUGGESTED:
            return None
        # A number is never close to another one: `12oz` is not `11oz`.
        by_key = {suggestion_key(name): name for name in offered if numbers_in(name) == numbers_in(text)}
        near = difflib.get_close_matches(suggestion_key(text), by_key, n=1, cutoff=0.6)
        self._nearest[text, offered] = nearest = by_key[near[0]] if near else None
        return nearest


def _grouped(pairs: Iterable[tuple[str, Category]]) -> dict[str, tuple[Category, ...]]:
    groups: dict[str, dict[str, Category]] = {}
    for text, category in pairs:
        groups.setdefault(text, {}).setdefault(category.id, category)
    return {text: tuple(categories.values()) for text, categories in groups.items()}
