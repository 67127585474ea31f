"""What is under the home is for its owner alone, in a new home and in one that was open."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from patternmill.errors import ConfigurationError
from patternmill.files import keep_private, private_folder
from patternmill.ledger.ledger import open_database
from tests.other_user import without_root


@pytest.fixture(autouse=True)
def loose_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def mode(path: Path) -> str:
    return f"{path.stat().st_mode & 0o777:o}"


def test_new_home_is_private(tmp_path: Path) -> None:
    """With its ledger and the files that SQLite adds."""
    home = tmp_path / "home"
    keep_private(home)
    database = open_database(None, home)
    try:
        assert mode(home) == "700"
        assert {mode(path) for path in home.iterdir()} == {"600"}
        assert len(list(home.iterdir())) > 1
    finally:
        database.close()


def test_folders_above_a_private_one_are_private(tmp_path: Path) -> None:
    """Those that were missing."""
    outside = tmp_path / "open"
    outside.mkdir(mode=0o755)
    private_folder(outside / "home" / "pictures" / "512")
    assert mode(outside) == "755"
    assert {mode(path) for path in outside.rglob("*")} == {"700"}


def test_our_files_in_a_home_are_made_private(tmp_path: Path) -> None:
    """The home that somebody else made keeps its mode, and so do other files in it, and targets of links."""
    outside = tmp_path / "outside"
    outside.write_text("")
    home = tmp_path / "home"
    (home / "prefect" / "storage").mkdir(parents=True)
    for name in ("ledger.sqlite3", "ledger.sqlite3-wal", "worker.log", "prefect/storage/result", "notes.txt"):
        (home / name).write_text("")
    (home / "prefect" / "link").symlink_to(outside)
    keep_private(home)
    assert (mode(home), mode(home / "prefect" / "storage")) == ("755", "700")
    for name in ("ledger.sqlite3", "ledger.sqlite3-wal", "worker.log", "prefect/storage/result"):
        assert mode(home / name) == "600", name
    assert (mode(outside), mode(home / "notes.txt")) == ("644", "644")


def test_home_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    """With what to do: it is a setting."""
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError, match=r"cannot be written.*PATTERNMILL_HOME"):
        keep_private(tmp_path / "file" / "home")
    home = tmp_path / "home"
    home.mkdir(mode=0o500)
    with without_root(), pytest.raises(ConfigurationError, match="Permission denied"):
        keep_private(home)
