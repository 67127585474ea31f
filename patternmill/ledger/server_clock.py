"""The time of a database server: machines whose clocks differ share one ledger."""

from __future__ import annotations

import time
from collections.abc import Callable

_MEASURE_EVERY = 30.0
#: A measurement that took longer is too inexact.
_LONGEST_ROUND = 1.0


class ServerClock:
    """The server's clock, kept between measurements by a local one that cannot be set."""

    def __init__(self, local: Callable[[], float] | None = None) -> None:
        self._local = local or _uptime
        self._offset = 0.0
        self._measured: float | None = None

    def __call__(self) -> float:
        """Unix seconds. Measured at least once before."""
        return self._local() + self._offset

    def is_due(self) -> bool:
        return self._measured is None or self._local() - self._measured >= _MEASURE_EVERY

    def measure(self, ask: Callable[[], float]) -> None:
        """`ask` asks the server for its time; the answer is taken to be of the middle of the round."""
        sent = self._local()
        answered = float(ask())
        took = self._local() - sent
        if self._measured is None or took <= _LONGEST_ROUND:
            self._offset = answered - (sent + took / 2)
        self._measured = self._local()


def _uptime() -> float:
    """Seconds since boot, those of a suspension too where the system counts them."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()
