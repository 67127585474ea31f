"""The normal spelling of texts that no person can tell apart: of prompts and options, as they are bought and sent."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from functools import lru_cache

#: The characters that programs put in place of those of a keyboard.
_TYPOGRAPHIC = {
    "'": "\u2018\u2019\u201a\u201b\u02bc",
    '"': "\u201c\u201d\u201e\u201f",
    "-": "\u2010\u2011\u2012\u2013\u2014\u2015\u2212",
    "...": "\u2026",
    "\n": "\r\x0b\x0c\x85\u2028\u2029",
}
_AS_PLAIN = {ord(sign): plain for plain, signs in _TYPOGRAPHIC.items() for sign in signs}
#: Control and invisible characters, except joiners, which shape letters and emoji.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f\u00ad\u034f\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff]"
)
_JOINERS = re.compile("[\u200c\u200d]")
#: Joiners behind characters that cannot be joined.
_STRAY_JOINERS = re.compile("(?<![\u0600-\u1fff\u2070-\U0010ffff])[\u200c\u200d]")
_SPACES = re.compile(r"[^\S\n]+")
_AROUND_LINE_END = re.compile(" ?\n ?")
_SEPARATORS = re.compile(r"[\s_-]+")
#: Signs that a text may need normalising; most texts have none.
_UNUSUAL = re.compile(r"[^ -~\n]|  | \n|\n |\A[ \n]|[ \n]\Z")


def normalised(text: str) -> str:
    """Return a text composed (NFC), with plain quotes, apostrophes, dashes, line ends (LF) and single spaces.

    Outer spaces and invisible characters are left out; case, line breaks and other signs stay. A second pass changes
    nothing.
    """
    if not _UNUSUAL.search(text):
        return text
    plain = _INVISIBLE.sub("", text.replace("\r\n", "\n").translate(_AS_PLAIN))
    plain = _STRAY_JOINERS.sub("", unicodedata.normalize("NFC", plain))
    return _AROUND_LINE_END.sub("\n", _SPACES.sub(" ", unicodedata.normalize("NFC", plain))).strip()


def visible_text(text: str) -> str:
    """Return what a person can see of a text: normalised, without joiners, and with line breaks as spaces."""
    return " ".join(_JOINERS.sub("", normalised(text)).split())


@lru_cache(16_384)
def offer_key(text: str) -> str:
    """Return the key shared by all spellings that differ only in case, space, `-` and `_`, or in what nobody sees."""
    return _SEPARATORS.sub(" ", normalised(text)).strip().casefold()


def folded_keys(selections: Mapping[str, str]) -> Mapping[str, str]:
    """Return option keys with the keys of their values; all as written where two options would share a key."""
    return _folded_keys(tuple(selections.items()))


@lru_cache(16_384)
def _folded_keys(pairs: tuple[tuple[str, str], ...]) -> Mapping[str, str]:
    keys = {offer_key(name): offer_key(value) for name, value in pairs}
    return keys if len(keys) == len(pairs) else dict(pairs)
