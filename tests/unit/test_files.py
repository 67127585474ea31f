"""Files are written whole or not at all; those under the home are private; `latest` leads to the last run."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from patternmill.errors import ConfigurationError
from patternmill.files import link_latest, make_home, private_folder, write_whole
from patternmill.ledger.sqlite import SqliteDatabase
from tests.other_user import without_root


def test_file_is_whole_or_as_it_was(tmp_path: Path) -> None:
    """The old one is visible until the new one is whole, and stays where that fails; nothing is left beside it."""
    path = tmp_path / "deep" / "a.txt"
    assert write_whole(path, [b"one ", b"two"]) == hashlib.sha256(b"one two").hexdigest()
    seen: list[bytes] = []

    def chunks(*, breaks: bool) -> Iterator[bytes]:
        yield b"new"
        seen.append(path.read_bytes())
        if breaks:
            raise RuntimeError("the disk is full")

    with pytest.raises(RuntimeError, match="disk is full"):
        write_whole(path, chunks(breaks=True))
    assert (path.read_bytes(), list(path.parent.iterdir())) == (b"one two", [path])
    write_whole(path, chunks(breaks=False))
    assert (path.read_bytes(), seen) == (b"new", [b"one two"] * 2)


def test_latest_moves_to_the_newest_run(tmp_path: Path) -> None:
    """The link is relative, so that the results can be moved as a whole."""
    for name in ("run-1", "run-2"):
        (tmp_path / name).mkdir()
        assert link_latest(tmp_path / name) == tmp_path / "latest"
    assert (tmp_path / "latest").readlink() == Path("run-2")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["latest", "run-1", "run-2"]


@pytest.mark.parametrize("are_links_possible", [True, False])
def test_what_is_no_link_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, are_links_possible: bool
) -> None:
    """A person's own folder called latest; and a file system without links has none."""

    def refuse(*_: object, **__: object) -> None:
        raise OSError("a required privilege is not held")

    if are_links_possible:
        (tmp_path / "latest").mkdir()
    else:
        monkeypatch.setattr(Path, "symlink_to", refuse)
    (tmp_path / "run-1").mkdir()
    before = sorted(tmp_path.iterdir())
    assert link_latest(tmp_path / "run-1") is None
    assert sorted(tmp_path.iterdir()) == before


@pytest.fixture
def loose_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def mode(path: Path) -> str:
    return f"{path.stat().st_mode & 0o777:o}"


@pytest.mark.usefixtures("loose_umask")
def test_home_is_private(tmp_path: Path) -> None:
    """So are its ledger, the files that SQLite adds, and missing folders above a private one."""
    home = tmp_path / "home"
    make_home(home)
    with closing(SqliteDatabase(home / "ledger.sqlite3")):
        assert mode(home) == "700"
        assert {mode(path) for path in home.iterdir()} == {"600"}
        assert len(list(home.iterdir())) > 1
    outside = tmp_path / "open"
    outside.mkdir(mode=0o755)
    private_folder(outside / "home" / "pictures" / "512")
    assert mode(outside) == "755"
    assert {mode(path) for path in outside.rglob("*")} == {"700"}


def test_home_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    """The refusal says what to do: the home is a setting."""
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError, match=r"cannot be written.*PATTERNMILL_HOME"):
        make_home(tmp_path / "file" / "home")
    home = tmp_path / "home"
    home.mkdir(mode=0o500)
    with without_root(), pytest.raises(ConfigurationError, match="Permission denied"):
        make_home(home)
