"""The corrected copy of a sheet: the source with its edits, as text."""

from __future__ import annotations

import csv
import hashlib
import io
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from patternmill.catalog.catalog_file import CatalogFile
from patternmill.catalog.fixes import Edits
from patternmill.catalog.problems import FileCode, refusal
from patternmill.catalog.remote import CORRECTED, source_stem
from patternmill.catalog.rows import BYTE_ORDER_MARK, defuse, is_results_header
from patternmill.catalog.sheet_choices import NO_CHOICES, SheetChoices
from patternmill.files import write_whole
from patternmill.sheets.sheet_reader import read_catalog
from patternmill.text import plain

#: In a copy as CSV: in each column that a catalog uses it is refused as the error of a formula.
NO_TEXT = "#VALUE!"
_TEXTS = frozenset({".csv", ".tsv", ".txt", ".tab"})


def write_corrected(source: Path, file: CatalogFile, edits: Edits) -> tuple[Path, CatalogFile]:
    """Write the copy next to its source, under a name that is free; its path, and what an import reads in it.

    A text keeps its delimiter; other formats become CSV, in which a cell that is no text is NO_TEXT.
    Raises OSError, and InputRefused when the source has changed since it was read.
    """
    text = _own_text(source, file)
    edits = edits if text is not None else _with_faults(file, edits)
    place = _free(source, ".csv" if text is None else source.suffix)
    choices = NO_CHOICES if text is None else _choices(file)
    rows = file.raw.decode(file.encoding) if text is None else text
    write_whole(place, [BYTE_ORDER_MARK, _corrected_text(rows, file, edits, choices)])
    choices = replace(choices, encoding=None)
    return place, read_catalog(place, choices=choices, mapping=file.mapping)


def _with_faults(file: CatalogFile, edits: Edits) -> Edits:
    """CSV would not show any more that a cell is a date or a rounded number: it has to be refused there too."""
    faults = ((line, one.column) for line, findings in file.faults.items() for one in findings)
    places = {(line, file.header.index(column)) for line, column in faults if column in file.header}
    return Edits(cells=dict.fromkeys(places, NO_TEXT)).with_more(edits)


def _choices(file: CatalogFile) -> SheetChoices:
    return file.layout.choices if file.layout is not None else SheetChoices(file.encoding)


def _own_text(source: Path, file: CatalogFile) -> str | None:
    """The source's text, where its rows are those that were read; None of other formats."""
    choices = _choices(file)
    if source.suffix.lower() not in _TEXTS or choices.encoding is None:
        return None
    text = _unchanged(source, file).decode(choices.encoding).removeprefix("\ufeff")
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=choices.delimiter or ",")
    header = next((row for number, row in enumerate(rows, 1) if _is_header(number, row, choices)), [])
    return text if is_results_header(header) or tuple(header) == file.header else None


def _is_header(number: int, cells: list[str], choices: SheetChoices) -> bool:
    """`header_row` None: the first row with something in it."""
    return number == choices.header_row if choices.header_row else any(cell.strip() for cell in cells)


def _unchanged(source: Path, file: CatalogFile) -> bytes:
    """The source's bytes, which a person may have saved anew while the questions were answered."""
    raw = source.read_bytes()
    if hashlib.sha256(raw).hexdigest() != (file.layout.sha256 if file.layout is not None else file.sha256):
        message = f"{plain(source.name)} was saved by another program since it was checked."
        raise refusal(FileCode.FILE_CHANGED, message, "Nothing was written: run the same command again.")
    return raw


def _free(source: Path, suffix: str) -> Path:
    """Never over the source, nor over an earlier copy, which a person may have worked on."""
    stem, number = source_stem(source), 1
    while True:
        place = source.with_name(f"{stem}{CORRECTED}{f'-{number}' if number > 1 else ''}{suffix}")
        if not place.exists():
            return place
        number += 1


def _corrected_text(text: str, file: CatalogFile, edits: Edits, choices: SheetChoices) -> bytes:
    delimiter, target = choices.delimiter or ",", io.StringIO(newline="")
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    writer = csv.writer(target, delimiter=delimiter, lineterminator="\r\n" if "\r\n" in text else "\n")
    writer.writerows(_edited_rows(rows, file, edits, choices))
    return target.getvalue().encode()


def _edited_rows(
    rows: Iterable[list[str]], file: CatalogFile, edits: Edits, choices: SheetChoices
) -> Iterator[list[str]]:
    """The rows as they are in the file, blank ones too, with the edits in their places."""
    write = defuse if file.columns.is_results_file else str
    changed: dict[int, dict[int, str]] = defaultdict(dict)
    for (line, index), text in edits.cells.items():
        changed[line][index] = text
    more = [""] * (edits.width(file.header) - len(file.header))
    is_below = False
    for number, cells in enumerate(rows, 1):
        texts: Mapping[int, str] = changed.get(number, {})
        if not is_below and _is_header(number, cells, choices):
            is_below, texts = True, edits.header
        if more and len(cells) == len(file.header):
            cells += more
        for index, text in texts.items():
            if index >= len(cells):
                # The row ends before this cell, and a correction on record says that it should not.
                cells += [""] * (len(file.header) + len(more) - len(cells))
            cells[index] = write(text)
        yield cells
