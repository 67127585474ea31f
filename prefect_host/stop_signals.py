"""SIGTERM, SIGINT and SIGHUP: for verbs that serve, runs of the command line, and runs that Prefect started.

On SIGTERM, which is also how a cancellation from its UI arrives, Prefect raises an exception in the event loop: every
task is cancelled at once, and no results are written. Here the signal drains the run instead.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from patternmill.runs.run import Run

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_WAIT_SECONDS = 0.2


class Interruption(threading.Event):
    """Set by a signal; a second one counts, however soon it follows."""

    count = 0

    def interrupt(self, number: int, frame: FrameType | None) -> None:
        """Count a signal."""
        self.count += 1
        self.set()


def until_interrupted() -> Interruption:
    """Return an event that SIGINT and SIGTERM set from now on, in place of what they did before."""
    stop = Interruption()
    for number in _SIGNALS:
        signal.signal(number, stop.interrupt)
    return stop


def run_in_thread(
    work: Callable[[], Coroutine[None, None, None]],
    on_signal: Callable[[str], None],
    until: Callable[[], bool] = lambda: False,
) -> Future[None]:
    """Run `work` on an event loop in a thread; SIGINT, SIGTERM and SIGHUP call `on_signal` with the reason.

    Returns once it has ended, and raises what it raises; or while it goes on, as soon as `until` holds. Prefect
    replaces the handler of SIGTERM for each flow in the main thread, and kills the run on it; in another thread it
    leaves signals alone.
    """
    running: Future[None] = Future()

    def run() -> None:
        try:
            running.set_result(asyncio.run(work()))
        except BaseException as error:
            running.set_exception(error)

    def handle(number: int, frame: FrameType | None) -> None:
        if number == signal.SIGHUP:
            # The shell and the terminal may both send it.
            signal.signal(number, signal.SIG_IGN)
        on_signal(_reason(number))

    under_nohup = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    with _handled_by(handle, _SIGNALS if under_nohup else (*_SIGNALS, signal.SIGHUP)):
        threading.Thread(target=run, name="run", daemon=True).start()
        while not running.done() and not until():
            # With a timeout, because signals are handled only between two waits.
            wait([running], timeout=_WAIT_SECONDS)
    if running.done():
        running.result()
    return running


def _reason(number: int) -> str:
    return f"Stopped by {'Ctrl-C' if number == signal.SIGINT else signal.Signals(number).name}."


@contextmanager
def stop_on_signals() -> Iterator[Callable[[Run], None]]:
    """Have SIGTERM and SIGINT drain a run meanwhile, if the flow is in the main thread.

    Yields what is called with the run as it begins; a signal that came before stops it then. The first one counts.
    """
    from prefect_host.internals import sigterm_handler_kept

    loop = asyncio.get_running_loop()
    reasons: list[str] = []
    runs: list[Run] = []

    def apply() -> None:
        for run in runs if reasons else ():
            if not run.is_stopped and run.ending is None:
                run.stop(reasons[0])

    def attach(run: Run) -> None:
        runs.append(run)
        apply()

    def stop(number: int, frame: FrameType | None) -> None:
        reasons.append(_reason(number))
        loop.call_soon_threadsafe(apply)

    if threading.current_thread() is threading.main_thread():
        with _handled_by(stop, _SIGNALS), sigterm_handler_kept(stop):
            yield attach
    else:
        yield attach


@contextmanager
def _handled_by(
    handler: Callable[[int, FrameType | None], None], numbers: tuple[signal.Signals, ...]
) -> Iterator[None]:
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, earlier in before.items():
            if signal.getsignal(number) is handler:
                signal.signal(number, earlier)
