"""results.jsonl: one exact object a row, with the whole story of its pattern and product."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

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


def test_cells_are_exact() -> None:
    """Nothing is defused; a missing cell is absent, which an empty one is not; nameless columns have their letter."""
    cells = ("=A", "two\r\nlines", "'+x", "ü 🪿 \u2028")
    header = ("sku", "", "", "note")
    exact, short, long = objects(
        [row("A", cells=cells), row("A", cells=("A", "")), row("B", cells=("B", "", "", "", "x", ""))], header
    )
    assert exact["cells"] == dict(zip(("sku", "[B]", "[C]", "note"), cells, strict=True))
    assert (short["cells"], short["surplus_cells"]) == ({"sku": "A", "[B]": ""}, [])
    assert long["surplus_cells"] == ["x", ""]


def test_times_are_utc_with_milliseconds() -> None:
    """In whichever zone they were."""
    assert iso_time(None) is None
    assert iso_time(1.9996) == "1970-01-01T00:00:02.000Z"
    elsewhere = datetime(2026, 3, 1, 11, 30, 0, 7000, timezone(timedelta(hours=2)))
    assert iso_time(elsewhere) == iso_time(elsewhere.astimezone(UTC)) == "2026-03-01T09:30:00.007Z"
