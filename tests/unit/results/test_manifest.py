"""A run is published the same each time; its manifest adds up, has nothing about a machine, and detects an edit."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, replace
from datetime import timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from patternmill.results.summary import read_manifest
from patternmill.states import Outcome, RowStatus

from .builders import RUN, published, refused, row

FILES = ["failures.csv", "gallery.html", "results.csv", "results.jsonl"]


def content(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "manifest.json").read_bytes())
    return found


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


def test_counts_add_up(tmp_path: Path) -> None:
    """Every status is present; a pattern that two rows share is one pattern."""
    shared = row("A")
    twin = row("B", items=(shared.items[0], row("B").items[1]))
    counts = published([shared, twin, refused("C"), row("D", RowStatus.NOT_STARTED)], tmp_path).counts
    assert content(tmp_path)["counts"] == asdict(counts)
    assert counts.rows == sum(counts.by_status.values()) == 4
    assert set(counts.by_status) == set(RowStatus)
    made = (counts.products, counts.patterns, counts.product_attempts, counts.pattern_attempts)
    assert made == (2, 1, 2, 1)


def test_manifest_has_the_checksums_of_every_other_file(tmp_path: Path) -> None:
    """It is written last, so that it never names files that do not exist."""
    result = published([row("A"), refused("B")], tmp_path)
    assert list(content(tmp_path)["files"]) == FILES
    assert result.files[-1] == "manifest.json"
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*FILES, "manifest.json"])
    for name, sha256 in content(tmp_path)["files"].items():
        assert hashlib.sha256((tmp_path / name).read_bytes()).hexdigest() == sha256


@pytest.mark.parametrize("source", ["/home/ann/spring.csv", "C:\\Users\\ann\\spring.csv"])
@pytest.mark.parametrize("outcome", [Outcome.FAILED, None])
def test_manifest_describes_the_run(tmp_path: Path, source: str, outcome: Outcome | None) -> None:
    """Its input without its folder, its scope, and its outcome; also where nothing was made and of an open run."""
    published([], tmp_path, replace(RUN, source=source, outcome=outcome, reason="spent"))
    found = content(tmp_path)
    assert found["schema_version"] == 1
    assert (found["source"], found["input_sha256"]) == ("spring.csv", "ab" * 32)
    assert (found["environment"], found["catalog"], found["run_id"]) == ("staging", "spring", "run-7")
    ended = (found["started_at"], found["outcome"], found["reason"])
    assert ended == ("2026-03-01T09:30:00.000Z", outcome, "spent")


@pytest.mark.parametrize("text", [None, "{", "[]", "{}"])
def test_folder_without_a_manifest_has_no_runs_results(tmp_path: Path, text: str | None) -> None:
    published([], tmp_path / "run")
    found = read_manifest(tmp_path / "run")
    assert found is not None and (found["run_id"], found["ledger"]) == ("run-7", RUN.ledger)
    if text is not None:
        (tmp_path / "manifest.json").write_text(text)
    assert read_manifest(tmp_path) is None
