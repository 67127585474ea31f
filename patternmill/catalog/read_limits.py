"""The limits of reading a source, in size and time: a large file or a slow server must not keep a run busy."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
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

    #: Bytes.
    size: int = 256 << 20
    #: Below the header, blank ones too: what a spreadsheet holds.
    rows: int = 1_048_576
    columns: int = 16_384
    #: From the request for the first byte to the last row read.
    time: timedelta = timedelta(minutes=2)
    #: What people call the file.
    noun: str = "a catalog"


#: For bytes that were accepted before: they are read again, whatever the limits are now.
NO_LIMITS = ReadLimits(sys.maxsize, sys.maxsize, sys.maxsize, timedelta.max)


class Reading:
    """One reading of one source. What exceeds a limit raises InputRefused."""

    def __init__(self, name: str, limits: ReadLimits | None = None) -> None:
        self.name = name
        self.limits = limits or ReadLimits()
        self._ends = time.monotonic() + self.limits.time.total_seconds()

    def check_size(self, size: int) -> None:
        if size > self.limits.size:
            most = self.limits.size >> 20
            raise self.too_large(f"has more than {most} MiB, which is more than {self.limits.noun} may have")

    def check_columns(self, count: int) -> None:
        if count > self.limits.columns:
            raise self.too_large(
                f"has {plural(count, 'column')}; a catalog may have {self.limits.columns:,}",
                "Take out the columns that are not needed.",
            )

    def check_rows(self, number: int) -> None:
        """`number`: of the row that was read last, from 1 for the header; now and then the time is checked too."""
        if number > self.limits.rows + 1:
            remedy = "Delete the blank rows, or divide it into several files."
            raise self.too_large(f"has more than {plural(self.limits.rows, 'row')}", remedy)
        if number % 1024 == 0:
            self.check_time()

    def check_time(self) -> None:
        if self.time_left() <= 0:
            raise self.too_slow()

    def time_left(self) -> float:
        """In seconds; none is left from 0 on."""
        return self._ends - time.monotonic()

    def in_time(self, work: Callable[[], T]) -> T:
        """What `work` returns. Raises InputRefused once the time is over, and leaves `work` to a daemon thread."""
        future = Future[T]()

        def run() -> None:
            try:
                future.set_result(work())
            except BaseException as error:
                future.set_exception(error)

        threading.Thread(target=run, name="read the source", daemon=True).start()
        wait([future], min(max(0.0, self.time_left()), threading.TIMEOUT_MAX))
        if not future.done():
            raise self.too_slow()
        return future.result()

    def too_large(self, what: str, remedy: str = _SPLIT) -> InputRefused:
        return refusal(FileCode.FILE_TOO_LARGE, f"{self.name} {what}.", remedy)

    def too_slow(self) -> InputRefused:
        return refusal(
            FileCode.FILE_TOO_SLOW,
            f"{self.name} was not read within {duration(self.limits.time)}.",
            "Check that its server answers, and that it is the right file; or divide it into several.",
        )
