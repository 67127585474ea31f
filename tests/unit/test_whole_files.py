"""Files are written whole or not at all, and `latest` leads to the last of them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from patternmill.files import link_latest, write_whole


def breaking() -> Iterator[bytes]:
    yield b"half of the new"
    raise RuntimeError("the disk is full")


def test_file_is_written_with_its_checksum(tmp_path: Path) -> None:
    """The checksum returned is that of the file on disk; missing directories are made."""
    path = tmp_path / "deep" / "a.txt"
    digest = write_whole(path, [b"one ", b"two"])
    assert path.read_bytes() == b"one two"
    assert digest == hashlib.sha256(b"one two").hexdigest()


def test_failing_chunk_leaves_the_old_file(tmp_path: Path) -> None:
    """No new contents are visible, and no temporary file is left."""
    path = tmp_path / "a.txt"
    write_whole(path, [b"old"])
    with pytest.raises(RuntimeError, match="disk is full"):
        write_whole(path, breaking())
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_old_file_is_visible_until_the_new_one_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    write_whole(path, [b"old"])
    seen: list[bytes] = []

    def looking() -> Iterator[bytes]:
        yield b"new"
        seen.append(path.read_bytes())

    write_whole(path, looking())
    assert (seen, path.read_bytes()) == ([b"old"], b"new")


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
    if are_links_possible:
        (tmp_path / "latest").mkdir()
    else:
        monkeypatch.setattr(Path, "symlink_to", _impossible)
    (tmp_path / "run-1").mkdir()
    before = sorted(tmp_path.iterdir())
    assert link_latest(tmp_path / "run-1") is None
    assert sorted(tmp_path.iterdir()) == before


def _impossible(*_: object, **__: object) -> None:
    raise OSError("a required privilege is not held")
