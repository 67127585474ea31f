"""The faults of a catalog: their stable codes, and their text for the person who corrects them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
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
    SEVERAL_WORKSHEETS = "several_worksheets"
    WRONG_DELIMITER = "wrong_delimiter"
    MISSING_COLUMN = "missing_column"
    MAPPING_CHANGED = "mapping_changed"
    DUPLICATE_HEADER = "duplicate_header"
    CONFLICTING_COLUMNS = "conflicting_columns"
    RESERVED_COLUMN = "reserved_column"
    BAD_HEADER = "bad_header"
    UNKNOWN_REFINEMENT = "unknown_refinement"
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
    AMBIGUOUS_OPTION = "ambiguous_option"
    MISSING_OPTION = "missing_option"
    OPTION_COLUMN = "option_column"
    MALFORMED_SELECTIONS = "malformed_selections"
    MALFORMED_REFINEMENT = "malformed_refinement"
    UNAVAILABLE_OPERATION = "unavailable_operation"
    UNKNOWN_MODEL = "unknown_model"
    UNREADABLE_REFERENCE = "unreadable_reference"
    UNSAFE_CHARACTERS = "unsafe_characters"
    NOT_IN_RUN = "not_in_run"
    NOT_TEXT = "not_text"
    MISREAD_TEXT = "misread_text"
    SPREADSHEET_ERROR = "spreadsheet_error"
    NUMBER_AS_SHOWN = "number_as_shown"
    PLACEHOLDER = "placeholder"


#: Faults of a word: rows with another one have another cause. Of the others each row's text is its own.
OF_A_WORD = frozenset(
    {
        RowCode.UNKNOWN_CATEGORY,
        RowCode.UNLISTED_CATEGORY,
        RowCode.AMBIGUOUS_CATEGORY,
        RowCode.UNKNOWN_OPTION,
        RowCode.UNKNOWN_VALUE,
        RowCode.MISSING_OPTION,
        RowCode.AMBIGUOUS_OPTION,
        RowCode.OPTION_COLUMN,
        RowCode.UNKNOWN_MODEL,
    }
)


@dataclass(frozen=True, slots=True)
class Problem:
    """A fault of a row. Equal cells share it until it is put in its place with `at`."""

    column: str | None
    code: RowCode
    message: str
    remedy: str
    #: What is wrong in the cell, as written: the whole cell, or the one value of its JSON. None: no text is at fault.
    value: str | None = None
    #: What to write instead of `value`, where one text is near enough to be named.
    suggestion: str | None = None
    #: Everything that could be written there.
    offered: tuple[str, ...] = ()
    #: The row number that a spreadsheet shows; the header is row 1.
    line: int = 0
    sku: str | None = None

    def at(self, line: int, sku: str | None) -> Problem:
        return replace(self, line=line, sku=sku)

    def __str__(self) -> str:
        return f"{self.message}; {self.remedy}" if self.remedy else self.message


def rows_named(lines: Iterable[int], most: int = 6) -> str:
    """Rows in short: `row 3`, `8 rows (2-5, 9 and 3 more)`."""
    ranges: list[tuple[int, int]] = []
    numbers = sorted(set(lines))
    for line in numbers:
        if ranges and ranges[-1][1] == line - 1:
            ranges[-1] = (ranges[-1][0], line)
        else:
            ranges.append((line, line))
    if len(numbers) == 1:
        return f"row {numbers[0]}"
    named = ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges[:most])
    hidden = sum(last - first + 1 for first, last in ranges[most:])
    return f"{len(numbers):,} rows ({named}{f' and {hidden:,} more' if hidden else ''})"


def refusal(code: FileCode, message: str, remedy: str) -> InputRefused:
    return InputRefused(message, code=code.value, remedy=remedy)
