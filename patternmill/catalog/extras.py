"""The columns `model`, `reference` and `refine:<operation>`, checked against what is known of the service."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from patternmill.catalog.catalog_file import CatalogFile
from patternmill.catalog.offer import Nearest, Offer
from patternmill.catalog.problems import Finding, RowCode
from patternmill.catalog.refinements import Refinement, read_refinement
from patternmill.catalog.rows import is_blank, tidy
from patternmill.catalog.selections import unfound
from patternmill.catalog.slips import error_finding, unfit_finding
from patternmill.text import shown

#: Next to the names of refinements in what the service may lack.
UPLOAD = "reference"


@dataclass(frozen=True, slots=True)
class Picture:
    """The bytes of a reference, by which it is known."""

    sha256: str
    raw: bytes = field(repr=False)


@dataclass(frozen=True)
class Unreadable:
    """Why a reference cannot be used, and what to do."""

    message: str
    remedy: str


@dataclass(frozen=True)
class Extras:
    """What rows may name besides the offer."""

    #: The models in the form of an offer; None: the list of them was not read.
    models: Offer | None = None
    #: By the cell, tidied.
    pictures: Mapping[str, Picture | Unreadable] = field(default_factory=dict, repr=False)
    #: Refinements, or UPLOAD, that the service does not have: why that is known.
    unavailable: Mapping[str, str] = field(default_factory=dict)
    #: A sentence on what could not be checked.
    note: str | None = None

    @property
    def bytes_of(self) -> Mapping[str, bytes]:
        """The pictures by their SHA-256."""
        return {one.sha256: one.raw for one in self.pictures.values() if isinstance(one, Picture)}


@dataclass(frozen=True, slots=True)
class ReadExtras:
    """What one row names besides the offer, and its faults."""

    model: str | None = None
    reference: str | None = None
    refinements: tuple[Refinement, ...] = ()
    findings: tuple[Finding, ...] = ()


_NONE = ReadExtras()


class ExtraColumns:
    """Reads these columns of one file's rows."""

    def __init__(self, file: CatalogFile, extras: Extras) -> None:
        self._header, self._columns, self._extras = file.header, file.columns, extras
        self._nearest = Nearest()
        self._refined: dict[tuple[int, str], Refinement | Finding] = {}
        columns = file.columns
        self._has_none = columns.model is None and columns.reference is None and not columns.refinements

    def read(self, cells: Sequence[str]) -> ReadExtras:
        if self._has_none:
            return _NONE
        findings: list[Finding] = []
        model = self._model(cells, findings)
        reference = self._reference(cells, findings)
        read = list(self._refinements(cells))
        findings += [one for one in read if isinstance(one, Finding)]
        refinements = tuple(one for one in read if isinstance(one, Refinement))
        return ReadExtras(model, reference, refinements, tuple(findings))

    def _model(self, cells: Sequence[str], findings: list[Finding]) -> str | None:
        """As the service lists it, or as written where its list says nothing about it."""
        index, models = self._columns.model, self._extras.models
        if index is None or is_blank(cells[index]):
            return None
        column, text = self._header[index], tidy(cells[index])
        fault = unfit_finding(column, cells[index])
        found = models.find(text) if models is not None else ()
        is_listed = models is not None and models.categories is not None and (found or models.complete)
        if fault is None and models is not None and is_listed and len(found) != 1:
            fault = unfound(models, column, text, "model", self._nearest)
        if fault is not None:
            findings.append(fault)
            return None
        return found[0].id if found else text

    def _reference(self, cells: Sequence[str], findings: list[Finding]) -> str | None:
        index = self._columns.reference
        if index is None or is_blank(cells[index]):
            return None
        column, cell = self._header[index], tidy(cells[index])
        if error := error_finding(column, cell):
            findings.append(error)
            return None
        if why := self._extras.unavailable.get(UPLOAD):
            findings.append(_unavailable(column, why))
            return None
        unknown = Unreadable(f"the picture {shown(cell)} was not read", "check it with the service at hand")
        picture = self._extras.pictures.get(cell, unknown)
        if isinstance(picture, Picture):
            return picture.sha256
        findings.append(Finding(column, RowCode.UNREADABLE_REFERENCE, picture.message, picture.remedy))
        return None

    def _refinements(self, cells: Sequence[str]) -> Iterator[Refinement | Finding]:
        for column in self._columns.refinements:
            cell = cells[column.index]
            if is_blank(cell):
                continue
            if (column.index, cell) not in self._refined:
                self._refined[column.index, cell] = self._refinement(column.name, cell, column.index)
            yield self._refined[column.index, cell]

    def _refinement(self, operation: str, cell: str, index: int) -> Refinement | Finding:
        column = self._header[index]
        if why := self._extras.unavailable.get(operation):
            return _unavailable(column, why)
        return error_finding(column, cell) or read_refinement(operation, tidy(cell), column)


def _unavailable(column: str, why: str) -> Finding:
    remedy = "empty the cell, or name the operation in PATTERNMILL_OPERATIONS_FILE if it is called otherwise"
    return Finding(column, RowCode.UNAVAILABLE_OPERATION, why, remedy)
