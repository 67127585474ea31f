"""The faults of a catalog: their stable codes, and their text for the person who corrects them.

Here are those of a cell alone too: what a spreadsheet or a person left where something else was meant.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from patternmill.errors import InputRefused
from patternmill.text import UNSAFE, shown


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


#: In English, which appears everywhere, German, French and Spanish.
_ERRORS = re.compile(
    r"#(?:NULL!|DIV/0!|VALUE!|REF!|NAME\?|NUM!|N/A|SPILL!|CALC!|ERROR!|GETTING_DATA|WERT!|BEZUG!|ZAHL!|NV|VALEUR!"
    r"|NOM\?|NOMBRE!|¡VALOR!|¡REF!|¿NOMBRE\?|¡NUM!|N/D)"
)
#: LibreOffice's, and what is shown where a column is too narrow.
_CODED = re.compile(r"Err:[1-9]\d\d|#{3,}")
#: Excel writes a capital E, a sign, and two digits or more; it shortens no text.
_SHORTENED = re.compile(r"\d(?:[.,\u066b]\d+)?E\+\d{2,3}")
#: How a text is kept from becoming a number in a CSV file: `="00123"`.
_QUOTED = re.compile(r'="((?:[^"]|"")*)"')
#: What a program leaves of a character that it could not read.
_LOST = "\ufffd"

#: In characters, of what is looked at as a placeholder.
_LONGEST = 30
_WORDS = re.compile(r"[^\W_]+")
#: Nobody pays for a picture of these words.
_TO_DO = re.compile(
    r"tb[dac]|todo|fixme|t b d|to do|to be (?:done|decided|defined|determined|confirmed|announced)|xxx"
    r"|lorem ipsum(?: dolor sit amet)?"
)


def error_problem(column: str, cell: str) -> Problem | None:
    """What a program put in place of the text: an error, a formula, signs of another encoding."""
    text = cell.strip()
    if not text.isascii() and (misread := _misread_problem(column, text)):
        return misread
    if quoted := _QUOTED.fullmatch(text):
        meant = quoted[1].replace('""', '"')
        message = f"{shown(text)} is a formula, not the text that it shows"
        return Problem(column, RowCode.SPREADSHEET_ERROR, message, f"write {shown(meant)}", text, meant)
    if not text.startswith(("#", "Err:")) or not (_ERRORS.fullmatch(text) or _CODED.fullmatch(text)):
        return None
    message = f"{shown(text)} is a spreadsheet's error, not what its formula was to find"
    remedy = "correct the formula, or type what belongs there"
    if not text.strip("#"):
        message = f"{shown(text)} is what a spreadsheet shows where a column is too narrow"
        remedy = "widen the column and save the file again"
    return Problem(column, RowCode.SPREADSHEET_ERROR, message, remedy, text)


def _misread_problem(column: str, text: str) -> Problem | None:
    """UTF-8 that a program read as Windows-1252, or could not read, and saved like that."""
    try:
        meant = text.encode("cp1252").decode()
    except UnicodeError:
        if _LOST not in text:
            return None
        message = f"{shown(text)} has lost letters: a program read it in the wrong encoding, and saved it"
        return Problem(column, RowCode.MISREAD_TEXT, message, "write them, and save the file as UTF-8", text)
    message = f"{shown(text)} was read in the wrong encoding by a program, and saved like that"
    remedy = f"write {shown(meant)}, and save the file as UTF-8"
    return Problem(column, RowCode.MISREAD_TEXT, message, remedy, text, meant)


def unfit_problem(column: str, cell: str) -> Problem | None:
    """The fault of a cell, or a name, with what is never written on purpose: an error, signs that cannot be seen."""
    if found := error_problem(column, cell):
        return found
    if (cell.isascii() and cell.isprintable()) or not UNSAFE.search(cell.strip(" \t\r\n")):
        return None
    message = f"invisible or control characters in {shown(cell)}"
    remedy = "type it by hand instead of pasting it"
    visible = " ".join(UNSAFE.sub("", re.sub(r"\s", " ", cell)).split())
    return Problem(column, RowCode.UNSAFE_CHARACTERS, message, remedy, cell, visible or None)


def shortened_number_problem(column: str, sku: str) -> Problem | None:
    """A number as a spreadsheet shows a longer one: its last digits are lost, and others may read the same."""
    if "E+" not in sku or not _SHORTENED.fullmatch(sku):
        return None
    message = f"{shown(sku)} is how a spreadsheet shows a long number in short: digits of it are missing"
    remedy = "format the column as Text, put the whole number in again, and save the file"
    return Problem(column, RowCode.NUMBER_AS_SHOWN, message, remedy, sku)


def placeholder_problem(column: str, prompt: str) -> Problem | None:
    """A normalised prompt that says no more than that there is none yet."""
    if len(prompt) > _LONGEST:
        return None
    words = " ".join(_WORDS.findall(prompt.casefold()))
    if words and not _TO_DO.fullmatch(words) and (len(words) <= 3 or words.strip("x")):
        return None
    if words:
        message = f"{shown(prompt)} stands for a prompt that is not written yet"
        remedy = "describe the pattern; if these very signs are to be drawn, say so: `the letters TBD`"
    elif all(unicodedata.category(sign).startswith("P") for sign in prompt if not sign.isspace()):
        message = f"{shown(prompt)} says nothing that could be drawn"
        remedy = "describe the pattern; if these very signs are meant, name them: `a row of dots`"
    else:
        return None
    return Problem(column, RowCode.PLACEHOLDER, message, remedy, prompt)
