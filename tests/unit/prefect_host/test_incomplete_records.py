"""Which runs' records are incomplete is kept in the home, and never stops a command."""

from __future__ import annotations

from pathlib import Path

from prefect_host.connection import incomplete_records, mark_complete, mark_incomplete


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
