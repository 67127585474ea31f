"""A catalog's state and its changes, for spreadsheets and feeds."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable

from patternmill.catalog.changes import ChangeKind, ChangeVerdict, CurrentRow
from patternmill.catalog.rows import Content
from patternmill.identifiers import ItemKey, RunId
from patternmill.ledger.catalogs import RecordedChange
from patternmill.results.catalog_files import CATALOG_COLUMNS, changes_file, state_bytes

from .builders import row

SINCE = 1_772_357_400.25
ODD = Content('=blue, "herons"\nred 🪶', "cat_1", {"size": "S", "fabric": "linen"})
ROWS = [
    CurrentRow("B-2", ODD, ItemKey("k2"), "prd-2", "pat", SINCE, RunId("run-1"), SINCE + 60),
    CurrentRow("007", ODD, ItemKey("k1"), "prd-1", "pat", SINCE, RunId("run-2")),
]


def read(chunks: Iterable[bytes]) -> list[list[str]]:
    return list(csv.reader(io.StringIO(b"".join(chunks).decode("utf-8-sig"), newline="")))


def test_csv_is_for_spreadsheets() -> None:
    """Rows by sku, formula cells defused, retired ones marked."""
    header, first, second = read(state_bytes(ROWS))
    assert tuple(header) == CATALOG_COLUMNS
    assert first[:4] == ["007", "current", "prd-1", "pat"]
    assert first[6].startswith("'=blue")
    assert (second[1], second[8]) == ("retired", "2026-03-01T09:31:00.250Z")


def test_changes_have_the_old_and_new_ids() -> None:
    """A line a change; new IDs as far as they were made."""
    fields = {"prompt": "`a` -> `b`", "option:size": "`S` -> `M`"}
    changed = RecordedChange("A-1", ChangeKind.CHANGED, fields, None, "prd-old", "pat-old")
    removed = RecordedChange("A-9", ChangeKind.REMOVED, {}, ChangeVerdict.WITHHELD, "prd-9", "pat-9")
    assert [",".join(line) for line in read(changes_file([changed, removed], [row("A-1")]))[1:]] == [
        "A-1,changed,prompt; option:size,prd-old,prd-A-1,pat-old,pat-A-1,succeeded,"
        "prompt: `a` -> `b`; option:size: `S` -> `M`",
        "A-9,removed,,prd-9,,pat-9,,withheld,",
    ]
