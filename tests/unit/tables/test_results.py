"""What a run came to: its tables, exact lines, manifest and causes; the rows that a filter means; a catalog's sheet."""

from __future__ import annotations

import codecs
import csv
import hashlib
import io
import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta, timezone
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from patternmill.errors import ConfigurationError, InputRefused
from patternmill.identifiers import ItemKey, RunId
from patternmill.planning.changes import CurrentRow
from patternmill.planning.rows import Content, RowRecord
from patternmill.runs.results_files import read_manifest
from patternmill.states import Outcome, RowStatus, Stage
from patternmill.tables.catalog import Catalog, read_catalog
from patternmill.tables.checks import Checked, check_catalog
from patternmill.tables.columns import DECISION_COLUMNS, RESULT_COLUMNS, RUN_COLUMN
from patternmill.tables.results import SKUS_SHOWN, RunResults, catalog_sheet, products_frame, signature
from patternmill.tables.row_filter import RowFilter
from patternmill.tables.written import (
    CELL_LIMIT,
    defuse,
    restore,
    table_csv,
    table_workbook,
)
from tests.row_results import RowResult

from .builders import ENDED, HEADER, RUN, item, published, refused, results_of, row, table_of
from .samples import problems

NASTY = st.sampled_from(
    [
        *("=1+1", "+1", "-3", "@x", "\tx", "\rx", "'", "'=x", "''=x", " = 1", "a\rb", "a\nb", 'a"b', "a;b,c"),
        *("NA", "null", "007", "1e5", "TRUE", "2026-05-01", "🪿", "שלום", " "),
    ]
)
#: Texts without NUL, which no file may have, and without Ctrl-Z, which ends a file of some old programs.
TEXT = st.text(st.characters(exclude_characters="\0\x1a", exclude_categories=["Cs"]), max_size=12)
#: The file has a column `note` of its own.
OURS = [name for name in (*RESULT_COLUMNS[:-1], *DECISION_COLUMNS, RUN_COLUMN) if name not in HEADER]


def table(rows: Sequence[RowResult], header: Sequence[str] = HEADER) -> bytes:
    return b"".join(table_csv(results_of(rows, header).read().table(RUN.run_id)))


def content(folder: Path) -> dict[str, Any]:
    manifest: dict[str, Any] = json.loads((folder / "manifest.json").read_bytes())
    return manifest


def documented(name: str, document: Any) -> None:
    jsonschema.validate(document, json.loads((Path("docs") / f"{name}.schema.json").read_text("utf-8")))


# --- results.csv and failures.csv


@given(
    st.one_of(
        st.text(), st.from_regex(r"'{0,4}[ \n\u00a0]{0,2}[=+\-@＝＋－＠\t\r'0-9]?.{0,4}", fullmatch=True)
    )
)
def test_no_defused_cell_begins_like_a_formula_and_each_is_restored(cell: str) -> None:
    defused = defuse(cell)
    assert restore(defused) == cell
    assert not defused.lstrip().startswith(tuple("=+-@＝＋－＠")) and not defused.startswith(("\t", "\r"))


def test_only_formulas_are_defused() -> None:
    for cell in ("=SUM(A1)", "-12", "'=x", " =x", "\n=x", "' =x", "＝x", "＠SUM(A1)"):
        assert defuse(cell) == f"'{cell}"
    for cell in ("'tis", "", "a\n=x", "x"):
        assert defuse(cell) == cell


def test_result_columns_of_an_earlier_result_are_replaced() -> None:
    """Only carried columns are kept, then the new result columns."""
    header = ("sku", "status", "prompt", "category", "error_code", "run")
    rows = [replace(row("A"), cells=("A", "failed", "herons", "Cushion", "old", "run-6"))]
    assert table(rows, header).decode("utf-8-sig") == (
        "sku,prompt,category,status,product_id,pattern_id,error_code,error,decision,note,run\r\n"
        "A,herons,Cushion,succeeded,prd-A,pat-A,,,,,run-7\r\n"
    )


def test_malformed_rows_shift_nothing_and_stay_refused_until_they_are_corrected(tmp_path: Path) -> None:
    """None of their cells is lost when failures.csv is imported again, and none is bought without them."""
    surplus = ("A", "blue", " red", "Mug", "a note", 'say "x"')
    published([refused("B", cells=("B", "herons")), refused("A", cells=surplus)], tmp_path)
    header, short, long = table_of(tmp_path / "results.csv")
    assert header == [*HEADER, "surplus:1", "surplus:2", *OURS]
    assert short[:8] == ["B", "herons", "", "", "", "", "refused", ""]
    assert tuple(long[:6]) == surplus and len(long) == len(header)
    found = check_catalog(read_catalog((tmp_path / "failures.csv").read_bytes(), "failures.csv"), None)
    assert [problem.code for problem in problems(found)] == ["empty_category", "surplus_cells"]
    assert problems(found)[1].message == "the row has 6 cells, but the header has 4"
    cells = list(found.catalog.sheet.records())[1][1]
    assert (cells[:4], cells[-2:]) == (surplus[:4], surplus[4:])
    corrected = (tmp_path / "failures.csv").read_bytes()
    for wrong, right in (
        (b'A,blue, red,Mug,a note,"say ""x"""', b'A,"blue, red",Mug,a note,,'),
        (b"B,herons,,", b"B,x,Mug,"),
    ):
        corrected = corrected.replace(wrong, right)
    found = check_catalog(read_catalog(corrected, "failures.csv"), None)
    assert [row.prompt for row in found.accepted] == ["x", "blue, red"]


def test_failures_have_the_rows_that_need_a_person(tmp_path: Path) -> None:
    """Failed, refused and held; not what the next run resumes by itself. It is read as a catalog of these rows."""
    published([*(row(status.value, status) for status in RowStatus), refused("=B")], tmp_path)
    lines = table_of(tmp_path / "failures.csv")
    assert lines[0] == table_of(tmp_path / "results.csv")[0]
    again = read_catalog((tmp_path / "failures.csv").read_bytes(), "failures.csv")
    assert list(again.sheet.column(0)) == ["failed", "refused", "held", "=B"]


def test_texts_of_the_service_are_defused_and_never_make_the_file_unreadable(tmp_path: Path) -> None:
    """An ID or a reason is text from outside like any other: a formula, a NUL, a text without end."""
    hostile = {"error_code": "@code", "error": '=HYPERLINK("http://x")'}
    items = (item(Stage.PATTERN, "A", result_id="+p"), item(Stage.PRODUCT, "A", result_id="=ID"))
    rows = [row("A", RowStatus.FAILED, items=items, **hostile)]
    rows += [row("B", RowStatus.FAILED, error=error) for error in ("nul \0", "x" * (CELL_LIMIT * 5))]
    published(rows, tmp_path)
    assert table_of(tmp_path / "results.csv")[1][5:9] == ["'=ID", "'+p", "'@code", '\'=HYPERLINK("http://x")']
    again = read_catalog((tmp_path / "results.csv").read_bytes(), "results.csv")
    assert list(again.sheet.column(0)) == ["A", "B", "B"]


@pytest.mark.parametrize(("encoding", "delimiter"), [("utf-16", ";"), ("cp1252", "\t"), (None, None)])
def test_tables_are_for_the_program_that_wrote_the_sheet(
    tmp_path: Path, encoding: str | None, delimiter: str | None
) -> None:
    """They have its delimiter, and a byte order mark, without which Excel reads `LÃ¼neburg`, and saves that."""
    run = replace(RUN, input_encoding=encoding, options={"reading": {"format": "x", "delimiter": delimiter}})
    published([row("A")], tmp_path, run)
    raw = (tmp_path / "results.csv").read_bytes()
    assert raw.startswith(codecs.BOM_UTF8) and raw.count(codecs.BOM_UTF8) == 1
    assert raw.decode("utf-8-sig").splitlines()[0] == (delimiter or ",").join([*HEADER, *OURS])


def test_failures_of_a_workbook_are_one_too(tmp_path: Path) -> None:
    """All of it is text, formulas included; it reads back as it was, and is the same whenever it is written."""
    run = replace(RUN, options={"reading": {"format": "Excel workbook"}})
    rows = [refused("007", cells=("007", "=1+1 \x01", "'x", "")), row("B")]
    for folder in ("one", "two"):
        published(rows, tmp_path / folder, run)
    first, second = ((tmp_path / folder / "failures.xlsx").read_bytes() for folder in ("one", "two"))
    assert first == second
    book = read_catalog(first, "failures.xlsx")
    assert book.sheet.header == (*HEADER, *OURS)
    ((_, cells),) = book.sheet.records()
    assert [restore(cell) for cell in cells[:4]] == ["007", "=1+1 \ufffd", "'x", ""]


# --- the manifest


def test_rebuild_is_the_same_byte_for_byte(tmp_path: Path) -> None:
    """It is so in another directory, over old files, and without what databases do not keep: zones, and name order."""
    rows = [row("A"), refused("B"), row("C", RowStatus.IN_DOUBT, error="no answer")]
    run = replace(RUN, options={"b": [1, {"y": 1, "x": 2}], "a": None}, versions={"p": "1", "a": "2"})
    published(rows, tmp_path / "one", run)
    published(rows[:1], tmp_path / "two", run)
    shuffled = replace(
        run,
        started_at=run.started_at.astimezone(timezone(timedelta(hours=-5))),
        options={"a": None, "b": [1, {"x": 2, "y": 1}]},
        versions={"a": "2", "p": "1"},
    )
    turned = [replace(one, selections=dict(reversed(one.selections.items()))) for one in rows]
    published(turned, tmp_path / "two", shuffled)
    one, two = (
        {path.name: path.read_bytes() for path in (tmp_path / out).iterdir()} for out in ("one", "two")
    )
    assert one == two


@pytest.mark.parametrize("outcome", [Outcome.FAILED, None])
def test_manifest_describes_the_run_and_its_files(tmp_path: Path, outcome: Outcome | None) -> None:
    """It fits its schema: counts that add up, the input without its folder, the checksum of every other file."""
    run = replace(RUN, source="C:\\Users\\ann\\spring.csv", outcome=outcome, reason="spent")
    twin = row("B", items=(row("A").items[0], row("B").items[1]))
    result = published([row("A"), twin, refused("C"), row("D", RowStatus.NOT_STARTED)], tmp_path, run)
    manifest, counts = content(tmp_path), result.counts
    documented("manifest", manifest)
    assert counts.rows == sum(manifest["counts"]["by_status"].values()) == 4
    assert set(counts.by_status) == set(RowStatus)
    made = (counts.products, counts.patterns, counts.product_attempts, counts.pattern_attempts)
    assert made == (2, 1, 2, 1), "a pattern that two rows share is one"
    assert (manifest["source"], manifest["run_id"]) == ("spring.csv", "run-7")
    assert manifest["ended_at"] == "2026-03-01T09:34:12.000Z"
    assert (manifest["outcome"], manifest["money"]["spent"]) == (outcome, {"EUR": 600})
    assert list(manifest["files"]) == ["failures.csv", "gallery.html", "results.csv", "results.jsonl"]
    for name, sha256 in manifest["files"].items():
        assert hashlib.sha256((tmp_path / name).read_bytes()).hexdigest() == sha256


@pytest.mark.parametrize("text", [None, "{", "[]", "{}"])
def test_folder_without_a_manifest_has_no_runs_results(tmp_path: Path, text: str | None) -> None:
    published([], tmp_path / "run")
    found = read_manifest(tmp_path / "run")
    assert found is not None and (found["run_id"], found["ledger"]) == ("run-7", RUN.ledger)
    if text is not None:
        (tmp_path / "manifest.json").write_text(text)
    assert read_manifest(tmp_path) is None


def test_quoted_names_and_numbers_do_not_separate_causes() -> None:
    for one, other in (
        ("unknown value `Linnen` of `fabric`", "unknown value `Silc` of `fabric`"),
        ('job job_12ab of "a" failed', 'job job_9f0c of "b c" failed'),
        ("waited 30.5 s,\nby far", "waited 2 s,  by far"),
        ("0b8e3a3e-5c1c-5a52-9f6a-0e5b4f1c2d3e?", "7c9f3a3e-aaaa-5a52-9f6a-0e5b4f1c2dff?"),
    ):
        assert signature(one) == signature(other)


def test_most_frequent_cause_is_first(tmp_path: Path) -> None:
    """Its skus are capped. Codes separate causes, as wrong words do, but not repeated skus; further faults are none."""
    many = [refused(f"F{n}", error_code="job_failed", error=f"no ink in job-{n}") for n in range(15)]
    twice = [refused(f"S{n}", error_code="duplicate_sku", error=error) for n, error in enumerate("ab")]
    words = [refused(f"W{n}", error_code="unknown_category", error=f"no `{n}`") for n in range(2)]
    remedy = "Write `linen`. Also: the prompt is empty."
    rejected = refused("", error_code="rejected", error="no ink in job-1", remedy=remedy)
    causes = published([*words, rejected, *twice, *many], tmp_path).causes
    assert [(cause.code, cause.count, cause.message) for cause in causes] == [
        ("job_failed", 15, "no ink in job-0"),
        ("duplicate_sku", 2, "a"),
        ("rejected", 1, "no ink in job-1"),
        ("unknown_category", 1, "no `0`"),
        ("unknown_category", 1, "no `1`"),
    ]
    assert causes[0].skus == tuple(f"F{n}" for n in range(SKUS_SHOWN))
    assert (causes[2].skus, causes[2].remedy) == (("row 4",), "Write `linen`.")
    assert content(tmp_path)["causes"][0]["message"] == "no ink in job-0"


# --- results.jsonl


def objects(rows: list[RowResult], header: tuple[str, ...] = HEADER) -> list[dict[str, Any]]:
    raw = b"".join(results_of(rows, header).exact_lines())
    lines = [json.loads(line) for line in raw.decode().split("\n")[:-1]]
    for line in lines:
        documented("results", line)
    return lines


def test_exact_line_has_the_items_of_its_row() -> None:
    """State, IDs, picture and time of the last attempt at each, and how many there were; what it is built on before."""
    pattern = item(Stage.REFINEMENT, "p", attempts=2, picture_url="http://x/p.png")
    one = row("A", items=(item(Stage.PATTERN, "first"), pattern, item(Stage.PRODUCT, "A", state=None)))
    (line,) = objects([one])
    assert line["pattern"] == {
        "key": "refinement-p",
        "state": "succeeded",
        "attempts": 2,
        "request_id": "request-p",
        "job_id": "job-p",
        "result_id": "made-p",
        "picture_url": "http://x/p.png",
        "since": "2026-03-01T09:31:15.062Z",
    }
    assert [(before["stage"], before["key"]) for before in line["before"]] == [("pattern", "pattern-first")]
    assert (line["product"]["state"], line["product"]["since"]) == (None, None)


def test_exact_lines_have_exact_cells() -> None:
    """Nothing is defused; a missing cell is absent, which an empty one is not; nameless columns have their letter."""
    cells = ("=A", "two\r\nlines", "'+x", "ü 🪿 \u2028", "", " ")
    long_cells = ("B", "", "", "", "", "", "x", "")
    rows = [row("A", cells=cells), row("A", cells=("A", "")), row("B", cells=long_cells)]
    exact, short, long = objects(rows, ("sku", "", "prompt", "category", "", "note"))
    names = ("sku", "[B]", "prompt", "category", "[E]", "note")
    assert exact["cells"] == dict(zip(names, cells, strict=True))
    assert (short["cells"], short["surplus_cells"]) == ({"sku": "A", "[B]": ""}, [])
    assert long["surplus_cells"] == ["x", ""]


# --- rows that are meant

#: A was made at 09:31:15 UTC, and B failed a minute later.
_BAG: dict[str, Any] = {
    "category": "Tote bag",
    "category_id": "cat_2",
    "cells": ("B", "", "Tote bag", ""),
    "items": (item(Stage.PATTERN, "B", since=ENDED + 60), item(Stage.PRODUCT, "B", None)),
}
ROWS = [
    row("A"),
    row("B", RowStatus.FAILED, error_code="job_failed", **_BAG),
    refused("C"),
    row("D", RowStatus.IN_DOUBT, error_code="in_doubt"),
]


def meant(wanted: RowFilter) -> str:
    rows = results_of(ROWS).read().rows
    return "".join(rows["sku"][wanted.fitting(rows)])


@pytest.mark.parametrize(
    ("wanted", "skus"),
    [
        ({}, "ABCD"),
        ({"sku": ("D", "A")}, "AD"),
        ({"status": ("failed,in-doubt",)}, "BD"),
        ({"code": ("job_failed", "in_doubt")}, "BD"),
        ({"category": ("tote  BAG",)}, "B"),
        ({"category": ("cat_1",)}, "ACD"),
        ({"changed_since": "2026-03-01"}, "AB"),
        ({"changed_since": "2026-03-01T10:31:30+01:00"}, "B"),
        ({"status": "REFUSED, failed", "category": ("Cushion",)}, "C"),
    ],
)
def test_filter_means_rows_that_fit_every_field(wanted: dict[str, Any], skus: str) -> None:
    """Nothing was ever changed for a row of which nothing was requested."""
    chosen = RowFilter(**wanted)
    assert meant(chosen) == skus
    assert chosen.is_empty is (wanted == {})


def test_filter_refuses_what_no_row_has(tmp_path: Path) -> None:
    """A sku of no row, or a pick that cannot be read, never means everything."""
    sheet = tmp_path / "picks.csv"
    sheet.write_text("sku,picked\nA,yes\nB,x\nC,no\n")
    assert meant(RowFilter(picks=sheet, status=("failed",))) == "B"
    with pytest.raises(ConfigurationError, match="one by one and in a sheet"):
        meant(RowFilter(picks=sheet, sku=("A",)))
    sheet.write_text("sku,picked\nA,maybe\n")
    with pytest.raises(InputRefused, match="neither yes nor no"):
        meant(RowFilter(picks=sheet))
    with pytest.raises(ConfigurationError, match="no row E, F here"):
        meant(RowFilter(sku=("F", "A", "E")))
    for wanted in ({"status": ("fialed",)}, {"changed_since": "yesterday"}, {"skus": ("A",)}):
        with pytest.raises(ValidationError):
            RowFilter.model_validate(wanted)


# --- catalog.csv, changes.csv and the person's sheet

ODD = Content('=blue, "herons"\nred 🪶', "cat_1", {"size": "S", "fabric": "linen"})


def source(header: Sequence[str], rows: Sequence[Sequence[str]], delimiter: str) -> Catalog:
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=delimiter, lineterminator="\r\n").writerows([header, *rows])
    return read_catalog(text.getvalue().encode(), "spring.csv")


def part(checked: Checked) -> RunResults:
    """Return a file as its run left it: every accepted row was made."""
    rows = []
    for entry in checked.entries:
        sku = entry.row.sku if entry.row is not None else ""
        nothing = dict.fromkeys(("state", "request_id", "job_id", "result_id", "picture_url", "since"))
        made = {"key": f"item-{sku}", "stage": "product", "attempts": 1} | nothing
        outcome = dict.fromkeys(("error_code", "error", "remedy")) | {"kept": [], "takes": []}
        outcome |= {"status": "succeeded", "items": [made] * 2} if sku else {"status": "refused", "items": []}
        rows.append(RowRecord(entry.line, sku, "{}", json.dumps(outcome)))
    return RunResults(RUN.run_id, checked.catalog, rows).read()


SHEETS = {
    "rows": st.lists(st.tuples(*[st.one_of(TEXT, NASTY)] * 5), min_size=1, max_size=6),
    "own": st.lists(st.sampled_from(("note", "Größe", "decision", "since")), unique=True),
}


@settings(max_examples=40)
@given(**SHEETS, delimiter=st.sampled_from(",;\t"))
def test_every_own_cell_comes_back(rows: list[tuple[str, ...]], own: list[str], delimiter: str) -> None:
    """The rows also mean what they meant: the same is bought for each, or it is refused again."""
    check_round_trip(rows, own, delimiter, is_book=False)


@settings(max_examples=4)
@given(**SHEETS)
def test_every_own_cell_of_a_workbook_comes_back(rows: list[tuple[str, ...]], own: list[str]) -> None:
    """A process of its own parses each, so there are fewer of them, without what no workbook can hold."""
    printable = [tuple(cell if cell.isprintable() else "x" for cell in row) for row in rows]
    check_round_trip(printable, own, ",", is_book=True)


def check_round_trip(rows: list[tuple[str, ...]], own: list[str], delimiter: str, *, is_book: bool) -> None:
    header = ("sku", *own[:2], "prompt", "category", *own[2:], "=1")
    written = [(f"S-{number}", *row)[: len(header)] for number, row in enumerate(rows)]
    before = check_catalog(source(header, written, delimiter), None)
    products = [
        CurrentRow(row.sku, row, ItemKey(f"item-{row.sku}"), "=P", "+p", 1e9, RunId(RUN.run_id))
        for row in before.accepted
    ]
    whole = catalog_sheet([part(before)], products_frame(products), {}, 7)
    raw = table_workbook(whole) if is_book else b"".join(table_csv(whole, delimiter))
    after = check_catalog(read_catalog(raw, "sheet.csv"), None)
    kept = after.catalog.columns.kept
    assert [after.catalog.sheet.header[at] for at in kept] == list(header)
    again, given_cells = (
        [tuple(cells[at] for at in places) for _, cells in one.catalog.sheet.records()]
        for one, places in ((after, kept), (before, range(len(header))))
    )
    if is_book:
        # A cell of a workbook with nothing but spaces is read as an empty one.
        given_cells = [tuple("" if cell.isspace() else cell for cell in cells) for cells in given_cells]
    assert again == given_cells
    bought = [[(row.sku, row.identity) for row in checked.accepted] for checked in (before, after)]
    assert bought[0] == bought[1]
    codes = [[problem.code for problem in problems(checked)] for checked in (before, after)]
    assert codes[0] == codes[1]
