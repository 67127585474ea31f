"""Writes files whole: a reader sees the old file or the new one, never a part, whatever crashes meanwhile."""

from __future__ import annotations

import contextlib
import errno
import glob
import hashlib
import os
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

LATEST = "latest"
_NO_DIRECTORY_SYNC = {errno.EINVAL, errno.ENOTSUP, errno.EACCES, errno.EPERM, errno.EBADF}
_READ_SIZE = 1 << 20


@dataclass(frozen=True, slots=True)
class FileMark:
    """What identifies a file's contents."""

    name: str
    sha256: str
    bytes: int


def write_whole(path: Path, chunks: Iterable[bytes]) -> FileMark:
    """Write `chunks` as the whole of `path`, durably, and return the mark of what was written.

    When `chunks` raises, or the disk refuses, the old file stays as it was and nothing is left next to it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    try:
        mark = _write_synced(temporary, path.name, chunks)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_directory(path.parent)
    return mark


def sweep(directory: Path, names: Iterable[str]) -> None:
    """Remove what a killed writer of these files left next to them. For the only writer in the directory."""
    for name in names:
        for left in directory.glob(f".{glob.escape(name)}.*.tmp"):
            left.unlink(missing_ok=True)


def mark_of(path: Path) -> FileMark:
    """The mark of the file as it is on disk now. Raises OSError when it cannot be read."""
    digest, size = hashlib.sha256(), 0
    with path.open("rb") as file:
        while chunk := file.read(_READ_SIZE):
            digest.update(chunk)
            size += len(chunk)
    return FileMark(path.name, digest.hexdigest(), size)


def latest_in(environment: str) -> str:
    """The name of the link to the latest run in one environment; `latest` leads to that in any."""
    return f"{LATEST}-{environment}"


def link_latest(out: Path, name: str = LATEST) -> Path | None:
    """Let `latest` (or `name`), next to the run's directory `out`, lead to it.

    Where links are impossible, or a person's own file has that name, `latest.txt` names the directory instead.
    Returns the link or that file; None when `out` is itself called `latest`, or when nothing could be written.
    """
    if out.name in {LATEST, name, ""}:
        return None
    try:
        return _replace_link(out.with_name(name), out.name)
    except (OSError, NotImplementedError):
        note = out.with_name(f"{name}.txt")
    with contextlib.suppress(OSError):
        write_whole(note, [f"{out.name}\n".encode()])
        return note
    return None


def _write_synced(temporary: Path, name: str, chunks: Iterable[bytes]) -> FileMark:
    digest, size = hashlib.sha256(), 0
    with temporary.open("xb") as file:
        for chunk in chunks:
            file.write(chunk)
            digest.update(chunk)
            size += len(chunk)
        file.flush()
        os.fsync(file.fileno())
    return FileMark(name, digest.hexdigest(), size)


def _sync_directory(directory: Path) -> None:
    """Make the rename durable; some file systems and platforms cannot sync a directory."""
    if os.name == "nt":
        return
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in _NO_DIRECTORY_SYNC:
            raise
    finally:
        os.close(handle)


def _replace_link(link: Path, target: str) -> Path:
    if link.exists() and not link.is_symlink():
        raise FileExistsError(link)
    sweep(link.parent, [link.name])
    temporary = link.with_name(f".{link.name}.{secrets.token_hex(6)}.tmp")
    try:
        temporary.symlink_to(target, target_is_directory=True)
        temporary.replace(link)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return link
