"""How a file is read: what its mapping says about it, and what was read in the end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

from patternmill.text import plain

#: The name in a run's options under which the layout of its input is on record.
READING = "reading"
#: The formats of workbooks, as they are on record there.
WORKBOOK_FORMATS = ("Excel workbook", "OpenDocument spreadsheet")

DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}


@dataclass(frozen=True, slots=True)
class SheetChoices:
    """How a mapping says that a file is read. None: as the file shows it."""

    #: Of bytes that are neither UTF-8 nor UTF-16 with its mark.
    encoding: str | None = None
    #: Of a workbook: the worksheet's name.
    worksheet: str | None = None
    #: The number of the row that names the columns, as a spreadsheet shows it.
    header: int | None = None
    delimiter: str | None = None

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Self:
        """From a JSON object with any of the fields; what else it has is not read."""
        return cls(**{name: record.get(name) for name in cls.__slots__})


NO_CHOICES = SheetChoices()


@dataclass(frozen=True, slots=True)
class SheetLayout:
    """How a file was read: enough for a person to see whether that is what is meant."""

    #: What the file is, as people call it: `CSV`, `Excel workbook`.
    format: str
    #: Of the file as it was, in hexadecimal: the catalog's own bytes may be a conversion of it.
    sha256: str
    #: Of text files.
    encoding: str | None = None
    delimiter: str | None = None
    #: Of workbooks.
    worksheet: str | None = None
    header_row: int | None = None

    @property
    def text(self) -> str:
        """`Excel workbook, worksheet “Artikel”, header in row 3`."""
        parts = (
            self.format,
            f"worksheet “{plain(self.worksheet)}”" if self.worksheet is not None else None,
            f"columns separated by {DELIMITERS.get(self.delimiter, self.delimiter)}"
            if self.delimiter
            else None,
            self.encoding and self.encoding.removesuffix("-sig").upper(),
            f"header in row {self.header_row}" if (self.header_row or 1) > 1 else None,
        )
        return ", ".join(filter(None, parts))

    def on_record(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if value is not None}
