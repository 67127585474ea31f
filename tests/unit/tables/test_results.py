"""What a run came to: its manifest, its exact lines, its causes, the rows that a filter means, a catalog's table."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta, timezone
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from pydantic import ValidationError

from patternmill.errors import ConfigurationError, InputRefused
from patternmill.identifiers import ItemKey, RunId
from patternmill.ledger.catalogs import RecordedChange
from patternmill.planning.changes import ChangeKind, ChangeVerdict, CurrentRow
from patternmill.planning.rows import Content
from patternmill.runs.results_files import CHANGE_COLUMNS, read_manifest, write_results
from patternmill.states import Outcome, RowStatus, Stage
from patternmill.tables.results import SKUS_SHOWN, signature
from patternmill.tables.row_filter import RowFilter
from patternmill.tables.written import CATALOG_COLUMNS, catalog_csv
from tests.row_results import RowResult

from .builders import ENDED, HEADER, MONEY, RUN, item, published, refused, results_of, row

FILES = ["failures.csv", "gallery.html", "results.csv", "results.jsonl"]


def content(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "manifest.json").read_bytes())
    return found


def documented(name: str, document: Any) -> None:
    jsonschema.validate(document, json.loads((Path("docs") / f"{name}.schema.json").read_text("utf-8")))


def test_rebuild_is_the_same_byte_for_byte(tmp_path: Path) -> None:
    """In another directory, over old files, and without what databases do not keep: zones and the order of names."""
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


@pytest.mark.parametrize("source", ["/home/ann/spring.csv", "C:\\Users\\ann\\spring.csv"])
@pytest.mark.parametrize("outcome", [Outcome.FAILED, None])
def test_manifest_describes_the_run_and_its_files(
    tmp_path: Path, source: str, outcome: Outcome | None
) -> None:
    """As its schema says: counts that add up, the input without its folder, the checksum of every other file."""
    run = replace(RUN, source=source, outcome=outcome, reason="spent")
    twin = row("B", items=(row("A").items[0], row("B").items[1]))
    result = published([row("A"), twin, refused("C"), row("D", RowStatus.NOT_STARTED)], tmp_path, run)
    manifest, counts = content(tmp_path), result.counts
    documented("manifest", manifest)
    assert counts.rows == sum(manifest["counts"]["by_status"].values()) == 4
    assert set(counts.by_status) == set(RowStatus)
    made = (counts.products, counts.patterns, counts.product_attempts, counts.pattern_attempts)
    assert made == (2, 1, 2, 1), "a pattern that two rows share is one"
    assert (manifest["source"], manifest["run_id"], manifest["ended_at"]) == (
        "spring.csv",
        "run-7",
        "2026-03-01T09:34:12.000Z",
    )
    assert (manifest["outcome"], manifest["money"]["spent"]) == (outcome, {"EUR": 600})
    assert list(manifest["files"]) == FILES
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


# -- causes


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("unknown value `Linnen` of `fabric`", "unknown value `Silc` of `fabric`"),
        ('job job_12ab of "a" failed', 'job job_9f0c of "b c" failed'),
        ("waited 30.5 s,\nby far", "waited 2 s,  by far"),
        ("0b8e3a3e-5c1c-5a52-9f6a-0e5b4f1c2d3e?", "7c9f3a3e-aaaa-5a52-9f6a-0e5b4f1c2dff?"),
    ],
)
def test_quoted_names_and_numbers_do_not_separate_causes(one: str, other: str) -> None:
    assert signature(one) == signature(other)


def test_most_frequent_cause_is_first(tmp_path: Path) -> None:
    """Its skus are capped. Codes separate causes, and so do wrong words, but no repeated skus."""
    many = [refused(f"F{n}", error_code="job_failed", error=f"no ink in job-{n}") for n in range(15)]
    twice = [refused(f"S{n}", error_code="duplicate_sku", error=error) for n, error in enumerate("ab")]
    words = [refused(f"W{n}", error_code="unknown_category", error=f"no `{n}`") for n in range(2)]
    rejected = refused("", error_code="rejected", error="no ink in job-1")
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


# -- results.jsonl


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
    header = ("sku", "", "prompt", "category", "", "note")
    long_cells = ("B", "", "", "", "", "", "x", "")
    exact, short, long = objects(
        [row("A", cells=cells), row("A", cells=("A", "")), row("B", cells=long_cells)], header
    )
    assert exact["cells"] == dict(
        zip(("sku", "[B]", "prompt", "category", "[E]", "note"), cells, strict=True)
    )
    assert (short["cells"], short["surplus_cells"]) == ({"sku": "A", "[B]": ""}, [])
    assert long["surplus_cells"] == ["x", ""]


# -- rows that are meant

#: A was made at 09:31:15 UTC, and B failed a minute later.
_FAILED = (item(Stage.PATTERN, "B", since=ENDED + 60), item(Stage.PRODUCT, "B", None))
_BAG = {
    "category": "Tote bag",
    "category_id": "cat_2",
    "cells": ("B", "", "Tote bag", ""),
    "items": _FAILED,
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
    ("wanted", "found"),
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
def test_filter_means_rows_that_fit_every_field(wanted: dict[str, Any], found: str) -> None:
    """Nothing was ever changed for a row of which nothing was requested."""
    chosen = RowFilter(**wanted)
    assert meant(chosen) == found
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


# -- catalog.csv and changes.csv

SINCE = 1_772_357_400.25
ODD = Content('=blue, "herons"\nred 🪶', "cat_1", {"size": "S", "fabric": "linen"})


def read(chunks: Iterable[bytes]) -> list[list[str]]:
    return list(csv.reader(io.StringIO(b"".join(chunks).decode("utf-8-sig"), newline="")))


def test_catalog_is_for_spreadsheets() -> None:
    """Rows by sku, formula cells defused, retired ones marked."""
    rows = [
        CurrentRow("B-2", ODD, ItemKey("k2"), "prd-2", "pat", SINCE, RunId("run-1"), SINCE + 60),
        CurrentRow("007", ODD, ItemKey("k1"), "prd-1", "pat", SINCE, RunId("run-2")),
    ]
    header, first, second = read(catalog_csv(rows))
    assert tuple(header) == CATALOG_COLUMNS
    assert first[:4] == ["007", "current", "prd-1", "pat"]
    assert first[6].startswith("'=blue")
    assert (second[1], second[8]) == ("retired", "2026-03-01T09:31:00.250Z")


def test_changes_have_the_old_and_new_ids(tmp_path: Path) -> None:
    """A line a change; new IDs as far as they were made."""
    fields = {"prompt": "`a` -> `b`", "option:size": "`S` -> `M`"}
    changed = RecordedChange("A-1", ChangeKind.CHANGED, fields, None, "prd-old", "pat-old")
    removed = RecordedChange("A-9", ChangeKind.REMOVED, {}, ChangeVerdict.WITHHELD, "prd-9", "pat-9")
    rows = results_of([row("A-1")])
    write_results(RUN, rows, tmp_path, list, MONEY, changes=[changed, removed])
    header, *lines = read([(tmp_path / "changes.csv").read_bytes()])
    assert tuple(header) == CHANGE_COLUMNS
    assert [",".join(line) for line in lines] == [
        "A-1,changed,prompt; option:size,prd-old,prd-A-1,pat-old,pat-A-1,succeeded,"
        "prompt: `a` -> `b`; option:size: `S` -> `M`",
        "A-9,removed,,prd-9,,pat-9,,withheld,",
    ]
