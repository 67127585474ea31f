"""What the trade calls columns, options, categories, values and units: vocabulary.toml, to be looked up."""

import re
import tomllib
import unicodedata
from collections.abc import Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Literal

from patternmill.offer import word
from patternmill.text import key

Kind = Literal["options", "categories", "values", "units"]
_FILE = Path(__file__).with_name("vocabulary.toml")


@lru_cache(4096)
def columns_called(header: str) -> frozenset[str]:
    """Return the columns of a catalog that the trade calls so; with `note` where it calls other things so too."""
    found, name = set[str](), _letters(header)
    for column in ("sku", "prompt", "category"):
        for section, more in (("columns", ()), ("perhaps", ("note",))):
            found |= {column, *more} if name in column_names(section, column) else set()
    return frozenset(found)


@cache
def column_names(section: Literal["columns", "perhaps"], column: str) -> frozenset[str]:
    """Return what the trade calls a column, in letters and digits alone."""
    return frozenset(map(_letters, _vocabulary()[section][column].split(",")))


@lru_cache(65536)
def things(text: str, kind: Kind) -> frozenset[str]:
    """Return the things that the trade calls so, by their names in English; for what it does not know, the word itself.

    A unit behind a number is written in one way: `11 Unzen` is `11oz`.
    """
    measured = _units().sub(lambda found: _words("units")[found[1]][0], word(text))
    return frozenset(_words(kind).get(_plain(text), (measured,)))


@lru_cache(4096)
def alike(text: str, kind: Kind) -> frozenset[str]:
    """Return everything that the trade calls the things that it calls so."""
    meant = things(text, kind)
    return frozenset(name for name, called in _words(kind).items() if meant.intersection(called))


def translated(text: str, kind: Kind) -> str:
    """Return a text with the words that the trade knows in English: `Tasse (11oz)` as `mug (11oz)`."""
    return re.sub(r"[^\W\d_]+", lambda found: _words(kind).get(_plain(found[0]), found)[0], text)


def _plain(text: str) -> str:
    """Return the key of a text without accents."""
    return re.sub(r"[\u0300-\u036f]", "", unicodedata.normalize("NFD", key(text)))


def _letters(header: str) -> str:
    return re.sub(r"[\W_]+", "", _plain(header))


@cache
def _vocabulary() -> Any:
    return tomllib.loads(_FILE.read_text("utf-8"))


@cache
def _words(kind: Kind) -> Mapping[str, tuple[str, ...]]:
    """Return the things that each word names."""
    words: dict[str, tuple[str, ...]] = {}
    for names in _vocabulary()["words"][kind].split(";"):
        first, *others = names.split(",")
        for name in map(_plain, (first, *others)):
            words[name] = (*words.get(name, ()), _plain(first))
    return words


@cache
def _units() -> re.Pattern[str]:
    """Return what finds a unit behind a number, with the spaces between them."""
    either = "|".join(map(re.escape, sorted(_words("units"), key=len, reverse=True)))
    return re.compile(rf"(?<=\d)\s*({either})(?![^\W_])")
