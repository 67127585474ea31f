"""The rows of a catalog as plain values: what is bought for each, and why others are refused."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from patternmill.planning.normal_text import folded_keys
from patternmill.planning.problems import Problem
from patternmill.planning.refinements import Refinement
from patternmill.text import UNSAFE


def tidy(text: str) -> str:
    """Return a text as it counts for a purchase: composed Unicode, LF line ends, no outer spaces."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text if text.isascii() and text == text.strip() else unicodedata.normalize("NFC", text).strip()


def sku_key(sku: str) -> str:
    """Return the key shared by all skus that differ only in case or spaces."""
    if sku.isascii():
        return "".join(sku.split()).lower()
    return "".join(unicodedata.normalize("NFC", sku).split()).casefold()


def is_blank(text: str) -> bool:
    """Return whether nothing of a text can be seen."""
    if not text or text.isspace():
        return True
    return not (text.isascii() and text.isprintable()) and not UNSAFE.sub("", text).strip()


@dataclass(frozen=True, slots=True)
class Content:
    """The content of a row, which is what is bought, as its run resolved it."""

    prompt: str
    #: The environment's ID of the category; as written where the offer is unknown.
    category: str
    #: Option name to value, sorted by name, in the offered spelling.
    selections: Mapping[str, str]
    #: The model as the service lists it, or as written where it lists none. None if the service chooses.
    model: str | None = None
    #: The SHA-256 of the picture that guides the pattern.
    reference: str | None = None
    #: What is done to the pattern, in order.
    refinements: tuple[Refinement, ...] = ()
    #: The chosen take of the pattern; None for the first.
    take: int | None = None
    #: The category's name in the offer; None where no offer was read.
    category_name: str | None = None
    #: Whether category and options were looked up in an offer.
    is_checked: bool = False
    #: The keys of the selections, where folded keys would stand for two values of the offer.
    exact_keys: Mapping[str, str] | None = None

    @property
    def selection_keys(self) -> Mapping[str, str]:
        """Return what identifies the selections: the keys of options with those of their values."""
        return self.exact_keys if self.exact_keys is not None else folded_keys(self.selections)

    @property
    def identity(self) -> tuple[object, ...]:
        """Return what is bought, without sku and take; equal contents would make the same."""
        refinements = tuple((refinement.operation, str(refinement)) for refinement in self.refinements)
        keys = tuple(sorted(self.selection_keys.items()))
        return self.prompt, self.model, self.reference, refinements, self.category, keys

    @classmethod
    def of(cls, row: Content) -> Content:
        """Return a row's content without the rest of the row."""
        return cls(*(getattr(row, name) for name in cls.__slots__))

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Content:
        """Return the content that `as_json` was called on."""
        fields = {name: record[name] for name in cls.__slots__ if name in record}
        refinements = tuple(Refinement(*refinement) for refinement in record.get("refinements", ()))
        return cls(**fields | {"refinements": refinements})

    def as_json(self) -> dict[str, Any]:
        """Return the content as a JSON object, without what a row does not name."""
        refinements = [[refinement.operation, refinement.parameters] for refinement in self.refinements]
        fields = {name: getattr(self, name) for name in Content.__slots__} | {"refinements": refinements}
        always = ("prompt", "category", "selections")
        return {name: value for name, value in fields.items() if value or name in always}

    def fields(self) -> dict[str, str]:
        """Return `prompt`, `category`, `option:<name>` and whatever else the row names, with their values."""
        options = {f"option:{name}": value for name, value in self.selections.items()}
        named = {"model": self.model, "reference": self.reference, "take": str(self.take or 1)}
        if len(self.refinements) > 1:
            named["refinements"] = ", ".join(refinement.operation for refinement in self.refinements)
        refined = {f"refine:{refinement.operation}": str(refinement) for refinement in self.refinements}
        extras = {name: value for name, value in named.items() if value} | refined
        return {"prompt": self.prompt, "category": self.category, **options, **extras}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row(Content):
    """A row of a catalog that passed `check_catalog`; one that cannot be bought as it is never becomes a Row."""

    #: The row number that a spreadsheet shows; the header is 1.
    line: int
    sku: str


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of a sheet: its row, or the problems for which it is refused."""

    #: The row number that a spreadsheet shows; the header is 1.
    line: int
    row: Row | None
    problems: tuple[Problem, ...] = ()
    #: Whether the row tells which sku it is about; a refused row may not.
    is_sku_readable: bool = True


class RowRecord(NamedTuple):
    """One row of a run as the ledger keeps it."""

    line: int
    #: The sku; empty where the row has none.
    sku: str
    #: JSON of what was understood of it, or of why it was refused.
    row: str
    #: JSON of what became of it.
    outcome: str
