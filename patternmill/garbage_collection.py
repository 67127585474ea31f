"""How often Python looks for garbage cycles: a run keeps nearly all of its objects, so most looks find none."""

from __future__ import annotations

import gc

#: New objects before a look at the youngest; at Python's default of 700 a run spends much of its CPU time on it.
_YOUNGEST = 100_000


def collect_rarely() -> None:
    """For this process, from now on; what has no cycles is freed at once all the same."""
    gc.set_threshold(_YOUNGEST, 50, 100)


def collect_no_more() -> None:
    """For a process that is about to end: its last look takes half a second after Prefect was loaded."""
    gc.freeze()
