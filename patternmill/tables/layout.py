"""How a file was read: enough for a person to see whether that is what is meant, and to read it again alike."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from patternmill.text import plain

#: The name in a run's options under which the layout of its input is on record.
READING = "reading"
#: The formats of workbooks, as they are on record there.
WORKBOOK_FORMATS = ("Excel workbook", "OpenDocument spreadsheet")
DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}


@dataclass(frozen=True, slots=True)
class SheetLayout:
    """How a file was read: enough for a person to see whether that is what is meant."""

    #: What the file is, as people call it: `CSV`, `Excel workbook`.
    format: str
    #: Of its bytes, in hexadecimal.
    sha256: str
    #: Of text files.
    encoding: str | None = None
    delimiter: str | None = None
    #: Of workbooks.
    worksheet: str | None = None
    header_row: int | None = None

    @property
    def text(self) -> str:
        """Return `Excel workbook, worksheet “Artikel”, header in row 3`."""
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
        """Return what is known of it, for a run's record."""
        return {name: value for name, value in asdict(self).items() if value is not None}
