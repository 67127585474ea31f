"""What the trade calls columns, options, categories and values; the words are in trade_words.toml."""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from pathlib import Path

#: A remark in a name: `Color (inside)`.
_ASIDE = re.compile(r"[(\[（［][^()\[\]（）［］]*[)\]）］]")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_WORD = re.compile(r"[^\W_]+")
_FILE = Path(__file__).with_name("trade_words.toml")


def name_key(name: str) -> str:
    """What spellings of one name share: `Art.-Nr.`, `ART NR`; accents, asides in brackets and signs are left out."""
    text = _CAMEL.sub(" ", _ASIDE.sub(" ", name) if _ASIDE.sub("", name).strip() else name)
    folded = unicodedata.normalize("NFKD", text.replace("№", "no").replace("#", "no").casefold())
    plain = "".join(sign for sign in folded if not "\u0300" <= sign <= "\u036f")
    return unicodedata.normalize("NFC", "".join(_WORD.findall(plain)))


def column_rank(column: str, header: str) -> int:
    """How surely a header names `sku`, `prompt` or `category`: 2 surely, 1 often does, 0 not."""
    surely, often = _columns()[column]
    key = name_key(header)
    return 2 if key in surely else int(key in often)


def same_word(one: str, other: str) -> bool:
    """Whether the trade uses the two for one thing: `Kissenhülle` and `Cushion`."""
    left, right = name_key(one), name_key(other)
    return bool(left) and (left == right or bool(meanings(one) & meanings(other)))


def meanings(text: str) -> frozenset[str]:
    """The things that the trade calls this."""
    return _words().get(name_key(text), frozenset())


def names_option(header: str) -> bool:
    """Whether the trade calls some option this."""
    return any(thing.startswith("options:") for thing in meanings(header))


def _keys(names: str) -> frozenset[str]:
    return frozenset(map(name_key, names.split(",")))


@cache
def _columns() -> Mapping[str, tuple[frozenset[str], frozenset[str]]]:
    columns = tomllib.loads(_FILE.read_text(encoding="utf-8"))["columns"]
    return {name: (_keys(one["surely"]), _keys(one["often"])) for name, one in columns.items()}


@cache
def _words() -> Mapping[str, frozenset[str]]:
    """By key: the first names of what it is in trade_words.toml, behind `options:`, `categories:` or `values:`."""
    found: dict[str, set[str]] = defaultdict(set)
    for kind, lines in tomllib.loads(_FILE.read_text(encoding="utf-8"))["words"].items():
        for names in lines:
            for key in _keys(names):
                found[key].add(f"{kind}:{names.partition(',')[0]}")
    return {key: frozenset(things) for key, things in found.items()}
