"""The bytes of a local file, read whole; what is still being written or replaced is refused."""

from __future__ import annotations

import stat
from collections.abc import Callable
from pathlib import Path

from patternmill.catalog.problems import FileCode, refusal
from patternmill.catalog.read_limits import Reading
from patternmill.text import plain

_LONGEST_PATH = 1000


def stable_bytes(path: Path, read: Callable[[Path], bytes], reading: Reading | None = None) -> bytes:
    """The file's bytes, read twice: what is still being written or replaced is refused."""
    shown_path = plain(str(path), _LONGEST_PATH)
    try:
        before = _identity(path)
        (reading or Reading(shown_path)).check_size(before[0])
        raw = read(path)
        unchanged = before == _identity(path) and raw == read(path) and before == _identity(path)
    except FileNotFoundError:
        raise refusal(
            FileCode.FILE_MISSING, f"There is no file {shown_path}.", "Check the name and the folder."
        ) from None
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise refusal(
            FileCode.FILE_UNREADABLE, f"{shown_path} cannot be read: {reason}.", "Check who may read it."
        ) from None
    if not unchanged or len(raw) != before[0]:
        message = f"{shown_path} changed while it was read."
        raise refusal(FileCode.FILE_CHANGED, message, "Try again when it is saved completely.")
    return raw


def _identity(path: Path) -> tuple[int, int, int, int]:
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        what = "a folder" if stat.S_ISDIR(status.st_mode) else "a pipe or device"
        message = f"{plain(str(path), _LONGEST_PATH)} is {what}, not a file."
        raise refusal(FileCode.NOT_A_FILE, message, "Name a CSV file.")
    return status.st_size, status.st_mtime_ns, status.st_ino, status.st_dev
