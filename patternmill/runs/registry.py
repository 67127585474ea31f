"""The runs of this process, by their IDs: how a nested flow finds the engine that its parent opened."""

from __future__ import annotations

from collections.abc import Callable

from patternmill.runs.run import ActiveRun, Run

_DRIVEN: dict[str, ActiveRun] = {}
_LISTENERS: list[Callable[[Run], None]] = []


def register(run: Run) -> None:
    """Make a run findable, and tell those who want to watch it."""
    make_findable(run)
    for listener in _LISTENERS:
        listener(run)


def make_findable(driven: ActiveRun) -> None:
    """Make a run, or a part of one, findable."""
    _DRIVEN[driven.name] = driven


def forget(driven: ActiveRun) -> None:
    _DRIVEN.pop(driven.name, None)


def running(name: str) -> ActiveRun:
    """The run, or part of one, of this process with this name. Raises KeyError when it is none of this process."""
    return _DRIVEN[name]


def on_begin(listener: Callable[[Run], None]) -> None:
    """Have every run that begins in this process shown to `listener`: a progress display, a signal handler."""
    _LISTENERS.append(listener)
