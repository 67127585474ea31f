"""Time-lapse: event loops whose clock runs many times as fast, beside sockets, threads and databases that are real."""

import asyncio
import selectors
import time
from contextlib import contextmanager

FASTER = 20


class LapseLoop(asyncio.SelectorEventLoop):
    """A loop in which a wait of a second takes a twentieth of one."""

    def __init__(self):
        super().__init__(_Lapsing())

    def time(self):
        return time.monotonic() * FASTER


class _Lapsing(selectors.DefaultSelector):
    def select(self, timeout=None):
        return super().select(timeout and timeout / FASTER)


class _Policy(asyncio.DefaultEventLoopPolicy):
    _loop_factory = LapseLoop


@contextmanager
def lapsing():
    """Let each loop that is made meanwhile be such a one."""
    asyncio.set_event_loop_policy(_Policy())
    try:
        yield
    finally:
        asyncio.set_event_loop_policy(None)
