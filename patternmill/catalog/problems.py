"""The faults of a catalog: their stable codes, and how one is told to the person who can mend it."""

from __future__ import annotations

import re
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
    """Why one row is refused while the others go on. Stable: they stand in `error_code` of the results."""

    SURPLUS_CELLS = "surplus_cells"
    MISSING_CELLS = "missing_cells"
    EMPTY_SKU = "empty_sku"
    DUPLICATE_SKU = "duplicate_sku"
    EMPTY_PROMPT = "empty_prompt"
    PROMPT_TOO_LONG = "prompt_too_long"
    EMPTY_CATEGORY = "empty_category"
    UNKNOWN_CATEGORY = "unknown_category"
    AMBIGUOUS_CATEGORY = "ambiguous_category"
    UNKNOWN_OPTION = "unknown_option"
    UNKNOWN_VALUE = "unknown_value"
    DUPLICATE_OPTION = "duplicate_option"
    MISSING_OPTION = "missing_option"
    MALFORMED_SELECTIONS = "malformed_selections"
    UNSAFE_CHARACTERS = "unsafe_characters"


@dataclass(frozen=True, slots=True)
class Finding:
    """A fault of some cells, not yet tied to the row that they stand in: equal cells share one."""

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


#: Characters that nobody sees, or that make a terminal or a page show something else than what is there.
UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff]"
)


def shown(text: str, limit: int = 60) -> str:
    """The text in backticks, fit for a terminal."""
    return f"`{plain(text, limit)}`"


def plain(text: str, limit: int = 60) -> str:
    """The text fit for a terminal: shortened, and unsafe characters written as escapes."""
    short = text if len(text) <= limit else text[: limit - 1] + "…"
    return UNSAFE.sub(_escape, short)


def _escape(match: re.Match[str]) -> str:
    return f"\\u{ord(match.group()):04x}"
