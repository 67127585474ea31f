"""Prompts in German, French, Spanish and Japanese, word by word in English."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from studio.art import words
from studio.art.lexicon import FRENCH, GERMAN, JAPANESE, SPANISH

_WORD = re.compile(r"[^\W_]+")
#: Japanese has no spaces between words.
_JAPANESE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff々]")


@dataclass(frozen=True)
class Language:
    """A language's words, and how its forms are led back to those. Words in `alone` may be English ones."""

    table: Mapping[str, str]
    forms: Callable[[str], Iterator[str]]
    alone: frozenset[str] = frozenset()
    #: Colours stand after the thing they are said of.
    colour_follows: bool = False
    #: Words are written together: `Herbstblatt`.
    compounds: bool = False


def in_english(prompt: str) -> list[str]:
    """The words of the prompt, those of another language in English. English ones stay as they are."""
    text = unicodedata.normalize("NFKC", prompt).casefold()
    if _JAPANESE.search(text):
        return _japanese(text)
    tokens = _WORD.findall(text)
    best = max(_LANGUAGES, key=lambda language: _known(tokens, language))
    needed = 2 if _ENGLISH_ONLY.intersection(tokens) else 1
    return (
        _translated([_plain(one) for one in tokens], best)
        if _known(tokens, best) >= needed
        else _ENGLISH.findall(prompt.lower())
    )


_ENGLISH = re.compile(r"[a-z0-9]+")
_ENGLISH_ONLY = frozenset({"the", "and", "of", "with", "for", "an", "to"})
#: English as well as foreign, and so common that they speak for no language.
_SHARED = _ENGLISH_ONLY | {
    "a",
    "in",
    "or",
    "on",
    "y",
    "e",
    "d",
    "me",
    "son",
    "die",
    "hell",
    "no",
    "des",
    "as",
}


def _plain(text: str) -> str:
    """Without accents: `crème` and `creme` are one word."""
    parts = unicodedata.normalize("NFKD", text.replace("ß", "ss"))
    return "".join(one for one in parts if not unicodedata.combining(one))


def _known(tokens: list[str], language: Language) -> int:
    """How many words speak for this language: those that English does not have."""
    telling = (token for token in tokens if token not in language.alone | _SHARED and not _english(token))
    return sum(_form(_plain(token), language) is not None for token in telling)


@lru_cache(4096)
def _english(word: str) -> bool:
    tables = (words.COLOURS, words.SUBJECTS, words.MOODS, words.LAYOUTS, words.SCALES, words.STYLES)
    forms = (word, word.removesuffix("s"), word.removesuffix("es"), word.removesuffix("ies") + "y")
    return any(form in table for table in tables for form in forms)


def _form(token: str, language: Language) -> str | None:
    """The English for this form of a word, or for the two that it is written from."""
    whole = _simple(token, language)
    if whole is not None or not language.compounds:
        return whole
    for place in range(len(token) - 4, 2, -1):
        first, second = _simple(token[:place], language), _simple(token[place:], language)
        if first is not None and second is not None:
            return f"{first} {second}"
    return None


def _simple(token: str, language: Language) -> str | None:
    return next((language.table[form] for form in language.forms(token) if form in language.table), None)


def _translated(tokens: list[str], language: Language) -> list[str]:
    """The longest phrases first; a word that is not known stays."""
    found: list[str] = []
    place = 0
    while place < len(tokens):
        for length in (3, 2, 1):
            phrase = " ".join(tokens[place : place + length])
            english = _form(phrase, language) if place + length <= len(tokens) else None
            if english is not None:
                break
        found.append(phrase if english is None else english)
        place += length
    ordered = _reordered(found) if language.colour_follows else found
    return [word for phrase in ordered for word in phrase.split()]


def _reordered(phrases: list[str]) -> list[str]:
    """`herons blue pale` as `pale blue herons`: what is said of a thing goes before it."""
    ordered = list(phrases)
    for place in range(1, len(ordered)):
        if ordered[place] in words.COLOUR_CHANGES and _is_colour(ordered[place - 1]):
            ordered[place - 1 : place + 1] = [f"{ordered[place]} {ordered[place - 1]}", ""]
    ordered = [one for one in ordered if one]
    for place in range(1, len(ordered)):
        if ordered[place] == "roses" and _is_subject(ordered[place - 1]):
            ordered[place] = "pink"
    place = 0
    while place < len(ordered):
        if _is_subject(ordered[place]):
            end = place + 1
            while end < len(ordered) and _is_colour(ordered[end]):
                end += 1
            ordered[place:end] = [*ordered[place + 1 : end], ordered[place]]
            place = end - 1
        place += 1
    return ordered


def _is_colour(phrase: str) -> bool:
    return phrase.split()[-1:] != [] and phrase.split()[-1] in words.COLOURS and phrase not in words.DOUBTFUL


def _is_subject(phrase: str) -> bool:
    return not _is_colour(phrase) and (phrase in words.SUBJECTS or phrase.removesuffix("s") in words.SUBJECTS)


def _japanese(text: str) -> list[str]:
    """The longest known word at each place; what is between them says nothing."""
    found: list[str] = []
    place = 0
    while place < len(text):
        length = next(
            (size for size in range(_LONGEST, 0, -1) if text[place : place + size] in _JAPANESE_WORDS), 0
        )
        if length:
            found += _JAPANESE_WORDS[text[place : place + length]].split()
        elif text[place].isascii() and text[place].isalnum():
            word = _ENGLISH.match(text, place)
            assert word is not None
            found.append(word[0])
            length = len(word[0])
        place += max(1, length)
    return found


def _german(word: str) -> Iterator[str]:
    yield word
    for ending in ("n", "e", "en", "er", "es", "em", "s", "nen"):
        if word.endswith(ending) and len(word) - len(ending) > 2:
            yield word[: -len(ending)]
            yield word[: -len(ending)] + "e"


def _french(word: str) -> Iterator[str]:
    yield word
    stem = word.rstrip("sx") if len(word) > 3 else word
    yield stem
    yield from (stem + "s", stem.removesuffix("e"))
    yield " ".join(_french_stem(part) for part in word.split())


def _french_stem(word: str) -> str:
    return word if len(word) < 4 else word.rstrip("sx")


def _spanish(word: str) -> Iterator[str]:
    parts = word.split()
    yield word
    for ending in ("s", "es"):
        stem = " ".join(part.removesuffix(ending) if len(part) > 3 else part for part in parts)
        yield stem
        if stem.endswith("a"):
            yield stem[:-1] + "o"
        yield stem.replace("c", "z") if ending == "es" and stem.endswith("c") else stem


def _table(text: str) -> dict[str, str]:
    """`english = word, word; ...` by word."""
    table: dict[str, str] = {}
    for entry in text.replace("\n", " ").split(";"):
        english, _, foreign = entry.partition("=")
        for word in foreign.split(","):
            if word.strip():
                table[_plain(word.strip().casefold())] = english.strip()
    return table


def _with_two_letters(text: str) -> dict[str, str]:
    """German also without umlauts: `gruen` for `grün`."""
    spelled = text.casefold()
    for umlaut, letters in (("ä", "ae"), ("ö", "oe"), ("ü", "ue")):
        spelled = spelled.replace(umlaut, letters)
    return {**_table(spelled), **_table(text)}


_LANGUAGES = (
    Language(
        _with_two_letters(GERMAN),
        _german,
        frozenset({"rot", "hell", "gold", "rosa", "rose", "tee", "anker"}),
        compounds=True,
    ),
    Language(
        _table(FRENCH),
        _french,
        frozenset(
            {"or", "pin", "rose", "beige", "lime", "mousse", "plume", "sable", "prune", "ours", "chat"}
        ),
        colour_follows=True,
    ),
    Language(
        _table(SPANISH),
        _spanish,
        frozenset({"rosa", "sol", "mora", "lima", "pera", "pino"}),
        colour_follows=True,
    ),
)
_JAPANESE_WORDS = {
    unicodedata.normalize("NFKC", word): english
    for entry in JAPANESE.replace("\n", " ").split(";")
    for english, _, foreign in [entry.partition("=")]
    for word in foreign.replace(" ", "").split(",")
    for english in [english.strip()]
    if word
}
_LONGEST = max(map(len, _JAPANESE_WORDS))
