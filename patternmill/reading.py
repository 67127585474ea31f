"""Limits on reading one source, and why a source is refused whole: no large file or slow server keeps a run busy."""

from __future__ import annotations

import stat
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import Self, TypeVar

from patternmill.errors import InputRefused
from patternmill.processes import Unfinished, run_within
from patternmill.text import duration, plain, plural

T = TypeVar("T")

_LONGEST_PATH = 1000
#: The examples that come with the program.
_EXAMPLES = Path(__file__).parents[1] / "inputs"
_SPLIT = "Is it the right file? If it is, divide it into several."


class FileCode(StrEnum):
    """The reason why a file is refused whole, before anything is spent. Stable: people filter and script by it."""

    FILE_MISSING = "file_missing"
    NOT_A_FILE = "not_a_file"
    FILE_UNREADABLE = "file_unreadable"
    FILE_CHANGED = "file_changed"
    FILE_TOO_LARGE = "file_too_large"
    FILE_TOO_SLOW = "file_too_slow"
    EMPTY_FILE = "empty_file"
    HEADER_ONLY = "header_only"
    NOT_CSV = "not_csv"
    UNKNOWN_ENCODING = "unknown_encoding"
    UNREADABLE_ENCODING = "unreadable_encoding"
    NUL_BYTES = "nul_bytes"
    SEVERAL_WORKSHEETS = "several_worksheets"
    WRONG_DELIMITER = "wrong_delimiter"
    MISSING_COLUMN = "missing_column"
    MAPPING_CHANGED = "mapping_changed"
    DUPLICATE_HEADER = "duplicate_header"
    CONFLICTING_COLUMNS = "conflicting_columns"
    RESERVED_COLUMN = "reserved_column"
    BAD_HEADER = "bad_header"
    UNKNOWN_REFINEMENT = "unknown_refinement"
    OPEN_QUOTE = "open_quote"
    STRAY_QUOTE = "stray_quote"
    CELL_TOO_LONG = "cell_too_long"


def refusal(code: FileCode, message: str, remedy: str) -> InputRefused:
    """Return the refusal of a whole file."""
    return InputRefused(message, code=code.value, remedy=remedy)


@dataclass
class Reading:
    """The limits of reading one source; whatever exceeds one raises InputRefused.

    A file at all of its other limits is still read within the time.
    """

    name: str
    #: The most bytes that are read.
    size: int = 256 << 20
    #: The most rows below the header, blank ones included: as many as a spreadsheet holds.
    rows: int = 1_048_576
    columns: int = 16_384
    #: The time from the request for the first byte to the last row read.
    time: timedelta = timedelta(minutes=2)
    #: The words for the file in messages.
    noun: str = "a catalog"

    def __post_init__(self) -> None:
        self._ends = time.monotonic() + self.time.total_seconds()

    @classmethod
    def again(cls, name: str) -> Self:
        """Return a reading without limits, for bytes that were accepted before."""
        return cls(name, sys.maxsize, sys.maxsize, sys.maxsize, timedelta.max)

    def check_size(self, size: int) -> None:
        """Raise InputRefused for more bytes than are read."""
        if size > self.size:
            most = self.size >> 20
            raise self.too_large(f"has more than {most} MiB, which is more than {self.noun} may have")

    def check_columns(self, count: int) -> None:
        """Raise InputRefused for more columns than are read."""
        if count > self.columns:
            raise self.too_large(
                f"has {plural(count, 'column')}; a catalog may have {self.columns:,}",
                "Take out the columns that are not needed.",
            )

    def check_rows(self, number: int) -> None:
        """Raise InputRefused for more rows than are read or, checked now and then, once the time is over.

        `number` is that of the last row read; the header is 1.
        """
        if number > self.rows + 1:
            remedy = "Delete the blank rows, or divide it into several files."
            raise self.too_large(f"has more than {plural(self.rows, 'row')}", remedy)
        if number % 1024 == 0:
            self.check_time()

    def check_time(self) -> None:
        """Raise InputRefused once the time is over."""
        if self.time_left() <= 0:
            raise self.too_slow()

    def time_left(self) -> float:
        """Return the seconds that are left; 0 or less once the time is over."""
        return self._ends - time.monotonic()

    def in_time(self, work: Callable[[], T]) -> T:
        """Run `work`, and return its result. Raises InputRefused once the time is over."""
        try:
            return run_within(self.time_left(), work)
        except Unfinished:
            raise self.too_slow() from None

    def too_large(self, what: str, remedy: str = _SPLIT) -> InputRefused:
        """Return the refusal of a source that is too large."""
        return refusal(FileCode.FILE_TOO_LARGE, f"{self.name} {what}.", remedy)

    def too_slow(self) -> InputRefused:
        """Return the refusal of a source that takes too long."""
        return refusal(
            FileCode.FILE_TOO_SLOW,
            f"{self.name} was not read within {duration(self.time)}.",
            "Check that its server answers, and that it is the right file; or divide it into several.",
        )


def stable_bytes(
    path: Path, reading: Reading | None = None, read: Callable[[Path], bytes] = Path.read_bytes
) -> bytes:
    """Read a local file twice, and return its bytes. Raises InputRefused if it changes meanwhile."""
    shown_path = plain(str(path), _LONGEST_PATH)
    try:
        before = _identity(path)
        (reading or Reading(shown_path)).check_size(before[0])
        raw = read(path)
        unchanged = before == _identity(path) and raw == read(path) and before == _identity(path)
    except FileNotFoundError:
        example = _EXAMPLES / path.name
        remedy = f"The example is {example}." if example.is_file() else "Check the name and the folder."
        folder = plain(str(path.absolute().parent), _LONGEST_PATH)
        message = f"There is no file {plain(path.name, _LONGEST_PATH)} in {folder}."
        raise refusal(FileCode.FILE_MISSING, message, remedy) from None
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
        raise refusal(FileCode.NOT_A_FILE, message, "Name the sheet.")
    return status.st_size, status.st_mtime_ns, status.st_ino, status.st_dev
