"""Being told to stop where Prefect started the process: by a worker, `serve`, or a container's platform.

Prefect's own answer to SIGTERM, which is also how a cancellation from its UI arrives, is an exception out of the
event loop: every task is cancelled at once, what is in flight is left without its end, and no results are written.
Here the signal stops the run in order instead. Prefect kills the process 30 seconds after it, so the drain is cut
short of that.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from types import FrameType
from typing import Any

from prefect.utilities import engine

from patternmill.runs.run import ActiveRun

#: What is left of Prefect's 30 seconds is for the results files and the last states.
DRAIN = timedelta(seconds=18)
_SIGNALS = (signal.SIGTERM, signal.SIGINT)
#: What Prefect takes for its own handler of SIGTERM; each nested flow run would put it back over ours.
_ITS_HANDLER = "_prefect_sigterm_handler"


class Stopping:
    """Stops a run when told to; told before there is one, it stops it as it begins."""

    def __init__(self) -> None:
        self._why: str | None = None
        self._run: ActiveRun | None = None

    @property
    def is_told(self) -> bool:
        return self._why is not None

    @property
    def why(self) -> str | None:
        """What told it to stop; None when nothing did."""
        return self._why

    def of(self, run: ActiveRun) -> None:
        self._run = run
        self._apply()

    def tell(self, why: str) -> None:
        self._why = self._why or why
        self._apply()

    def _apply(self) -> None:
        run = self._run
        if run is None or self._why is None or run.is_stopped or run.ending is not None:
            return
        run.stop(self._why)
        asyncio.get_running_loop().call_later(DRAIN.total_seconds(), run.engine.abandon)


@contextmanager
def told_to_stop() -> Iterator[Stopping]:
    """While it lasts, SIGTERM and SIGINT stop in order, if the flow has the main thread and thus its signals."""
    stopping = Stopping()
    if threading.current_thread() is not threading.main_thread():
        yield stopping
        return
    loop = asyncio.get_running_loop()

    def told(number: int, frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(stopping.tell, f"Stopped by {signal.Signals(number).name}.")

    with _handled_by(told):
        yield stopping


@contextmanager
def _handled_by(told: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    its_own: Any = getattr(engine, _ITS_HANDLER, None)
    before = {number: signal.signal(number, told) for number in _SIGNALS}
    if its_own is not None:
        setattr(engine, _ITS_HANDLER, told)
    try:
        yield
    finally:
        if its_own is not None:
            setattr(engine, _ITS_HANDLER, its_own)
        for number, handler in before.items():
            signal.signal(number, handler)
