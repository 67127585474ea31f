"""The corrected copy of a sheet: the source with its edits, in the source's own form as far as that can be kept."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from patternmill.catalog.csv_reader import CatalogFile
from patternmill.catalog.fixes import Edits
from patternmill.catalog.rows import BYTE_ORDER_MARK, defuse
from patternmill.files import write_whole

#: Before a copy's suffix; a catalog is named after the source, not after its copy.
_CORRECTED = ".corrected"
_IS_CORRECTED = re.compile(rf"{re.escape(_CORRECTED)}(-\d+)?$", re.IGNORECASE)
_WORKBOOKS = frozenset({".xlsx", ".xlsm"})
_TEXTS = frozenset({".csv", ".tsv", ".txt", ".tab"})


def source_stem(path: Path) -> str:
    """The file's name without its suffix, and without what a corrected copy has in addition."""
    return _IS_CORRECTED.sub("", path.stem)


def write_corrected(source: Path, file: CatalogFile, edits: Edits) -> Path:
    """Write the copy next to its source, under a name that is free, and return its path. Raises OSError.

    A workbook keeps everything but the cells that were corrected; other texts become CSV in UTF-8.
    """
    if source.suffix.lower() in _WORKBOOKS:
        place = _free(source, source.suffix)
        write_whole(place, [_workbook(source.read_bytes(), file, edits)])
        return place
    place = _free(source, source.suffix if source.suffix.lower() in _TEXTS else ".csv")
    write_whole(place, [BYTE_ORDER_MARK, _text(file, edits)])
    return place


def _free(source: Path, suffix: str) -> Path:
    """Never over the source, nor over an earlier copy, which a person may have worked on."""
    stem, number = source_stem(source), 1
    while True:
        place = source.with_name(f"{stem}{_CORRECTED}{f'-{number}' if number > 1 else ''}{suffix}")
        if not place.exists():
            return place
        number += 1


def _text(file: CatalogFile, edits: Edits) -> bytes:
    raw = file.raw.decode(file.encoding)
    rows = csv.reader(io.StringIO(raw, newline=""))
    target = io.StringIO(newline="")
    writer = csv.writer(target, lineterminator="\r\n" if "\r\n" in raw else "\n")
    for cells in _edited_rows(file, rows, edits):
        writer.writerow(cells)
    return target.getvalue().encode()


def _edited_rows(file: CatalogFile, rows: Iterable[list[str]], edits: Edits) -> Iterator[list[str]]:
    """The rows as they are in the file, blank ones too, with the edits in their places."""
    write = defuse if file.columns.ours else str
    changed: dict[int, dict[int, str]] = {}
    for (line, index), text in edits.cells.items():
        changed.setdefault(line, {})[index] = text
    width, header_row = edits.width(file.header), 0
    for number, cells in enumerate(rows, 1):
        if not header_row and any(cell.strip() for cell in cells):
            header_row = number
            texts = edits.header
        else:
            texts = changed.get(number, {})
        is_whole = len(cells) == len(file.header)
        cells += [""] * (width - len(cells)) if is_whole else []
        for index, text in texts.items():
            cells[index] = write(text)
        yield cells


def _workbook(raw: bytes, file: CatalogFile, edits: Edits) -> bytes:
    """A new column is to the right of the header's last one."""
    from openpyxl import load_workbook

    assert file.layout is not None and file.layout.worksheet is not None, (
        "a workbook was read by its worksheet"
    )
    book = load_workbook(io.BytesIO(raw), keep_vba=file.name.lower().endswith(".xlsm"))
    sheet = book[file.layout.worksheet]
    header = {(file.layout.header_row or 1, index): text for index, text in edits.header.items()}
    for (row, index), text in (header | dict(edits.cells)).items():
        cell = sheet.cell(row, index + 1)
        # As a text whatever it looks like: no formula, no number, no date.
        cell.value, cell.number_format, cell.data_type = text, "@", "s"
    target = io.BytesIO()
    book.save(target)
    return target.getvalue()
