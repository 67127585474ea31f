"""The limits of reading a source, in size and time: a large file or a slow server must not keep a run busy."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from dataclasses import dataclass
from datetime import timedelta
from typing import Self, TypeVar

from patternmill.catalog.problems import FileCode, refusal
from patternmill.errors import InputRefused
from patternmill.text import duration, plural

T = TypeVar("T")

_SPLIT = "Is it the right file? If it is, divide it into several."


@dataclass
class Reading:
    """One reading of one source, with the most of each; what exceeds a limit raises InputRefused.

    A file at all of its limits is still read within the time.
    """

    name: str
    #: Bytes.
    size: int = 256 << 20
    #: Below the header, blank ones too: what a spreadsheet holds.
    rows: int = 1_048_576
    columns: int = 16_384
    #: From the request for the first byte to the last row read.
    time: timedelta = timedelta(minutes=2)
    #: What people call the file.
    noun: str = "a catalog"

    def __post_init__(self) -> None:
        self._ends = time.monotonic() + self.time.total_seconds()

    @classmethod
    def again(cls, name: str) -> Self:
        """Of bytes that were accepted before: they are read again, whatever the limits are now."""
        return cls(name, sys.maxsize, sys.maxsize, sys.maxsize, timedelta.max)

    def check_size(self, size: int) -> None:
        if size > self.size:
            most = self.size >> 20
            raise self.too_large(f"has more than {most} MiB, which is more than {self.noun} may have")

    def check_columns(self, count: int) -> None:
        if count > self.columns:
            raise self.too_large(
                f"has {plural(count, 'column')}; a catalog may have {self.columns:,}",
                "Take out the columns that are not needed.",
            )

    def check_rows(self, number: int) -> None:
        """`number`: of the row that was read last, from 1 for the header; now and then the time is checked too."""
        if number > self.rows + 1:
            remedy = "Delete the blank rows, or divide it into several files."
            raise self.too_large(f"has more than {plural(self.rows, 'row')}", remedy)
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
            f"{self.name} was not read within {duration(self.time)}.",
            "Check that its server answers, and that it is the right file; or divide it into several.",
        )
