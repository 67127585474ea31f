"""Looks up what the trade calls columns, options, categories, values and units, in vocabulary.toml."""

import re
import tomllib
import unicodedata
from collections.abc import Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Literal, NamedTuple

from patternmill.offer import word
from patternmill.text import key, nearest

Kind = Literal["column", "perhaps", "option", "category", "value", "unit"]
_FILE = Path(__file__).with_name("vocabulary.toml")


#: How many that may be meant are named.
FEW = 3


@lru_cache(4096)
def things(text: str, kind: Kind) -> frozenset[str]:
    """Return the things that the trade calls so, by our names; for what it does not know, the word itself.

    A unit behind a number is written in one way: `11 Unzen` is `11oz`.
    """
    measured = _units().sub(lambda found: min(_words("unit")[found[1]]), word(text))
    return _words(kind).get(_plain(text, kind), frozenset([measured]))


class Likely(NamedTuple):
    """The few offered names that a text may mean, the likeliest first; and whether nothing else can be meant."""

    names: tuple[str, ...] = ()
    is_certain: bool = False


@lru_cache(4096)
def likely(text: str, offered: tuple[str, ...], kind: Kind) -> Likely:
    """Return what of the offered is meant, by the vocabulary; what it does not know by nearness, never certain."""
    meant = things(text, kind)
    same = tuple(name for name in offered if meant & things(name, kind))
    near = None if same else nearest(text, offered)
    return Likely((near,) if near else same[:FEW], len(same) == len(meant) == 1)


def category_synonyms(text: str) -> set[str]:
    """Return everything that the trade calls the categories that it calls so."""
    return {name for name, called in _words("category").items() if called & things(text, "category")}


def columns_called(header: str) -> frozenset[str]:
    """Return the columns of a catalog that a header may be the name of."""
    return things(header, "column") | things(header, "perhaps")


def _plain(text: str, kind: Kind) -> str:
    """Return the key of a text without accents; of a header its letters and digits alone."""
    if kind == "unit":
        return key(text)
    plain = re.sub(r"[\u0300-\u036f]", "", unicodedata.normalize("NFD", key(text)))
    return re.sub(r"[\W_]+", "", plain) if kind in ("column", "perhaps") else plain


@cache
def _words(kind: Kind) -> Mapping[str, frozenset[str]]:
    """Return the things that each word names."""
    words: dict[str, frozenset[str]] = {}
    for names in tomllib.loads(_FILE.read_text("utf-8"))[kind].split(";"):
        of_one = [_plain(name, kind) for name in names.split(",")]
        words |= {name: words.get(name, frozenset()) | {of_one[0]} for name in of_one}
    return words


@cache
def _units() -> re.Pattern[str]:
    """Return what finds a unit behind a number, with the spaces between them."""
    units = "|".join(map(re.escape, sorted(_words("unit"), key=len, reverse=True)))
    return re.compile(rf"(?<=\d)\s*({units})(?![^\W_])")
