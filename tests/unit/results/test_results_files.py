"""A run is published the same each time, whatever its outcome and its size."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta, timezone
from pathlib import Path

import pytest

from patternmill.results.row_results import RowResult
from patternmill.states import Outcome, RowStatus

from .builders import RUN, published, refused, row


def contents(out: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in out.iterdir()}


def test_rebuild_is_the_same_byte_for_byte(tmp_path: Path) -> None:
    """In another directory, over old files, and without what databases do not keep: zones and the order of names."""
    rows: list[RowResult] = [row("A"), refused("B"), row("C", RowStatus.IN_DOUBT, error="no answer")]
    run = replace(RUN, options={"b": [1, {"y": 1, "x": 2}], "a": None}, versions={"p": "1", "a": "2"})
    published(rows, tmp_path / "one", run)
    published(rows[:1], tmp_path / "two", run)
    elsewhere = run.started_at.astimezone(timezone(timedelta(hours=-5)))
    shuffled = replace(
        run,
        started_at=elsewhere,
        options={"a": None, "b": [1, {"x": 2, "y": 1}]},
        versions={"a": "2", "p": "1"},
    )
    turned = [replace(one, selections=dict(reversed(one.selections.items()))) for one in rows]
    published(turned, tmp_path / "two", shuffled)
    assert contents(tmp_path / "one") == contents(tmp_path / "two")


@pytest.mark.parametrize("outcome", [*Outcome, None])
def test_every_outcome_has_its_results(tmp_path: Path, outcome: Outcome | None) -> None:
    """All five files, also when nothing was made or the input was empty."""
    published([], tmp_path, replace(RUN, outcome=outcome, reason="the budget is spent"))
    assert set(contents(tmp_path)) == {
        "results.csv",
        "failures.csv",
        "results.jsonl",
        "gallery.html",
        "manifest.json",
    }
