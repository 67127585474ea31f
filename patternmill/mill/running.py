"""The runs of this process, by their IDs: how a nested flow finds the engine that its parent opened."""

from __future__ import annotations

from collections.abc import Callable

from patternmill.identifiers import RunId
from patternmill.mill.run import Run

_RUNS: dict[RunId, Run] = {}
_LISTENERS: list[Callable[[Run], None]] = []


def register(run: Run) -> None:
    """Make a run findable, and tell those who want to watch it."""
    _RUNS[run.record.run_id] = run
    for listener in _LISTENERS:
        listener(run)


def forget(run: Run) -> None:
    _RUNS.pop(run.record.run_id, None)


def running(run_id: str) -> Run:
    """The run of this process with this ID. Raises KeyError when it is not one of this process."""
    return _RUNS[RunId(run_id)]


def on_begin(listener: Callable[[Run], None]) -> None:
    """Have every run that begins in this process shown to `listener`: a progress display, a signal handler."""
    _LISTENERS.append(listener)
