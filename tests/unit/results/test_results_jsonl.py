"""results.jsonl: one exact object a row, with the whole story of its pattern and product."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from patternmill.results.row_files import iso_time, lines
from patternmill.results.row_results import RowResult
from patternmill.states import Stage

from .builders import HEADER, item, row


def objects(rows: list[RowResult], header: tuple[str, ...] = HEADER) -> list[dict[str, Any]]:
    raw = b"".join(lines("run-7", header, range(len(header)), rows))
    return [json.loads(line) for line in raw.decode().split("\n")[:-1]]


def test_row_has_its_items() -> None:
    """State, IDs, picture and time of the last attempt at each, and how many there were; what it is built on before."""
    pattern = item(Stage.REFINEMENT, "p", attempts=2, picture_url="http://x/p.png")
    one = row("A", items=(item(Stage.PATTERN, "first"), pattern, item(Stage.PRODUCT, "A", state=None)))
    line = objects([one])[0]
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


def test_cells_are_exact() -> None:
    """Nothing is defused; a missing cell is absent, which an empty one is not, and surplus ones are listed."""
    cells = ("=A", "two\r\nlines", "'+x", "ü 🪿 \u2028")
    exact, short, long = objects(
        [row("=A", cells=cells), row("A", cells=("A", "")), row("B", cells=("B", "", "", "", "x", ""))]
    )
    assert exact["cells"] == dict(zip(HEADER, cells, strict=True)) and exact["surplus_cells"] == []
    assert short["cells"] == {"sku": "A", "prompt": ""}
    assert long["surplus_cells"] == ["x", ""]


def test_columns_without_a_name_are_distinguished() -> None:
    """By the letter that a spreadsheet shows."""
    line = objects([row("A", cells=("A", "one", "two", "x"))], ("sku", "", "", "note"))[0]
    assert line["cells"] == {"sku": "A", "[B]": "one", "[C]": "two", "note": "x"}


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (None, None),
        (0.0, "1970-01-01T00:00:00.000Z"),
        (1.9996, "1970-01-01T00:00:02.000Z"),
        (1_772_357_400.123, "2026-03-01T09:30:00.123Z"),
        (datetime(2026, 3, 1, 9, 30, tzinfo=UTC), "2026-03-01T09:30:00.000Z"),
        (datetime(2026, 3, 1, 11, 30, 0, 7000, timezone(timedelta(hours=2))), "2026-03-01T09:30:00.007Z"),
    ],
)
def test_times_are_utc_with_milliseconds(moment: float | datetime | None, text: str | None) -> None:
    """In whichever zone they were."""
    assert iso_time(moment) == text
