"""The files of a run and of a catalog: a sheet's rows in their order, each with what became of it."""

import csv
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd

from patternmill.files import write_whole
from patternmill.looking.cards import Made, gallery
from patternmill.states import NEEDS_A_PERSON, CatalogRow, Status
from patternmill.tables.delimited import defused
from patternmill.tables.mapping import BEYOND, RESULTS
from patternmill.tables.sheet import SURPLUS, Sheet

if TYPE_CHECKING:
    from patternmill.tables.checks import Checked
    from patternmill.tables.columns import Columns

#: JSON as people read it; an encoder that is made once takes a third of the time.
dumps = json.JSONEncoder(ensure_ascii=False).encode
_PRODUCTS = ["sku", "product_id", "pattern_id", "prompt", "category", "selections", "decision"]
#: What the gallery shows of a row that has a pattern.
_SHOWN = ["pattern_id", "prompt", "sku", "category", "selections", "status", "product_id", "error"]
_DECISIONS = {"": "", "pick": "picked", "reject": "rejected", "again": "again"}


class Result(NamedTuple):
    """What became of a row; the names are those of the columns."""

    status: str = Status.NOT_STARTED
    product_id: str = ""
    pattern_id: str = ""
    error_code: str = ""
    error: str = ""
    take: str = ""


def results_frame(checked: "Checked", results: Mapping[int, Result], run_id: str) -> pd.DataFrame:
    """Return every row of the sheet under its own header, with its result beside it, or all of its faults."""
    titles, carried = checked.columns.titles, list(checked.columns.carried)
    rows = checked.sheet.rows[carried].fillna("").set_axis(range(len(carried)), axis=1)
    if (beyond := checked.sheet.rows[SURPLUS]).notna().any():
        rows, titles = rows.assign(beyond=beyond.fillna("")), [*titles, BEYOND]
    refused = _refusals(checked.problems) if len(checked.problems) else {}
    known = {**dict.fromkeys(rows.index.tolist(), Result()), **refused, **results}
    became = list(map(known.__getitem__, rows.index.tolist()))
    added = pd.DataFrame(became, rows.index, list(RESULTS[:-1]), dtype="str").assign(run=run_id)
    # By position: a sheet may have several columns of one name.
    return pd.concat([rows, added], axis=1).set_axis([*titles, *RESULTS], axis=1)


def _refusals(problems: pd.DataFrame) -> dict[int, Result]:
    faults: dict[int, tuple[str, list[str]]] = {}
    for row, _, _, code, message, remedy, _ in problems.to_numpy(dtype=object).tolist():
        faults.setdefault(row, (code, []))[1].append(f"{message}; {remedy}")
    refused = Status.REFUSED
    return {
        row: Result(refused, error_code=code, error=". ".join(those)) for row, (code, those) in faults.items()
    }


def write_results(frame: pd.DataFrame, checked: "Checked", out: Path, manifest: Mapping[str, Any]) -> None:
    """Write results and failures, the gallery and, last, manifest.json with their counts and checksums."""
    out.mkdir(parents=True, exist_ok=True)
    status = frame.iloc[:, -len(RESULTS)]
    digests: dict[str, str] = {}
    failures, title = frame[status.isin(NEEDS_A_PERSON)], str(manifest.get("catalog", ""))
    for name, content in _files(frame, checked, failures, title):
        write_whole(out / name, content)
        digests[name] = hashlib.sha256(content).hexdigest()
    counts = status.value_counts().to_dict()
    whole = {"schema": 1, **manifest, "rows": len(frame), "counts": counts, "files": digests}
    write_whole(out / "manifest.json", json.dumps(whole, indent=2, ensure_ascii=False).encode() + b"\n")


def _files(
    frame: pd.DataFrame, checked: "Checked", failures: pd.DataFrame, title: str
) -> Iterator[tuple[str, bytes]]:
    yield "results.csv", _csv(frame, checked.sheet.delimiter)
    yield "failures.csv", _csv(failures, checked.sheet.delimiter)
    if checked.sheet.is_workbook:
        yield "failures.xlsx", _xlsx(failures, formats_of(checked.sheet, checked.columns, failures))
    yield "results.jsonl", "".join(_json_lines(frame)).encode("utf-8", "replace")
    made = checked.rows.join(frame.iloc[:, -len(RESULTS) :], how="inner")
    shown = made.loc[made["pattern_id"].ne(""), _SHOWN].itertuples(index=False, name=None)
    yield "gallery.html", gallery(title, map(Made._make, shown)).encode("utf-8", "replace")


def formats_of(sheet: Sheet, columns: "Columns", frame: pd.DataFrame) -> dict[tuple[int, int], str]:
    """Return the formats of the cells of a results frame that are numbers in the sheet's workbook."""
    if not sheet.kinds:
        return {}
    lines = {number: line for line, number in enumerate(frame.index.tolist())}
    places = {at: place for place, at in enumerate(columns.carried)}
    numbers = {one: kind for one, kind in sheet.kinds.items() if kind.what == "a number"}
    return {(lines[row], places[at]): kind.format for (row, at), kind in numbers.items()
            if row in lines and at in places}  # fmt: skip


def _json_lines(frame: pd.DataFrame) -> Iterator[str]:
    """Yield rows as they are; columns without a name of their own are numbered."""
    names: list[str] = []
    for at, name in enumerate(frame.columns, 1):
        names.append(name if name and name not in names else f"{name or 'column'} ({at})")
    for cells in frame.itertuples(index=False, name=None):
        yield dumps(dict(zip(names, cells, strict=True))) + "\n"


def write_catalog(folder: Path, rows: Sequence[CatalogRow], *, is_workbook: bool = False) -> None:
    """Write what a catalog's rows are now: catalog.csv, its products; and sheet.csv, which can be imported again.

    Of a workbook, or where there is one already, the sheet is written as a workbook too.
    """
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / "catalog.csv", catalog_csv(rows))
    sheet, formats = _whole_sheet([row for row in rows if row.retired is None])
    write_whole(folder / "sheet.csv", _csv(sheet, ","))
    if is_workbook or (folder / "sheet.xlsx").exists():
        write_whole(folder / "sheet.xlsx", _xlsx(sheet, formats))


def catalog_csv(rows: Sequence[CatalogRow]) -> bytes:
    """Return the product that each row of a catalog has, for feeds."""
    products: list[tuple[str, ...]] = []
    for row in rows:
        if row.has_product_id and row.retired is None:
            content = json.loads((row.content if row.product_id else row.has_content) or "{}")
            made_of = content.get("prompt", ""), content.get("category", "")
            selections = dumps(content["selections"]) if content else ""
            ids = row.sku, row.has_product_id, row.has_pattern_id
            products.append((*ids, *made_of, selections, _DECISIONS[row.verdict]))
    return _csv(pd.DataFrame(products, columns=_PRODUCTS, dtype="str"), ",")


def _whole_sheet(rows: Sequence[CatalogRow]) -> tuple[pd.DataFrame, Mapping[tuple[int, int], str]]:
    """Return a catalog's rows under one header, and which cells are numbers, with their formats."""
    from patternmill.tables.kept import kept_table

    header, cells, formats = kept_table(rows)
    titles = [*header, BEYOND] if cells[SURPLUS].notna().any() else [*header]
    added = [(row.status, row.product_id or row.has_product_id, row.pattern_id or row.has_pattern_id,
              row.code, row.message, str(row.take), row.run) for row in rows]  # fmt: skip
    ours = pd.DataFrame(added, columns=list(RESULTS), dtype="str")
    frame = pd.concat([cells.iloc[:, : len(titles)].fillna(""), ours], axis=1)
    return frame.set_axis([*titles, *RESULTS], axis=1), formats


def _csv(frame: pd.DataFrame, delimiter: str) -> bytes:
    # By position, because names may be double; a lone CR is quoted only where lines end with one.
    cells = frame.set_axis(range(frame.shape[1]), axis=1).astype("str").fillna("")
    titles = defused(pd.Series(list(map(str, frame.columns)), dtype="str"))
    cells = cells.apply(defused).set_axis(titles, axis=1)
    text = cells.to_csv(index=False, sep=delimiter, lineterminator="\r\n", quoting=csv.QUOTE_MINIMAL)
    return b"\xef\xbb\xbf" + text.encode("utf-8", "replace")


def _xlsx(frame: pd.DataFrame, formats: Mapping[tuple[int, int], str]) -> bytes:
    """Return a workbook whose cells are texts, whatever they begin with, but for the numbers that `formats` has.

    Those are by their line and position, from 0.
    """
    from openpyxl import Workbook
    from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE, WriteOnlyCell

    book = Workbook(write_only=True)
    sheet = book.create_sheet("rows")
    for line, row in enumerate((tuple(frame.columns), *frame.itertuples(index=False, name=None)), -1):
        cells = [WriteOnlyCell(sheet, ILLEGAL_CHARACTERS_RE.sub("", str(text))[:32_767]) for text in row]
        for at, cell in enumerate(cells):
            is_number = (line, at) in formats
            cell.data_type = "n" if is_number else "s"
            cell.number_format = formats[line, at] or "General" if is_number else "@"
        sheet.append(cells)
    content = BytesIO()
    book.save(content)
    return content.getvalue()
