"""Reads single cells: slips of programs and people, words that nobody offers, models, references, refinements."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import replace

from patternmill.planning.extras import UPLOAD, Extras, Picture, unreadable
from patternmill.planning.normal_text import normalised
from patternmill.planning.offer import Nearest, Offer, listed
from patternmill.planning.problems import Problem, RowCode
from patternmill.planning.refinements import Refinement, read_refinement
from patternmill.planning.rows import is_blank, tidy
from patternmill.text import UNSAFE, shown

#: The errors of spreadsheets, in every language; without the sign at the end it may be a hashtag.
_ERRORS = re.compile(r"#[¡¿]?[A-ZÀ-ÖØ-Þ]{3,}(?:/0)?[!?]|#[A-Z]/[A-Z]!?|#NV|#GETTING_DATA")
#: The errors of LibreOffice, and what is shown where a column is too narrow.
_CODED = re.compile(r"Err:[1-9]\d\d|#{3,}")
#: Excel writes a capital E, a sign, and two digits or more; it shortens no text.
_SHORTENED = re.compile(r"\d(?:[.,\u066b]\d+)?E\+\d{2,3}")
#: How a text is kept from becoming a number in a CSV file: `="00123"`.
_QUOTED = re.compile(r'="((?:[^"]|"")*)"')
#: What a program leaves of a character that it could not read.
_LOST = "\ufffd"

#: The longest prompt, in characters; the interface names no limit.
PROMPT_LIMIT = 4000
#: The longest text that may be a placeholder, in characters.
LONGEST_PLACEHOLDER = 30
_WORDS = re.compile(r"[^\W_]+")


def _phrases(text: str) -> frozenset[str]:
    return frozenset(" ".join(phrase.split()) for phrase in text.split(","))


#: What people write for "still to be done"; nobody pays for a picture of these words.
_TO_DO = _phrases(
    """tba, tbc, tbd, t b d, todo, to do, fixme, xxx, wip, pending, placeholder, dummy, to be done, to be decided,
    to be defined, to be determined, to be confirmed, to be announced, to be added, to follow, coming soon, lorem ipsum,
    lorem ipsum dolor sit amet, loading"""
)
#: What programs and people write for "nothing".
_NOTHING = _phrases(
    """nan, none, null, nil, na, n a, nat, undefined, not available, not applicable, no data, no prompt, no description,
    missing, empty, blank, unknown, k a, keine angabe, keine, kein, leer, fehlt, nicht vorhanden, vide, aucun, aucune,
    néant, non disponible, ninguno, ninguna, vacío, nd, n d, s d"""
)
#: What people write for "what the row above says".
_DITTO = _phrases(
    """ditto, dito, dto, do, idem, ídem, id, ibid, ibidem, same, same as above, as above, see above, same as before,
    as before, same as previous, same as previous row, same as prev, same as last, same again, as previous, like above,
    copy from above, repeat above, s o, so, siehe oben, wie oben, wie vorher, wie zuvor, wie vorige zeile, dasselbe,
    ebenso, comme ci dessus, voir ci dessus, cf ci dessus, ci dessus, igual, igual que arriba, ver arriba, como arriba,
    lo mismo, come sopra, vedi sopra, c s, zie boven, 同上, 同前, см выше, то же"""
)
_DITTO_MARKS = re.compile(r"[-\s]*(?:[\"\u2033\u3003]|''|,,)+[-\s]*")


def error_problem(column: str, cell: str) -> Problem | None:
    """Return the fault of a cell whose text a program replaced: an error, a formula, signs of another encoding."""
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
    """Return the fault of UTF-8 that a program read as Windows-1252, or could not read, and then saved."""
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
    """Return the fault of a name that holds what nobody writes on purpose: an error, or invisible signs."""
    if error := error_problem(column, cell):
        return error
    if (cell.isascii() and cell.isprintable()) or not UNSAFE.search(cell.strip(" \t\r\n")):
        return None
    message = f"invisible or control characters in {shown(cell)}"
    remedy = "type it by hand instead of pasting it"
    visible = " ".join(UNSAFE.sub("", re.sub(r"\s", " ", cell)).split())
    return Problem(column, RowCode.UNSAFE_CHARACTERS, message, remedy, cell, visible or None)


def sku_problem(column: str, cell: str) -> Problem | None:
    """Return the fault of a sku that is blank, unfit, or a longer number as a spreadsheet shortens it."""
    sku = tidy(cell)
    if is_blank(sku):
        return Problem(column, RowCode.EMPTY_SKU, "the sku is empty", "write a sku of its own")
    if not _SHORTENED.fullmatch(sku):
        return unfit_problem(column, cell)
    message = f"{shown(sku)} is how a spreadsheet shows a long number in short: digits of it are missing"
    remedy = "format the column as Text, put the whole number in again, and save the file"
    return Problem(column, RowCode.NUMBER_AS_SHOWN, message, remedy, sku)


def prompt_problem(column: str, cell: str) -> Problem | None:
    prompt = normalised(cell)
    if is_blank(prompt):
        return Problem(column, RowCode.EMPTY_PROMPT, "the prompt is empty", "describe the pattern")
    if fault := error_problem(column, cell) or _placeholder_problem(column, prompt):
        return fault
    if len(prompt) <= PROMPT_LIMIT:
        return None
    message = f"the prompt has {len(prompt)} characters; {PROMPT_LIMIT} are allowed"
    return Problem(column, RowCode.PROMPT_TOO_LONG, message, f"shorten it by {len(prompt) - PROMPT_LIMIT}")


def _placeholder_problem(column: str, prompt: str) -> Problem | None:
    """Return the fault of a prompt, as normal text, that says no more than that there is none yet."""
    if len(prompt) > LONGEST_PLACEHOLDER:
        return None
    words = " ".join(_WORDS.findall(prompt.casefold()))
    what, remedy = (
        None,
        "describe the pattern; if these very signs are to be drawn, say so: `the letters TBD`",
    )
    if words in _DITTO or _DITTO_MARKS.fullmatch(prompt):
        what = "refers to another row"
        remedy = "write that row's prompt here too: rows with the same prompt share one pattern, which is paid for once"
    elif words in _NOTHING:
        what = "is how programs write that a cell is empty"
    elif words in _TO_DO or (len(words) > 3 and not words.strip("x")):
        what = "stands for a prompt that is not written yet"
    elif not words and all(
        unicodedata.category(sign).startswith("P") for sign in prompt if not sign.isspace()
    ):
        what = "says nothing that could be drawn"
        remedy = "describe the pattern; if these very signs are meant, name them: `a row of dots`"
    return Problem(column, RowCode.PLACEHOLDER, f"{shown(prompt)} {what}", remedy, prompt) if what else None


def names_offered(names: Sequence[str]) -> str:
    """Return `offered: linen, velvet`."""
    return f"offered: {listed(names) or 'none'}"


def did_you_mean(nearest: str | None, otherwise: str) -> str:
    """Return the remedy of a word that nobody offers."""
    return f"did you mean {shown(nearest)}?" if nearest else otherwise


def unknown_name(offer: Offer, column: str, text: str, noun: str, nearest: Nearest) -> Problem:
    """Return the problem of a category or a model (`noun`) that is not offered, or could be one of several."""
    matches, every = offer.find(text), offer.categories or ()
    if matches:
        ids = tuple(match.id for match in matches)
        code = RowCode.AMBIGUOUS_CATEGORY if noun == "category" else RowCode.UNKNOWN_MODEL
        message = f"the {noun} {shown(text)} can be {', '.join(map(shown, ids))}"
        return Problem(column, code, message, "write the ID that is meant", text, None, ids)
    code = RowCode.UNKNOWN_CATEGORY if noun == "category" else RowCode.UNKNOWN_MODEL
    names = tuple(dict.fromkeys(entry.name for entry in every))
    near = nearest.find(text, tuple(dict.fromkeys((*names, *(entry.id for entry in every)))))
    message = f"unknown {noun} {shown(text)}; {names_offered(names)}"
    return Problem(column, code, message, did_you_mean(near, "use one of these"), text, near, names)


class ExtraCells:
    """Reads single cells: each gives what the row asks for, or what is wrong with it, or None if it is blank."""

    def __init__(self, extras: Extras) -> None:
        self._extras, self._nearest = extras, Nearest()

    def model(self, column: str, cell: str) -> str | Problem | None:
        """Return the model as the service lists it, or as written where no list can be read."""
        if is_blank(cell):
            return None
        text, models = tidy(cell), self._extras.models
        if unfit := unfit_problem(column, cell):
            return unfit
        if models is None:
            return text
        matches = models.find(text)
        return (
            matches[0].id if len(matches) == 1 else unknown_name(models, column, text, "model", self._nearest)
        )

    def reference(self, column: str, cell: str) -> str | Problem | None:
        """Return the SHA-256 of the picture that the cell names."""
        if is_blank(cell):
            return None
        text = tidy(cell)
        if error := error_problem(column, text):
            return error
        if why := self._extras.unavailable.get(UPLOAD):
            return _unavailable(column, why)
        unread = unreadable(f"the picture {shown(text)} was not read", "check it with the service at hand")
        picture = self._extras.pictures.get(text, unread)
        return picture.sha256 if isinstance(picture, Picture) else replace(picture, column=column)

    def refinement(self, operation: str, column: str, cell: str) -> Refinement | Problem | None:
        """Return what is to be done to the pattern."""
        if is_blank(cell):
            return None
        if why := self._extras.unavailable.get(operation):
            return _unavailable(column, why)
        return error_problem(column, cell) or read_refinement(operation, tidy(cell), column)


def _unavailable(column: str, why: str) -> Problem:
    remedy = "empty the cell, or name the operation in PATTERNMILL_OPERATIONS_FILE if it is called otherwise"
    return Problem(column, RowCode.UNAVAILABLE_OPERATION, why, remedy)
