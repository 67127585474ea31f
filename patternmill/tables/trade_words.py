"""The trade's words for columns, options, categories and values, which are in trade_words.toml."""

from __future__ import annotations

import difflib
import re
import tomllib
import unicodedata
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from patternmill.planning.offer import Nearest, numbers_in, offer_key, suggestion_key

#: The least similarity of two spellings of one word: `Cusion` and `Cushion` have it, `cotton` and `organic cotton` not.
_ALIKE = 0.83
#: The fewest letters of words that are compared; shorter ones are alike by accident: `rot` and `rost`.
FEWEST_LETTERS = 5
#: A remark in a name: `Color (inside)`.
_ASIDE = re.compile(r"[(\[（［][^()\[\]（）［］]*[)\]）］]")
_WORD = re.compile(r"[^\W_]+")
_FILE = Path(__file__).with_name("trade_words.toml")


def name_key(name: str) -> str:
    """Return the key that spellings of one name share (`Art.-Nr.`, `ART NR`), without accents, asides and signs."""
    text = _ASIDE.sub(" ", name) if _ASIDE.sub("", name).strip() else name
    folded = unicodedata.normalize("NFKD", text.replace("№", "no").replace("#", "no").casefold())
    plain = "".join(sign for sign in folded if not "\u0300" <= sign <= "\u036f")
    return unicodedata.normalize("NFC", "".join(_WORD.findall(plain)))


def column_rank(column: str, header: str) -> int:
    """Return how surely a header names `sku`, `prompt` or `category`: 2 surely, 1 often, 0 not at all."""
    surely, often = _columns()[column]
    key = name_key(header)
    return 2 if key in surely else int(key in often)


def same_word(word: str, other: str) -> bool:
    """Return whether the trade uses both words for one thing: `Kissenhülle` and `Cushion`."""
    left, right = name_key(word), name_key(other)
    return bool(left) and (left == right or bool(meanings(word) & meanings(other)))


def meanings(text: str) -> frozenset[str]:
    """Return the things that the trade calls by this name."""
    return _words().get(name_key(text), frozenset())


def names_option(header: str) -> bool:
    """Return whether the trade calls some option by this name."""
    return any(meaning.startswith("options:") for meaning in meanings(header))


def meant_by(word: str, offered: Sequence[str]) -> tuple[str | None, bool]:
    """Return which of the offered names a word probably means, and whether it can mean nothing else.

    A number is never taken for another: `12oz` is neither `11oz` nor `15oz`.
    """
    same = [name for name in offered if same_word(word, name)]
    if same:
        return same[0], len(set(map(offer_key, same))) == 1
    alike = [name for name in offered if is_alike(word, name)]
    if len(set(map(offer_key, alike))) == 1:
        return alike[0], not meanings(word)
    numbered = [name for name in offered if numbers_in(name) and numbers_in(name) == numbers_in(word)]
    return (numbered[0] if len(numbered) == 1 else Nearest().find(word, tuple(offered))), False


def is_alike(word: str, other: str) -> bool:
    """Return whether two words are nearly the same; with numbers, all but spaces and the cross must be the same."""
    left, right = (
        re.sub(r"[\W_]", "", re.sub(r"[×*✕]", "x", suggestion_key(text))) for text in (word, other)
    )
    if numbers_in(left) or numbers_in(right):
        return left == right
    is_long = min(len(left), len(right)) >= FEWEST_LETTERS
    return is_long and difflib.SequenceMatcher(None, left, right).ratio() >= _ALIKE


def _keys(names: str) -> frozenset[str]:
    return frozenset(map(name_key, names.split(",")))


@cache
def _columns() -> Mapping[str, tuple[frozenset[str], frozenset[str]]]:
    columns = tomllib.loads(_FILE.read_text(encoding="utf-8"))["columns"]
    return {name: (_keys(words["surely"]), _keys(words["often"])) for name, words in columns.items()}


@cache
def _words() -> Mapping[str, frozenset[str]]:
    """Return by key what a word is: its first name in the file, behind `options:`, `categories:` or `values:`."""
    words: dict[str, set[str]] = defaultdict(set)
    for kind, lines in tomllib.loads(_FILE.read_text(encoding="utf-8"))["words"].items():
        for names in lines:
            for key in _keys(names):
                words[key].add(f"{kind}:{names.partition(',')[0]}")
    return {key: frozenset(things) for key, things in words.items()}
