"""The faults of rows: stable codes, and texts for the person who corrects them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum


class RowCode(StrEnum):
    """The reason why one row is refused while others are made. Values are stable: results have them in `error_code`."""

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
    AMBIGUOUS_OPTION = "ambiguous_option"
    MISSING_OPTION = "missing_option"
    OPTION_COLUMN = "option_column"
    MALFORMED_SELECTIONS = "malformed_selections"
    MALFORMED_REFINEMENT = "malformed_refinement"
    UNAVAILABLE_OPERATION = "unavailable_operation"
    UNKNOWN_MODEL = "unknown_model"
    UNREADABLE_REFERENCE = "unreadable_reference"
    UNSAFE_CHARACTERS = "unsafe_characters"
    NOT_TEXT = "not_text"
    MISREAD_TEXT = "misread_text"
    SPREADSHEET_ERROR = "spreadsheet_error"
    NUMBER_AS_SHOWN = "number_as_shown"
    PLACEHOLDER = "placeholder"


#: Faults of a word: rows with the same wrong word have the same cause. Texts of other faults differ from row to row.
OF_A_WORD = frozenset(
    {
        RowCode.UNKNOWN_CATEGORY,
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
    """A fault of a row. Rows with equal cells share it until `at` gives each its own."""

    column: str | None
    code: RowCode
    message: str
    remedy: str
    #: The text that is wrong, as written: the cell, or one value of its JSON. None if no text is at fault.
    value: str | None = None
    #: What to write instead of `value`, where a text is near enough to be suggested.
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
    """Return a short name of rows: `row 3`, `8 rows (2-5, 9 and 3 more)`."""
    named = numbers_named(different := set(lines), most)
    return f"row {named}" if len(different) == 1 else f"{len(different):,} rows ({named})"


def numbers_named(lines: Iterable[int], most: int = 6) -> str:
    """Return the numbers of rows as ranges: `2-5, 9 and 3 more`."""
    ranges: list[tuple[int, int]] = []
    for line in sorted(lines):
        ranges.append((ranges.pop()[0] if ranges and ranges[-1][1] == line - 1 else line, line))
    named = ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges[:most])
    hidden = sum(last - first + 1 for first, last in ranges[most:])
    return f"{named} and {hidden:,} more" if hidden else named
