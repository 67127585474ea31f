"""results.jsonl: one exact object a row, with the whole story of its pattern and product."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from patternmill.results.row_files import RowResult, iso_time, lines
from patternmill.states import AttemptState, Stage

from .builders import HEADER, attempt, row, trace


def objects(rows: list[RowResult], header: tuple[str, ...] = HEADER) -> list[dict[str, Any]]:
    raw = b"".join(lines("run-7", header, range(len(header)), rows))
    return [json.loads(line) for line in raw.decode().split("\n")[:-1]]


def test_row_has_every_attempt() -> None:
    """States, request IDs, job IDs, pictures and times of each, the last one in short."""
    first = attempt("p", state=AttemptState.FAILED, result_id=None, error="no ink", ended_at=None)
    second = attempt("p", 2, picture_url="http://x/p.png")
    pattern = trace(Stage.PATTERN, "p", first, second)
    line = objects([row("A", pattern=pattern)])[0]["pattern"]
    assert (line["request_id"], line["job_id"]) == ("request-p-2", "job-p-2")
    assert (line["picture_url"], line["attempts"][0]["error"]) == ("http://x/p.png", "no ink")
    assert [(one["attempt"], one["state"]) for one in line["attempts"]] == [(1, "failed"), (2, "succeeded")]
    assert line["attempts"][1] == {
        "attempt": 2,
        "state": "succeeded",
        "request_id": "request-p-2",
        "job_id": "job-p-2",
        "result_id": "made-p",
        "picture_url": "http://x/p.png",
        "error_code": None,
        "error": None,
        "intended_at": "2026-03-01T09:30:00.250Z",
        "accepted_at": "2026-03-01T09:30:00.500Z",
        "ended_at": "2026-03-01T09:31:15.062Z",
    }


def test_cells_are_exact() -> None:
    """Nothing is defused, and each cell is under its column's name."""
    cells = ("=A", "two\r\nlines", "'+x", "ü 🪿 \u2028")
    line = objects([row("=A", cells=cells)])[0]
    assert line["cells"] == dict(zip(HEADER, cells, strict=True))
    assert line["surplus_cells"] == []


def test_malformed_rows_are_written_as_they_are() -> None:
    """A missing cell is absent, which an empty one is not; surplus ones are listed."""
    short, long = objects([row("A", cells=("A", "")), row("B", cells=("B", "", "", "", "x", ""))])
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
