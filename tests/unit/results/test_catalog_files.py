"""A catalog's state, in the formats that others read."""

from __future__ import annotations

import csv
import io

from patternmill.catalog.changes import ChangeKind, ChangeVerdict, Content, CurrentRow
from patternmill.identifiers import ItemKey, RunId
from patternmill.ledger.catalogs import RecordedChange
from patternmill.results.catalog_files import CATALOG_COLUMNS, changes_file, state_bytes
from tests.unit.results.builders import row

SINCE = 1_772_357_400.25
ODD = Content('=blue, "herons"\nred 🪶', "cat_1", {"size": "S", "fabric": "linen"})
ROWS = [
    CurrentRow("B-2", ODD, ItemKey("k2"), "prd-2", "pat", SINCE, RunId("run-1"), SINCE + 60),
    CurrentRow("007", ODD, ItemKey("k1"), "prd-1", "pat", SINCE, RunId("run-2")),
]


def test_csv_is_for_spreadsheets() -> None:
    """Rows by sku, formula cells defused, retired ones marked."""
    header, first, second = csv.reader(
        io.StringIO(b"".join(state_bytes(ROWS)).decode("utf-8-sig"), newline="")
    )
    assert tuple(header) == CATALOG_COLUMNS
    assert first[:4] == ["007", "current", "prd-1", "pat"]
    assert first[6].startswith("'=blue")
    assert second[1] == "retired"
    assert second[8] == "2026-03-01T09:31:00.250Z"


def test_changes_have_the_old_and_new_ids() -> None:
    """A line a change; new IDs as far as they were made."""
    changes = [
        RecordedChange(
            "A-1",
            ChangeKind.CHANGED,
            {"prompt": "`a` -> `b`", "option:size": "`S` -> `M`"},
            None,
            "prd-old",
            "pat-old",
        ),
        RecordedChange("A-9", ChangeKind.REMOVED, {}, ChangeVerdict.WITHHELD, "prd-9", "pat-9"),
    ]
    lines = list(csv.reader(io.StringIO(b"".join(changes_file(changes, [row("A-1")])).decode("utf-8-sig"))))
    assert lines[1] == [
        "A-1",
        "changed",
        "prompt; option:size",
        "prd-old",
        "prd-A-1",
        "pat-old",
        "pat-A-1",
        "succeeded",
        "prompt: `a` -> `b`; option:size: `S` -> `M`",
    ]
    assert lines[2] == ["A-9", "removed", "", "prd-9", "", "pat-9", "", "withheld", ""]
