"""When Python looks for garbage cycles: a run keeps nearly all that it makes, so each look is mostly in vain."""

from __future__ import annotations

import gc

#: New objects before a look at the youngest; at Python's default of 700 a run spends much of its CPU time on it.
_YOUNGEST = 100_000


def collect_rarely() -> None:
    """Look for garbage cycles rarely from now on, in this process; what has no cycles is freed at once as ever."""
    gc.set_threshold(_YOUNGEST, 50, 100)


def collect_no_more() -> None:
    """Spare the process that is about to end its last look, which takes half a second after Prefect was loaded."""
    gc.freeze()
