"""The faults of a catalog: their stable codes, and their text for the person who corrects them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from patternmill.errors import InputRefused


class FileCode(StrEnum):
    """Why a file is refused whole, before anything is spent. Stable: people filter and script by them."""

    FILE_MISSING = "file_missing"
    NOT_A_FILE = "not_a_file"
    FILE_UNREADABLE = "file_unreadable"
    FILE_CHANGED = "file_changed"
    FILE_TOO_LARGE = "file_too_large"
    FILE_TOO_SLOW = "file_too_slow"
    EMPTY_FILE = "empty_file"
    HEADER_ONLY = "header_only"
    NOT_CSV = "not_csv"
    UNKNOWN_ENCODING = "unknown_encoding"
    UNREADABLE_ENCODING = "unreadable_encoding"
    NUL_BYTES = "nul_bytes"
    WRONG_DELIMITER = "wrong_delimiter"
    NO_KNOWN_COLUMNS = "no_known_columns"
    MISSING_COLUMN = "missing_column"
    DUPLICATE_HEADER = "duplicate_header"
    CONFLICTING_COLUMNS = "conflicting_columns"
    RESERVED_COLUMN = "reserved_column"
    BAD_HEADER = "bad_header"
    OPEN_QUOTE = "open_quote"
    STRAY_QUOTE = "stray_quote"
    CELL_TOO_LONG = "cell_too_long"


class RowCode(StrEnum):
    """Why one row is refused while the others are made. Stable: they are the `error_code` of the results."""

    SURPLUS_CELLS = "surplus_cells"
    MISSING_CELLS = "missing_cells"
    EMPTY_SKU = "empty_sku"
    DUPLICATE_SKU = "duplicate_sku"
    EMPTY_PROMPT = "empty_prompt"
    PROMPT_TOO_LONG = "prompt_too_long"
    EMPTY_CATEGORY = "empty_category"
    UNKNOWN_CATEGORY = "unknown_category"
    UNLISTED_CATEGORY = "unlisted_category"
    AMBIGUOUS_CATEGORY = "ambiguous_category"
    UNKNOWN_OPTION = "unknown_option"
    UNKNOWN_VALUE = "unknown_value"
    DUPLICATE_OPTION = "duplicate_option"
    MISSING_OPTION = "missing_option"
    OPTION_COLUMN = "option_column"
    MALFORMED_SELECTIONS = "malformed_selections"
    UNSAFE_CHARACTERS = "unsafe_characters"
    SUPERSEDED = "superseded"
    MOJIBAKE = "mojibake"


@dataclass(frozen=True, slots=True)
class Finding:
    """A fault of some cells, without the row that they are in: equal cells share one."""

    column: str | None
    code: RowCode
    message: str
    remedy: str

    def at(self, line: int, sku: str | None) -> Problem:
        return Problem(line, self.column, sku, self.code, self.message, self.remedy)


@dataclass(frozen=True, slots=True)
class Problem:
    """One fault of one row. `line` is the row number that a spreadsheet shows; the header is row 1."""

    line: int
    column: str | None
    sku: str | None
    code: RowCode
    message: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.message}; {self.remedy}" if self.remedy else self.message


def refusal(code: FileCode, message: str, remedy: str) -> InputRefused:
    return InputRefused(message, code=code.value, remedy=remedy)


#: Invisible characters, and those that make a terminal or a page show something else than the text.
UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff]"
)

#: The same, and characters without a width or that look like a plain space.
_HIDDEN = re.compile(UNSAFE.pattern[:-1] + "\u00a0\u034f\u1680\u2000-\u200a\u200c\u200d\u202f\u205f\u3000]")
_NAMED = {"\t": "\\t", "\n": "\\n", "\r": "\\r"}
_VARIANTS = re.compile("[\ufe00-\ufe0f]")
#: Letters and signs that look alike in Cyrillic, Greek or typeset text, and those of ASCII.
_LOOKALIKES = str.maketrans(
    "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0425"
    "\u03bf\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7"
    "\u2018\u2019\u02bc\u201c\u201d\u2010\u2011\u2012\u2013\u2014\u2212",
    "aeopcyxiABEKMHOPCTX" "oABEZHIKMNOPTYX" "'''\"\"------",
)  # fmt: skip


def shown(text: str, limit: int = 60) -> str:
    """The text in backticks, fit for a terminal."""
    return f"`{plain(text, limit)}`"


def plain(text: str, limit: int = 60) -> str:
    """The text fit for a terminal: shortened, with invisible characters as escapes."""
    return visible(text if len(text) <= limit else text[: limit - 1] + "…")


def visible(text: str) -> str:
    r"""The text with invisible characters, and those that look like a space, as escapes (`\u00a0`, `\n`)."""
    return _HIDDEN.sub(_escape, text)


def contrasted(old: str, new: str, limit: int = 60) -> tuple[str, str]:
    """Two texts that differ, each in backticks, from shortly before the first difference.

    Where they look alike to a person all the same, every character outside of ASCII is an escape, and each space that
    follows a space.
    """
    begin = max(_first_difference(old, new) - limit // 3, 0)
    escape = _escape_all if _look_key(old) == _look_key(new) else visible
    return _excerpt(old, begin, limit, escape), _excerpt(new, begin, limit, escape)


def _excerpt(text: str, begin: int, limit: int, escape: Callable[[str], str]) -> str:
    rest = "…" if len(text) > begin + limit else ""
    return f"`{'…' if begin else ''}{escape(text[begin : begin + limit])}{rest}`"


def _first_difference(old: str, new: str) -> int:
    pairs = enumerate(zip(old, new, strict=False))
    return next((index for index, (one, other) in pairs if one != other), min(len(old), len(new)))


def _look_key(text: str) -> str:
    look = unicodedata.normalize("NFKC", _VARIANTS.sub("", visible(text))).translate(_LOOKALIKES)
    return " ".join(look.split())


def _escape_all(text: str) -> str:
    return re.sub(r"(?<= ) |^ | $|[^ -~]", _escape, text)


def _escape(match: re.Match[str]) -> str:
    code = ord(match.group())
    return _NAMED.get(match.group()) or (f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}")
