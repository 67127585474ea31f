"""What is under the home is for its owner alone: folders 0700, files 0600, whatever the umask."""

from __future__ import annotations

import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path

UMASK = 0o077
#: What Patternmill keeps under a home; other files are not ours to change.
_OURS = ("*.sqlite3*", "*.log", "embedded", "logs", "pictures", "prefect", "retries", "studio")


def keep_private(home: Path) -> None:
    """Make the home; in one that exists, take all rights of group and others."""
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    _restrict(home)
    for pattern in _OURS:
        for path in home.glob(pattern):
            _restrict_all(path)


def private_folder(folder: Path) -> Path:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def lasting_secret(path: Path, prefix: str = "") -> str:
    """The secret in a file: random, made once, readable by its owner only."""
    if not path.exists():
        _make_secret(path, f"{prefix}{secrets.token_urlsafe(32)}\n")
    return path.read_text().strip()


def _make_secret(path: Path, text: str) -> None:
    """The first process that writes it wins, and no reader sees a part."""
    fresh = path.with_name(f"{path.name}.{secrets.token_hex(6)}")
    try:
        write_private(fresh, text)
        with suppress(FileExistsError):
            os.link(fresh, path)
    finally:
        fresh.unlink(missing_ok=True)


def write_private(path: Path, content: str | bytes) -> None:
    """Write a new file, for its owner alone from the first moment."""
    data = content.encode() if isinstance(content, str) else content
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(data)


def _restrict_all(path: Path) -> None:
    _restrict(path)
    for folder, folders, files in os.walk(path):
        for name in (*folders, *files):
            _restrict(Path(folder, name))


def _restrict(path: Path) -> None:
    """Take all rights of group and others, unless it is gone, or another user's."""
    with suppress(FileNotFoundError, PermissionError):
        found = path.lstat()
        # What has a second name is a picture that earlier versions linked into results, where others may see it.
        is_linked = stat.S_ISLNK(found.st_mode) or (stat.S_ISREG(found.st_mode) and found.st_nlink > 1)
        if found.st_mode & UMASK and not is_linked:
            path.chmod(stat.S_IMODE(found.st_mode) & ~UMASK)
