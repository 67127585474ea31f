"""Which runs' records are incomplete is kept in the home, and never stops a command."""

from __future__ import annotations

from pathlib import Path

import pytest

from prefect_host.connection import (
    MOST_INCOMPLETE,
    incomplete_records,
    mark_complete,
    mark_incomplete,
    may_go_without,
)


def test_marks_are_kept_until_the_record_is_complete(tmp_path: Path) -> None:
    mark_incomplete(tmp_path, "20260102-030405-abcdef", "staging")
    mark_incomplete(tmp_path, "20260102-030405-abcdef", "staging")
    assert incomplete_records(tmp_path) == {"20260102-030405-abcdef": "staging"}
    mark_complete(tmp_path, "20260102-030405-abcdef")
    mark_complete(tmp_path, "20260102-030405-abcdef")
    assert incomplete_records(tmp_path) == {}


def test_half_written_mark_is_none(tmp_path: Path) -> None:
    """As a killed process leaves it."""
    mark_incomplete(tmp_path, "run", "staging")
    (tmp_path / "incomplete-records" / ".run.0a1b2c.tmp").write_text("sta")
    assert incomplete_records(tmp_path) == {"run": "staging"}


def test_home_that_takes_no_file_ends_no_command(tmp_path: Path) -> None:
    """A full disk does not either; a file in the folder's place is refused by every system, for every user."""
    (tmp_path / "incomplete-records").write_text("in the way")
    mark_incomplete(tmp_path, "run", "staging")
    assert incomplete_records(tmp_path) == {}


def test_a_run_with_nothing_to_do_goes_without_a_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unless one is configured, or earlier records wait for it: one with gaps, or many that are not shown."""
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    assert may_go_without(tmp_path)
    mark_incomplete(tmp_path, "run", "staging", is_shown=False)
    assert may_go_without(tmp_path)
    assert incomplete_records(tmp_path) == {"run": "staging"}
    mark_incomplete(tmp_path, "gaps", "staging")
    assert not may_go_without(tmp_path)
    mark_complete(tmp_path, "gaps")
    for number in range(MOST_INCOMPLETE):
        mark_incomplete(tmp_path, f"{number}", "staging", is_shown=False)
    assert not may_go_without(tmp_path)
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:1/api")
    assert not may_go_without(tmp_path / "another")
