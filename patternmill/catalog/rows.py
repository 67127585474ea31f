"""The row: one product that a person asked for, understood and checked."""

from __future__ import annotations

import unicodedata
from typing import Annotated

from pydantic import AfterValidator, SkipValidation
from pydantic.dataclasses import dataclass

from patternmill.catalog.problems import UNSAFE


def tidy(text: str) -> str:
    """In Unicode's composed form, without outer spaces: the text as it counts for what is bought."""
    return text if text.isascii() and text == text.strip() else unicodedata.normalize("NFC", text).strip()


def is_blank(text: str) -> bool:
    """Nothing that could be seen."""
    return not text or text.isspace() or not UNSAFE.sub("", text).strip()


def _tidy_text(text: str) -> str:
    if is_blank(text) or tidy(text) != text:
        raise ValueError("must be composed (NFC) text without outer spaces")
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
    """One line of the catalog. What cannot be bought as it stands never becomes a Row.

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
