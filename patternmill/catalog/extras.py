"""The columns `model`, `reference` and `refine:<operation>`, checked against what is known of the service."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from patternmill.catalog.catalog_file import CatalogFile
from patternmill.catalog.offer import Nearest, Offer
from patternmill.catalog.problems import Problem, RowCode, error_problem, unfit_problem
from patternmill.catalog.refinements import Refinement, read_refinement
from patternmill.catalog.rows import is_blank, tidy
from patternmill.catalog.selections import unfound
from patternmill.text import shown

#: Next to the names of refinements in what the service may lack.
UPLOAD = "reference"
_CACHED = 4096


@dataclass(frozen=True, slots=True)
class Picture:
    """The bytes of a reference, by which it is known."""

    sha256: str
    raw: bytes = field(repr=False)


@dataclass(frozen=True)
class Extras:
    """What rows may name besides the offer."""

    #: The models in the form of an offer; None: the list of them was not read.
    models: Offer | None = None
    #: By the cell, tidied: the picture, or why it cannot be used.
    pictures: Mapping[str, Picture | Problem] = field(default_factory=dict, repr=False)
    #: Refinements, or UPLOAD, that the service does not have: why that is known.
    unavailable: Mapping[str, str] = field(default_factory=dict)
    #: A sentence on what could not be checked.
    note: str | None = None

    @property
    def bytes_of(self) -> Mapping[str, bytes]:
        """The pictures by their SHA-256."""
        return {one.sha256: one.raw for one in self.pictures.values() if isinstance(one, Picture)}


def unreadable(message: str, remedy: str) -> Problem:
    """Why a picture cannot be used, and what to do."""
    return Problem(None, RowCode.UNREADABLE_REFERENCE, message, remedy)


class ExtraColumns:
    """Reads these columns of one file's rows."""

    def __init__(self, file: CatalogFile, extras: Extras) -> None:
        self._header, self._columns, self._extras = file.header, file.columns, extras
        self._nearest = Nearest()
        self._refinement = lru_cache(_CACHED)(self._read_refinement)

    def read(self, cells: Sequence[str]) -> tuple[dict[str, Any], list[Problem]]:
        """The fields of a Row that these columns have, and what is wrong in their cells."""
        read = (self._model(cells), self._reference(cells), *self._refinements(cells))
        model, reference, *refinements = read
        fields = {"model": model, "reference": reference, "refinements": tuple(refinements)}
        return fields, [one for one in read if isinstance(one, Problem)]

    def _model(self, cells: Sequence[str]) -> str | Problem | None:
        """As the service lists it, or as written where no list can be read."""
        index, models = self._columns.model, self._extras.models
        if index is None or is_blank(cells[index]):
            return None
        column, text = self._header[index], tidy(cells[index])
        if fault := unfit_problem(column, cells[index]):
            return fault
        if models is None:
            return text
        found = models.find(text)
        return found[0].id if len(found) == 1 else unfound(models, column, text, "model", self._nearest)

    def _reference(self, cells: Sequence[str]) -> str | Problem | None:
        index = self._columns.reference
        if index is None or is_blank(cells[index]):
            return None
        column, cell = self._header[index], tidy(cells[index])
        if error := error_problem(column, cell):
            return error
        if why := self._extras.unavailable.get(UPLOAD):
            return _unavailable(column, why)
        unknown = unreadable(f"the picture {shown(cell)} was not read", "check it with the service at hand")
        picture = self._extras.pictures.get(cell, unknown)
        return picture.sha256 if isinstance(picture, Picture) else replace(picture, column=column)

    def _refinements(self, cells: Sequence[str]) -> Iterator[Refinement | Problem]:
        for index, operation in self._columns.refinements.items():
            if not is_blank(cells[index]):
                yield self._refinement(operation, cells[index], self._header[index])

    def _read_refinement(self, operation: str, cell: str, column: str) -> Refinement | Problem:
        if why := self._extras.unavailable.get(operation):
            return _unavailable(column, why)
        return error_problem(column, cell) or read_refinement(operation, tidy(cell), column)


def _unavailable(column: str, why: str) -> Problem:
    remedy = "empty the cell, or name the operation in PATTERNMILL_OPERATIONS_FILE if it is called otherwise"
    return Problem(column, RowCode.UNAVAILABLE_OPERATION, why, remedy)
