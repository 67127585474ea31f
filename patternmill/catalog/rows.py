"""The row: one product that a person requests, checked against the offer."""

from __future__ import annotations

import unicodedata
from dataclasses import field
from typing import Annotated

from pydantic import AfterValidator, SkipValidation
from pydantic.dataclasses import dataclass

from patternmill.catalog.problems import UNSAFE


def tidy(text: str) -> str:
    """In Unicode's composed form, lines ended by LF, without outer spaces: the text as it counts for what is bought."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text if text.isascii() and text == text.strip() else unicodedata.normalize("NFC", text).strip()


def sku_key(sku: str) -> str:
    """What skus have in common that differ in case or spaces only."""
    if sku.isascii():
        return "".join(sku.split()).lower()
    return "".join(unicodedata.normalize("NFC", sku).split()).casefold()


def is_blank(text: str) -> bool:
    """Nothing that could be seen."""
    return not text or text.isspace() or not UNSAFE.sub("", text).strip()


def _tidy_text(text: str) -> str:
    if is_blank(text) or tidy(text) != text:
        raise ValueError("must be composed (NFC) text with LF and without outer spaces")
    return text


def _safe_text(text: str) -> str:
    if UNSAFE.search(text):
        raise ValueError("must be without control, direction and invisible characters")
    return text


TidyText = Annotated[str, AfterValidator(_tidy_text)]
SafeText = Annotated[str, AfterValidator(_safe_text)]
Identifier = Annotated[TidyText, AfterValidator(_safe_text)]


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the catalog. What cannot be bought as it is never becomes a Row.

    A pydantic dataclass: with slots, a hundred thousand rows take 100 MB less than as a pydantic model.
    """

    #: The row number that a spreadsheet shows; the header is 1.
    line: int
    sku: Identifier
    prompt: TidyText
    #: As written.
    category: Identifier
    #: As the environment offers it; the category as written where its offer is unknown.
    category_id: SafeText | None
    #: Option name to value, sorted by name, in the offered spelling.
    selections: dict[SafeText, SafeText]
    #: The whole row as the file has it.
    cells: Annotated[tuple[str, ...], SkipValidation]
    #: The same options as the row spells them.
    written: Annotated[dict[str, str], SkipValidation] = field(default_factory=dict)
    #: Whether the selections were checked against an offer that could be read whole.
    is_resolved: bool = True
