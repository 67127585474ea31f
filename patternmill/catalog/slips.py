"""What a spreadsheet or a person left where something else was meant: errors, short numbers, placeholders."""

from __future__ import annotations

import re
import unicodedata

from patternmill.catalog.problems import Finding, RowCode
from patternmill.text import UNSAFE, shown

#: In English, which appears everywhere, German, French and Spanish.
_ERRORS = frozenset(
    [
        "#NULL!",
        "#DIV/0!",
        "#VALUE!",
        "#REF!",
        "#NAME?",
        "#NUM!",
        "#N/A",
        "#SPILL!",
        "#CALC!",
        "#ERROR!",
        "#GETTING_DATA",
        "#WERT!",
        "#BEZUG!",
        "#ZAHL!",
        "#NV",
        "#VALEUR!",
        "#NOM?",
        "#NOMBRE!",
        "#¡VALOR!",
        "#¡REF!",
        "#¿NOMBRE?",
        "#¡NUM!",
        "#N/D",
    ]
)
#: LibreOffice's, and what is shown where a column is too narrow.
_CODED = re.compile(r"Err:[1-9]\d\d|#{3,}")
#: Excel writes a capital E, a sign, and two digits or more; it shortens no text.
_SHORTENED = re.compile(r"\d(?:[.,\u066b]\d+)?E\+\d{2,3}")


def _phrases(text: str) -> frozenset[str]:
    return frozenset(text.split(", "))


#: In characters, of what is looked at as a placeholder.
_LONGEST = 30
_WORDS = re.compile(r"[^\W_]+")
#: Nobody pays for a picture of these words.
_TO_DO = _phrases(
    "tbd, tba, tbc, todo, fixme, t b d, to do, to be done, to be decided, to be defined, to be determined, "
    "to be confirmed, to be announced, xxx, lorem ipsum, lorem ipsum dolor sit amet"
)
#: Few want one of these.
_DOUBTFUL = _phrases(
    "prompt, prompts, your prompt here, enter prompt, description, text, placeholder, untitled, test, testing, a test, "
    "example, sample, dummy, foo, bar, baz, asdf, qwerty, abc, n a, na, undefined, loading, nan, null, none, nil, "
    "unknown, empty, missing, pending, same, ditto, same as above, see above, as above, no prompt, no pattern, no image"
)
#: A formula that is its own text: a function, a text, or a cell, of another worksheet too (`='Spring list'!$B$2`).
_FORMULA = re.compile(
    r"=[-+]?(?:[^\W\d_][\w.]*\(.*\)|\"[^\"]*\"\s*&.*)"
    r"|[=+][-+]?(?:(?:'[^']+'|\$?\w+)[!.])?\$?[A-Z]{1,3}\$?\d{1,7}(?:[-+*/&:;,!].*)?",
    re.DOTALL | re.IGNORECASE,
)
#: What stands for a picture, or numbers one.
_ADDRESS = re.compile(r"(?:(?:https?|ftp|file)://|www\.)\S+", re.IGNORECASE)
_FILE_NAME = re.compile(
    r"(?:\S+ ){0,3}\S*\w\.(?:png|jpe?g|webp|gif|tiff?|svg|bmp|heic|psd|ai|eps|pdf|indd|xlsx?|docx?|csv|txt)",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"#?\d[\d.,' ]*")
_IN_BRACKETS = re.compile(r"<[^<>]+>|\[[^\[\]]+\]|\$?\{.+\}|%[^%]+%")


def error_finding(column: str, cell: str) -> Finding | None:
    """An error of a spreadsheet's formula in place of its result."""
    text = cell.strip()
    if not text.startswith(("#", "Err:")) or not (text in _ERRORS or _CODED.fullmatch(text)):
        return None
    message = f"{shown(text)} is a spreadsheet's error, not what its formula was to find"
    remedy = "correct the formula, or type what belongs there"
    if not text.strip("#"):
        message = f"{shown(text)} is what a spreadsheet shows where a column is too narrow"
        remedy = "widen the column and save the file again"
    return Finding(column, RowCode.SPREADSHEET_ERROR, message, remedy, text)


def unfit_finding(column: str, cell: str) -> Finding | None:
    """The fault of a cell, or a name, with what is never written on purpose: an error, signs that cannot be seen."""
    if found := error_finding(column, cell):
        return found
    if (cell.isascii() and cell.isprintable()) or not UNSAFE.search(cell.strip(" \t\r\n")):
        return None
    message = f"invisible or control characters in {shown(cell)}"
    remedy = "type it by hand instead of pasting it"
    visible = " ".join(UNSAFE.sub("", re.sub(r"\s", " ", cell)).split())
    return Finding(column, RowCode.UNSAFE_CHARACTERS, message, remedy, cell, visible or None)


def shortened_number_finding(column: str, sku: str) -> Finding | None:
    """A number as a spreadsheet shows a longer one: its last digits are lost, and others may read the same."""
    if "E+" not in sku or not _SHORTENED.fullmatch(sku):
        return None
    message = f"{shown(sku)} is how a spreadsheet shows a long number in short: digits of it are missing"
    remedy = "format the column as Text, put the whole number in again, and save the file"
    return Finding(column, RowCode.NUMBER_AS_SHOWN, message, remedy, sku)


def placeholder_finding(column: str, prompt: str) -> Finding | None:
    """A normalised prompt that says no more than that there is none yet."""
    if len(prompt) > _LONGEST:
        return None
    words = " ".join(_WORDS.findall(prompt.casefold()))
    if words and words not in _TO_DO and (len(words) <= 3 or words.strip("x")):
        return None
    if words:
        message = f"{shown(prompt)} stands for a prompt that is not written yet"
        remedy = "describe the pattern; if these very signs are to be drawn, say so: `the letters TBD`"
    elif all(unicodedata.category(sign).startswith("P") for sign in prompt if not sign.isspace()):
        message = f"{shown(prompt)} says nothing that could be drawn"
        remedy = "describe the pattern; if these very signs are meant, name them: `a row of dots`"
    else:
        return None
    return Finding(column, RowCode.PLACEHOLDER, message, remedy, prompt)


def is_doubtful(prompt: str) -> bool:
    """Whether a normalised prompt seems to describe no pattern, though it may be meant."""
    first = prompt[0]
    if first in "=+<[{$%#0123456789" and any(
        one.fullmatch(prompt) for one in (_FORMULA, _IN_BRACKETS, _NUMBER)
    ):
        return True
    if "." in prompt and any(one.fullmatch(prompt) for one in (_FILE_NAME, _ADDRESS)):
        return True
    return len(prompt) <= _LONGEST and " ".join(_WORDS.findall(prompt.casefold())) in _DOUBTFUL
