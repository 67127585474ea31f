"""What is under the home is for its owner alone, in a new home and in one that was open."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from patternmill.errors import ConfigurationError
from patternmill.files import make_home, private_folder
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
    make_home(home)
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


def test_home_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    """With what to do: it is a setting."""
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError, match=r"cannot be written.*PATTERNMILL_HOME"):
        make_home(tmp_path / "file" / "home")
    home = tmp_path / "home"
    home.mkdir(mode=0o500)
    with without_root(), pytest.raises(ConfigurationError, match="Permission denied"):
        make_home(home)
