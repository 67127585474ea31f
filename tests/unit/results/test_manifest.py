"""The manifest: its numbers add up, it has nothing about a machine, and it detects an edit."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from patternmill.results.summary import ManifestUnreadable, read_manifest, verify
from patternmill.states import Outcome, RowStatus

from .builders import RUN, published, refused, row

FILES = ["results.csv", "failures.csv", "results.jsonl", "gallery.html"]


def written(out: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((out / "manifest.json").read_bytes())
    return content


def test_counts_add_up(tmp_path: Path) -> None:
    """Every status is present; a pattern that two rows share is one pattern."""
    shared = row("A")
    twin = row("B", items=(shared.items[0], row("B").items[1]))
    rows = [shared, twin, refused("C"), row("D", RowStatus.NOT_STARTED)]
    result = published(rows, tmp_path)
    content = written(tmp_path)["counts"]
    assert content["rows"] == sum(content["by_status"].values()) == 4
    assert set(content["by_status"]) == set(RowStatus)
    assert (content["products"], content["patterns"]) == (2, 1)
    assert (content["product_attempts"], content["pattern_attempts"]) == (2, 1)
    assert (result.counts.products, result.counts.patterns, result.counts.by_status[RowStatus.REFUSED]) == (
        2,
        1,
        1,
    )


def test_manifest_has_the_checksums_of_every_other_file(tmp_path: Path) -> None:
    """It is written last, so that it never names files that do not exist; what is edited or missing is found."""
    result = published([row("A"), refused("B")], tmp_path)
    manifest = read_manifest(tmp_path)
    assert list(manifest.files) == FILES
    assert [file.name for file in result.files] == [*FILES, "manifest.json"]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*FILES, "manifest.json"])
    assert verify(tmp_path) == []
    for name in FILES:
        raw = (tmp_path / name).read_bytes()
        (tmp_path / name).write_bytes(raw[:-1] + bytes([raw[-1] ^ 1]))
        assert verify(tmp_path) == [name]
        (tmp_path / name).write_bytes(raw)
    (tmp_path / FILES[0]).unlink()
    assert verify(tmp_path) == FILES[:1]


@pytest.mark.parametrize("source", ["/home/ann/spring.csv", "C:\\Users\\ann\\spring.csv", "../spring.csv"])
def test_manifest_describes_the_run(tmp_path: Path, source: str) -> None:
    """Its input without its folder, its scope, and its outcome."""
    published([row("A")], tmp_path, replace(RUN, source=source))
    content = written(tmp_path)
    assert content["schema_version"] == 1
    assert (content["source"], content["input_sha256"]) == ("spring.csv", "ab" * 32)
    assert (content["environment"], content["catalog"], content["run_id"]) == ("staging", "spring", "run-7")
    assert (content["outcome"], content["reason"]) == ("CompletedWithFailures", None)
    assert (content["started_at"], content["ended_at"]) == (
        "2026-03-01T09:30:00.000Z",
        "2026-03-01T09:34:12.000Z",
    )
    manifest = read_manifest(tmp_path / "manifest.json")
    assert (manifest.outcome, manifest.started_at) == (Outcome.COMPLETED_WITH_FAILURES, RUN.started_at)


@pytest.mark.parametrize("text", [None, "", "{}", '{"schema_version": 2}'])
def test_invalid_manifest_is_refused(tmp_path: Path, text: str | None) -> None:
    """Missing, cut short, or of a later schema."""
    if text is not None:
        (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(ManifestUnreadable, match=r"manifest\.json"):
        verify(tmp_path)
