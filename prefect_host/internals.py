"""Every use of Prefect's private names, each with its reason and the public API that is missing.

No other file uses or replaces a private name of Prefect. A release that moves one fails in
tests/unit/prefect_host/test_internals.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from prefect.utilities import engine

SignalHandler = Callable[[int, FrameType | None], None]

#: The name of Prefect's own handler of SIGTERM.
SIGTERM_HANDLER = "_prefect_sigterm_handler"


@contextmanager
def sigterm_handler_kept(handler: SignalHandler) -> Iterator[None]:
    """Have Prefect use `handler` as its own handler of SIGTERM.

    Why: Prefect's handler kills the run instead of stopping it, and a run under any other handler does not acknowledge
    a cancellation from the UI. Missing: an option for a flow to end by itself when it is cancelled.
    """
    before = getattr(engine, SIGTERM_HANDLER, None)
    setattr(engine, SIGTERM_HANDLER, handler)
    try:
        yield
    finally:
        setattr(engine, SIGTERM_HANDLER, before)
