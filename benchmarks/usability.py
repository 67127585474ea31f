"""Ten files as spreadsheets and shops write them: how many rounds of mistakes it takes until each is right.

A round is one command that ends with something to correct. The person who is played here corrects all that was named,
and nothing else: with the answers of `check --fix`, and by hand in the copy.

    python -m benchmarks.usability FOLDER      writes the files, and prints the table of docs/usability.md
"""

from __future__ import annotations

import csv
import io
import json
import os
import sys
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import click

from cli import fix_questions, main
from patternmill.catalog.fixes import Question

#: More would be a mistake of this script.
_MOST_ROUNDS = 8

OWN = ("sku", "prompt", "category", "option:size", "option:fabric", "option:finish")
OTHER = ("SKU", "Prompt text", "Product type", "Size", "Fabric", "Finish")
GOOD = (
    ("0012", "Blaue Reiher über Schilf am Fluß", "Cushion", "50x50", "linen", ""),
    ("0013", "rote, gelbe und weiße Rosen", "Mug", "11oz", "", "glossy"),
    ("0014", "Farn auf dunklem Grün", "Tote bag", "large", "canvas", ""),
)


@dataclass(frozen=True)
class RealSheet:
    """One file, and what its owner knows about it."""

    name: str
    about: str
    content: bytes
    #: What is meant by a wrong word, where that is not what is suggested.
    meant: Mapping[str, str] = field(default_factory=dict)
    #: What is right in a row, by the row's number and column; written by hand when a problem there is named.
    corrections: Mapping[tuple[int, str], str] = field(default_factory=dict)
    encoding: str = ""


def delimited(rows: Sequence[Sequence[str]], delimiter: str = ",", encoding: str = "utf-8") -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=delimiter, lineterminator="\r\n").writerows(rows)
    return text.getvalue().encode(encoding)


def _workbook() -> bytes:
    """A title, one sku that became a date, and dates in a remark."""
    from openpyxl import Workbook

    book = Workbook()
    sheet = book.active
    assert sheet is not None
    sheet.append(("Herbst 2026",))
    sheet.append((*OWN, "delivery"))
    for row in GOOD:
        sheet.append((*row, date(2026, 9, 1)))
    sheet.append((date(2026, 2, 1), "green ferns", "Mug", "11oz", "", "matte", date(2026, 9, 1)))
    content = io.BytesIO()
    book.save(content)
    return content.getvalue()


def _open_document() -> bytes:
    cells = "".join(
        "<table:table-row>"
        + "".join(
            f'<table:table-cell office:value-type="string"><text:p>{cell}</text:p></table:table-cell>'
            for cell in row
        )
        + "</table:table-row>"
        for row in (OTHER, *GOOD)
    )
    spaces = " ".join(
        f'xmlns:{one}="urn:oasis:names:tc:opendocument:xmlns:{one}:1.0"'
        for one in ("office", "table", "text")
    )
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        archive.writestr("META-INF/manifest.xml", "<manifest/>")
        archive.writestr(
            "content.xml",
            f"<office:document-content {spaces}><office:body><office:spreadsheet><table:table "
            f'table:name="Tabelle1">{cells}</table:table></office:spreadsheet></office:body></office:document-content>',
        )
    return content.getvalue()


_MIXED = (
    ("M-1", "herons", "Cusion", "50x50", "Linnen", ""),
    ("M-2", "herons", "Cusion", "45x45", "linen", ""),
    ("M-3", "ferns", "Pillow", "50x50", "linen", ""),
    ("M-4", "", "Mugg", "11oz", "", "mat"),
    ("M-5", "ferns", "Mugg", "11oz", "", ""),
    ("M-6", "L\u00c3\u00bcneburg heath", "Tote bag", "large", "canvas", ""),
    ("M-7", "ferns", "Tote bag", "large", "", ""),
    ("m-7", "ferns", "Tote", "small", "canvas", ""),
)
_SLIPS = (
    ("#REF!", "herons", "Mug", "11oz", "", "matte"),
    ("1.23E+05", "ferns", "Mug", "11oz", "", "matte"),
    ("S-3", "TBD", "Mug", "11oz", "", "matte"),
    ("S-4", "#NV", "Mug", "11oz", "", "matte"),
)
_EDITS = (
    ("E-1", "the miller\u2019s\u00a0daughter", "Mug", "11oz", "", "matte"),
    ("E-2", "the miller's daughter", "Mug", "15oz", "", "matte"),
    ("E-3", "\u200bthe miller's daughter ", "Mug", "11oz", "", "glossy"),
)
_IKAT = tuple(
    (f"I-{number}", prompt, "Mug", "11oz", "", "matte")
    for number, prompt in enumerate(("ikat", "Ikat", "ikat.", "ikat pattern", "ikat  pattern"), 1)
)


def real_sheets() -> Iterator[RealSheet]:
    yield from _exported_sheets()
    yield from _faulty_sheets()


def _exported_sheets() -> Iterator[RealSheet]:
    """As programs of people write them."""
    yield RealSheet(
        "herbst.csv",
        "German Excel: semicolons, cp1252, a title line, other names of columns",
        delimited([("Herbst 2026", *[""] * 5), OTHER, *GOOD], ";", "cp1252"),
        encoding="cp1252",
    )
    yield RealSheet(
        "autumn.xlsx",
        "Excel workbook: title, dates, a sku that became one",
        _workbook(),
        corrections={(6, "sku"): "1-2"},
    )
    yield RealSheet(
        "sheets.csv",
        "Google Sheets: `Prompt text`, `Product type`, `Size`",
        delimited([OTHER, *GOOD]),
    )
    yield RealSheet(
        "unicode.txt",
        "Excel's Unicode text: UTF-16, tabs",
        delimited([OTHER, *GOOD], "\t", "utf-16"),
    )
    yield RealSheet("winter.ods", "LibreOffice", _open_document())
    lines = (json.dumps(dict(zip(OWN, row, strict=True)), ensure_ascii=False) for row in GOOD)
    yield RealSheet("rows.jsonl", "JSON lines of a script", "\n".join(lines).encode())


def _faulty_sheets() -> Iterator[RealSheet]:
    """With mistakes in their cells."""
    yield RealSheet(
        "mixed.csv",
        "eight rows with mixed mistakes, most below an unknown category",
        delimited([OWN, *_MIXED]),
        meant={
            "Pillow": "Cushion",
            "45x45": "40x40",
            "Tote": "Tote bag",
            "fabric": "canvas",
            "finish": "matte",
        },
        corrections={(5, "prompt"): "ferns", (9, "sku"): "M-8"},
    )
    yield RealSheet("ikat.csv", "five spellings of one prompt", delimited([OWN, *_IKAT]))
    yield RealSheet(
        "slips.csv",
        "`#REF!`, `1.23E+05`, `TBD`, `#NV`",
        delimited([OWN, *_SLIPS]),
        corrections={(2, "sku"): "S-1", (3, "sku"): "123456", (4, "prompt"): "ferns", (5, "prompt"): "reeds"},
    )
    yield RealSheet(
        "edits.csv",
        "edits that nobody sees: no-break space, smart quote",
        delimited([OWN, *_EDITS]),
    )


def rounds(sheet: RealSheet, folder: Path) -> int:
    """How many times its owner had something to correct until a check accepts it. The working directory is `folder`."""
    file, count = folder / sheet.name, 0
    file.write_bytes(sheet.content)
    while count < _MOST_ROUNDS:
        code, report = _checked(file)
        if code == 0:
            return count
        count += 1
        before = set(folder.glob("*.corrected*"))
        with _simulated_answers(sheet):
            main.run(["check", str(file), "--fix"])
        (file,) = set(folder.glob("*.corrected*")) - before or {file}
        _correct_cells(file, sheet, _checked(file)[1] or report)
    raise AssertionError(f"{sheet.name} is not right after {count} rounds")


def _checked(file: Path) -> tuple[int, Mapping[str, Any]]:
    output = io.StringIO()
    with redirect_stdout(output):
        code = main.run(["check", str(file), "--json"])
    return code, json.loads(output.getvalue()) if output.getvalue() else {}


def _correct_cells(file: Path, sheet: RealSheet, report: Mapping[str, Any]) -> None:
    """In the cells that were named, and no others."""
    named = {(one["row"], report["columns"].get(one["column"])) for one in report.get("problems", ())}
    texts = {place: text for place, text in sheet.corrections.items() if place in named}
    if texts and file.suffix == ".xlsx":
        _type_into_workbook(file, texts)
    elif texts:
        rows = list(csv.reader(io.StringIO(file.read_text(encoding="utf-8-sig"), newline="")))
        for (row, column), text in texts.items():
            rows[row - 1][rows[0].index(column)] = text
        file.write_bytes(delimited(rows))


def _type_into_workbook(file: Path, texts: Mapping[tuple[int, str], str]) -> None:
    from openpyxl import load_workbook

    book = load_workbook(file)
    sheet = book.worksheets[0]
    for (row, column), text in texts.items():
        cell = sheet.cell(row, OWN.index(column) + 1)
        cell.value, cell.number_format = text, "@"
    book.save(file)


@contextmanager
def _simulated_answers(sheet: RealSheet) -> Iterator[None]:
    """A person at the terminal: takes what is right of what is proposed, and names what is meant instead."""

    def prompt(text: str, **kind: object) -> str:
        return sheet.encoding if text.startswith("Encoding") else "y"

    def asker() -> Callable[[Question], str | None]:
        def answer(question: Question) -> str | None:
            meant = sheet.meant.get(question.first.value or "")
            return question.find_choice(meant) if meant else question.suggestion

        return answer

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    before = click.prompt, fix_questions.Asker, sys.stdin
    try:
        click.prompt, fix_questions.Asker, sys.stdin = prompt, asker, Terminal()  # type: ignore[assignment,misc]
        yield
    finally:
        click.prompt, fix_questions.Asker, sys.stdin = before  # type: ignore[misc]


def _print_table(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    os.chdir(folder)
    lines = ["| file | what it is | rounds |", "|---|---|---|"]
    for sheet in real_sheets():
        with redirect_stdout(io.StringIO()):
            count = rounds(sheet, Path())
        lines.append(f"| `{sheet.name}` | {sheet.about} | {count} |")
    print("\n".join(lines))


if __name__ == "__main__":
    _print_table(Path(sys.argv[1]))
