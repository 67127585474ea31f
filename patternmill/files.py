"""Files are written whole, and those under the home for their owner alone.

A reader sees the old file or the new one, never a part, whatever crashes meanwhile. Under the home, folders are 0700
and files 0600, whatever the umask.
"""

from __future__ import annotations

import errno
import glob
import hashlib
import json
import os
import secrets
import stat
from collections.abc import Iterable
from pathlib import Path

import orjson

from patternmill.errors import ConfigurationError

LATEST = "latest"
_NO_DIRECTORY_SYNC = {errno.EINVAL, errno.ENOTSUP, errno.EACCES, errno.EPERM, errno.EBADF}


def json_bytes(value: object, *, is_pretty: bool = False) -> bytes:
    """Return JSON in UTF-8; what UTF-8 cannot carry (half a surrogate pair, from an odd answer) is escaped."""
    try:
        return orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS if is_pretty else 0)
    except TypeError:
        return json.dumps(value, indent=2 if is_pretty else None, sort_keys=is_pretty).encode()


def write_whole(path: Path, chunks: Iterable[bytes], *, mode: int = 0o666) -> str:
    """Write `chunks` durably as the whole of `path`, and return its SHA-256; `mode` is the one before the umask.

    When `chunks` raises, or the disk refuses, the old file stays as it was and nothing is left beside it.
    """
    make_folder(path.parent)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    try:
        digest = _write_synced(temporary, chunks, mode)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)
    return digest


def sweep(directory: Path, names: Iterable[str]) -> None:
    """Remove what a killed writer of these files left beside them, on behalf of the only writer in the directory."""
    for name in names:
        for left in directory.glob(f".{glob.escape(name)}.*.tmp"):
            left.unlink(missing_ok=True)


def latest_in(environment: str) -> str:
    """Return the name of the link to the latest run of an environment; `latest` leads to the latest of all."""
    return f"{LATEST}-{environment}"


def link_latest(out: Path, name: str = LATEST) -> Path | None:
    """Point the link `latest` (or `name`), beside the run's directory `out`, at that directory.

    Return None where it cannot: `out` itself or a person's own file has the name, or the file system has no links.
    """
    link = out.with_name(name)
    if out.name in {LATEST, name, ""} or (link.exists() and not link.is_symlink()):
        return None
    sweep(link.parent, [link.name])
    temporary = link.with_name(f".{link.name}.{secrets.token_hex(6)}.tmp")
    try:
        temporary.symlink_to(out.name, target_is_directory=True)
        return temporary.replace(link)
    except OSError:
        temporary.unlink(missing_ok=True)
        return None


def _write_synced(temporary: Path, chunks: Iterable[bytes], mode: int) -> str:
    digest = hashlib.sha256()
    with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        for chunk in chunks:
            file.write(chunk)
            digest.update(chunk)
        file.flush()
        os.fsync(file.fileno())
    return digest.hexdigest()


def sync_directory(directory: Path) -> None:
    """Make the rename durable; some file systems cannot sync a directory."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in _NO_DIRECTORY_SYNC:
            raise
    finally:
        os.close(handle)


UMASK = 0o077


def make_home(home: Path) -> None:
    """Make the home for its owner alone, so that all that is put into it is private from its first moment.

    Raises ConfigurationError when this user cannot write there.
    """
    try:
        private_folder(home)
        reason = "" if os.access(home, os.W_OK | os.X_OK) else os.strerror(errno.EACCES)
    except OSError as error:
        reason = error.strerror or type(error).__name__
    if reason:
        raise ConfigurationError(
            f"The home folder {home.resolve()}, where the ledger is kept, cannot be written: {reason}.",
            remedy="Set PATTERNMILL_HOME to a folder that you may write, or go to one that has it.",
        )


def private_folder(folder: Path) -> Path:
    """Make the folder, and those above it that are missing, for their owner alone."""
    return make_folder(folder, mode=0o700)


def make_folder(folder: Path, *, mode: int = 0o777) -> Path:
    """Make the folder, and those above it that are missing, so that they survive a power cut; return it.

    Even a synced file is lost if the entry of a folder above it was not synced.
    """
    for missing in reversed([place for place in (folder, *folder.parents) if not place.exists()]):
        missing.mkdir(mode=mode, exist_ok=True)
        sync_directory(missing.parent)
    return folder


def fresh_secret(path: Path, prefix: str) -> None:
    """Put a new random secret into a file that only its owner may read, in place of an earlier one."""
    replace_private(path, f"{prefix}{secrets.token_urlsafe(32)}\n")


def own_text(path: Path) -> str | None:
    """Read a file that only this user may read; None where there is none. Raises ConfigurationError."""
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), encoding="utf-8") as file:
            refuse_foreign(path, status := os.fstat(file.fileno()))
            if not status.st_mode & UMASK:
                return file.read()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            f"{path} cannot be read ({type(error).__name__}).", remedy="Correct or remove it."
        ) from None
    raise ConfigurationError(
        f"{path} can be read by others than its owner.", code="not_private", remedy=f"Run chmod 600 {path}."
    )


def refuse_foreign(path: Path, status: os.stat_result | None = None) -> None:
    """Raise ConfigurationError where a file or folder belongs to another user, who decides what is in it."""
    try:
        owner = (status or path.stat()).st_uid
    except OSError:
        return
    if owner != os.geteuid():
        raise ConfigurationError(
            f"{path} belongs to another user (UID {owner}).",
            code="foreign",
            remedy="Name one of your own: PATTERNMILL_HOME, or another working folder. Nothing was sent.",
        )


def refuse_shared(home: Path) -> None:
    """Raise ConfigurationError where others own or may write a home or anything in it."""
    _refuse_shared_entry(str(home))
    for folder, folders, files in os.walk(home):
        for name in (*folders, *files):
            _refuse_shared_entry(os.path.join(folder, name))  # noqa: PTH118  for thousands of pictures


def _refuse_shared_entry(path: str) -> None:
    """Check an entry and, for a link, also what it leads to."""
    try:
        link = os.lstat(path)
        target = os.stat(path) if stat.S_ISLNK(link.st_mode) else link  # noqa: PTH116
    except OSError:
        return
    foreign = {link.st_uid, target.st_uid} - {os.geteuid()}
    if foreign or target.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        others = f"belongs to another user (UID {foreign.pop()})" if foreign else "can be written by others"
        raise ConfigurationError(
            f"{path} {others}, who would decide what is bought with your key.",
            code="shared_home",
            remedy="Keep the home where you alone can write, and export it: PATTERNMILL_HOME=~/.patternmill. "
            "Nothing was sent.",
        )


def replace_private(path: Path, content: str | bytes) -> None:
    """Write a file for its owner alone; no reader sees a part."""
    write_whole(path, [content.encode() if isinstance(content, str) else content], mode=0o600)
