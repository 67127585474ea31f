"""A database server's clock, kept between measurements by a local one that cannot be set."""

from __future__ import annotations

from collections.abc import Callable

from patternmill.processes import uptime

_MEASURE_EVERY = 30.0
#: A measurement that took longer is too inexact.
_LONGEST_ROUND = 1.0


class ServerClock:
    """The server's Unix seconds; to be measured once before it is read."""

    def __init__(self, local: Callable[[], float] = uptime) -> None:
        self._local = local
        self._offset = 0.0
        self._measured: float | None = None

    def __call__(self) -> float:
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
