"""What one environment offers: categories, their options, and how a written name finds the offered one."""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

#: So many different unknown words get a suggestion; past that the file is wrong as a whole.
SUGGESTIONS = 2_000
_LONGEST_SUGGESTED = 100
_SEPARATORS = re.compile(r"[\s_-]+")


def offer_key(text: str) -> str:
    """What spellings have in common that differ in case, outer spaces, or in space, `-` and `_`."""
    return _SEPARATORS.sub(" ", unicodedata.normalize("NFC", text)).strip().casefold()


@dataclass(frozen=True, slots=True)
class Option:
    """One choice of a category. None stands for what the service's answer did not tell."""

    name: str
    values: tuple[str, ...] | None = None
    required: bool | None = None
    #: Other spellings of the name in the answer, accepted as they are.
    spellings: tuple[str, ...] = ()
    #: What the answer calls a value for people, and the value itself.
    labels: tuple[tuple[str, str], ...] = ()

    def find_value(self, text: str) -> str | None:
        """The offered value: exact first, then whatever the case and the outer spaces."""
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

    @property
    def is_readable(self) -> bool:
        """Whether its options, and all of their values, are known."""
        return self.options is not None and all(option.values is not None for option in self.options)

    def find_option(self, text: str) -> tuple[str, Option] | None:
        """The offered spelling and the option: exact first, then whatever the case and the outer spaces."""
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
    options_checked: bool
    #: One sentence on what could not be read.
    note: str | None
    #: False when the list may be longer than what was read: an unknown category is then not refused.
    complete: bool = True

    def find(self, text: str) -> tuple[Category, ...]:
        """The categories that this ID or name can mean: none, one, or several when a name is ambiguous."""
        if text in self._by_id:
            return (self._by_id[text],)
        return self._by_exact_name.get(text) or self._by_key.get(offer_key(text), ())

    @cached_property
    def _by_id(self) -> dict[str, Category]:
        return {category.id: category for category in self.categories or ()}

    @cached_property
    def _by_exact_name(self) -> dict[str, tuple[Category, ...]]:
        return _grouped((category.name, category) for category in self.categories or ())

    @cached_property
    def _by_key(self) -> dict[str, tuple[Category, ...]]:
        names = ((text, one) for one in self.categories or () for text in (one.name, one.id))
        return _grouped((offer_key(text), category) for text, category in names)


class Nearest:
    """Finds the offered word that somebody probably meant; bounded in time over a whole file."""

    def __init__(self, budget: int = SUGGESTIONS) -> None:
        self._budget = budget
        self._known: dict[tuple[str, tuple[str, ...]], str | None] = {}

    def find(self, text: str, offered: tuple[str, ...]) -> str | None:
        """The nearest of `offered`, or None when none is near."""
        if (text, offered) in self._known:
            return self._known[text, offered]
        if len(text) > _LONGEST_SUGGESTED or len(self._known) >= self._budget:
            return None
        self._known[text, offered] = found = _nearest(text, offered)
        return found


def _nearest(text: str, offered: tuple[str, ...]) -> str | None:
    by_key = {offer_key(word): word for word in offered}
    found = difflib.get_close_matches(offer_key(text), by_key, n=1, cutoff=0.6)
    return by_key[found[0]] if found else None


def _grouped(pairs: Iterable[tuple[str, Category]]) -> dict[str, tuple[Category, ...]]:
    groups: dict[str, dict[str, Category]] = {}
    for text, category in pairs:
        groups.setdefault(text, {}).setdefault(category.id, category)
    return {text: tuple(found.values()) for text, found in groups.items()}
