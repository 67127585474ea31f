"""The limits of reading a source, in size and time: a small archive or a slow server must not keep a run busy."""

from __future__ import annotations

import gzip
import io
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

from patternmill.catalog.problems import FileCode, refusal
from patternmill.errors import InputRefused
from patternmill.text import duration, plural

T = TypeVar("T")

_SPLIT = "Is it the right file? If it is, divide it into several."


@dataclass(frozen=True, slots=True)
class ReadLimits:
    """The most of each; a file at all of its limits is still read within the time."""

    #: Bytes, compressed or not.
    size: int = 256 << 20
    #: Below the header, blank ones too: what a spreadsheet holds.
    rows: int = 1_048_576
    #: Of the text file: a quoted cell may have several.
    lines: int = 10_000_000
    columns: int = 16_384
    #: Characters of one row, with the line breaks in its quoted cells.
    row_length: int = 4_000_000
    #: From the request for the first byte to the last row read.
    time: timedelta = timedelta(minutes=2)
    #: Of a table with all its rows as wide as the widest: a workbook may name the last cell alone.
    cells: int = 20_000_000
    #: What people call the file.
    noun: str = "a catalog"


#: For bytes that were accepted before: they are read again, whatever the limits are now.
NO_LIMITS = ReadLimits(sys.maxsize, sys.maxsize, sys.maxsize, sys.maxsize, sys.maxsize, timedelta.max)


class Reading:
    """One reading of one source. What exceeds a limit raises InputRefused."""

    def __init__(self, name: str, limits: ReadLimits | None = None) -> None:
        self.name = name
        self.limits = limits or ReadLimits()
        self._ends = time.monotonic() + self.limits.time.total_seconds()
        self._row_length = 0

    def check_size(self, size: int) -> None:
        if size > self.limits.size:
            most = self.limits.size >> 20
            raise self.too_large(
                f"has more than {most} MiB, which is more than {self.limits.noun} may have", _SPLIT
            )

    def check_columns(self, count: int) -> None:
        if count > self.limits.columns:
            raise self.too_large(
                f"has {plural(count, 'column')}; a catalog may have {self.limits.columns:,}",
                "Take out the columns that are not needed.",
            )

    def check_cells(self, rows: int, columns: int) -> None:
        """Of a table that is not text, before it is read whole."""
        self.check_columns(columns)
        self.check_rows(rows, 0)
        if rows * columns > self.limits.cells:
            raise self.too_large(
                f"reaches {plural(rows, 'row')} down and {plural(columns, 'column')} across",
                "Delete the rows and columns without use, and save it.",
            )

    def begin_row(self) -> None:
        self._row_length = 0

    def check_rows(self, count: int, blank: int) -> None:
        """`count` has the header in it."""
        if count > self.limits.rows + 1:
            remedy = "Delete the blank rows." if blank * 2 > count else _SPLIT
            raise self.too_large(
                f"has more than {plural(self.limits.rows, 'row')}, {blank:,} of them blank", remedy
            )

    def lines(self, lines: Iterable[str]) -> Iterator[str]:
        """The same lines, counted against the length of the row that they belong to."""
        most_length, most_lines = self.limits.row_length, self.limits.lines
        for number, line in enumerate(lines, 1):
            self._row_length += len(line)
            if self._row_length > most_length:
                raise self.too_large(
                    f"has a row of more than {most_length:,} characters; line {number} of the text file is in it",
                    'Shorten it. Is a quote (") opened and not closed?',
                )
            if number > most_lines:
                raise self.too_large(f"has more than {plural(most_lines, 'line')}", _SPLIT)
            if number % 1024 == 0:
                self.check_time()
            yield line

    def check_time(self) -> None:
        if time.monotonic() > self._ends:
            raise self._too_slow()

    def in_time(self, work: Callable[[], T]) -> T:
        """What `work` returns. Raises InputRefused once the time is over, and leaves `work` to a daemon thread."""
        done: list[T] = []
        failed: list[BaseException] = []

        def run() -> None:
            try:
                done.append(work())
            except BaseException as error:
                failed.append(error)

        thread = threading.Thread(target=run, name="read the source", daemon=True)
        thread.start()
        thread.join(min(max(0.0, self._ends - time.monotonic()), threading.TIMEOUT_MAX))
        if failed:
            raise failed[0]
        if not done:
            raise self._too_slow()
        return done[0]

    def too_large(self, what: str, remedy: str = _SPLIT) -> InputRefused:
        return refusal(FileCode.FILE_TOO_LARGE, f"{self.name} {what}.", remedy)

    def _too_slow(self) -> InputRefused:
        return refusal(
            FileCode.FILE_TOO_SLOW,
            f"{self.name} was not read within {duration(self.limits.time)}.",
            "Check that its server answers, and that it is the right file; or divide it into several.",
        )


class TimedBytes(io.BytesIO):
    """Bytes that are read only while there is time: an archive may have countless empty parts."""

    def __init__(self, raw: bytes, reading: Reading) -> None:
        super().__init__(raw)
        self._reading = reading

    def read(self, size: int | None = -1) -> bytes:
        self._reading.check_time()
        return super().read(size)


_GZIP = b"\x1f\x8b"


def unpacked(raw: bytes, reading: Reading) -> bytes:
    """The content of a gzip archive; the bytes themselves when they are none."""
    if not raw.startswith(_GZIP):
        return raw
    try:
        with gzip.GzipFile(fileobj=TimedBytes(raw, reading)) as file:
            content = file.read(reading.limits.size + 1)
    except (OSError, EOFError, zlib.error):
        message = f"{reading.name} is a gzip archive that is cut short or damaged."
        raise refusal(FileCode.FILE_UNREADABLE, message, "Make it again.") from None
    reading.check_size(len(content))
    return content
