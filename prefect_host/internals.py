"""Every use of Prefect's private names, each with its reason and the public API that is missing.

No other file uses or replaces a private name of Prefect. A release that moves one fails in
tests/unit/prefect_host/test_internals.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from types import FrameType
from typing import cast

from prefect.events.worker import EventsWorker
from prefect.logging.handlers import APILogWorker
from prefect.utilities import engine

#: The name of Prefect's own handler of SIGTERM.
_SIGTERM_HANDLER = "_prefect_sigterm_handler"


@contextmanager
def sigterm_handler_kept(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Have Prefect use `handler` as its own handler of SIGTERM.

    Why: Prefect's handler kills the run instead of stopping it, and a run under any other handler does not acknowledge
    a cancellation from the UI. Missing: an option for a flow to end by itself when it is cancelled.
    """
    before = getattr(engine, _SIGTERM_HANDLER, None)
    setattr(engine, _SIGTERM_HANDLER, handler)
    try:
        yield
    finally:
        setattr(engine, _SIGTERM_HANDLER, before)


def start_sending() -> set[Future[bool]]:
    """Have Prefect send its events and log lines; return what is still being sent. Not within an event loop."""
    # Why: a command that ends would lose them. Missing: a public way to wait for what the client has queued.
    drained = [sender.drain_all(timeout=0) for sender in (EventsWorker, APILogWorker)]
    return {sent for _, pending in cast(list[tuple[object, set[Future[bool]]]], drained) for sent in pending}
