"""Ctrl-C and SIGTERM: for the verbs that serve until somebody stops them, and for a run that stops in order."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Coroutine
from types import FrameType
from typing import TypeVar

T = TypeVar("T")
_BLINK = 0.2


def until_interrupted() -> threading.Event:
    """An event that SIGINT and SIGTERM set from now on, in place of what they did before."""
    stop = threading.Event()

    def ask(number: int, frame: FrameType | None) -> None:
        stop.set()

    signal.signal(signal.SIGINT, ask)
    signal.signal(signal.SIGTERM, ask)
    return stop


def in_a_thread(work: Coroutine[None, None, T], on_signal: Callable[[str], None]) -> T:
    """Run `work` on an event loop in a thread, so that SIGINT and SIGTERM, by name, are this function's alone.

    Prefect takes SIGTERM over for each flow that runs in the main thread, nested ones too, and kills the run
    by it; in another thread it leaves signals alone.
    """
    ended: list[T] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            ended.append(asyncio.run(work))
        except BaseException as error:
            failed.append(error)

    def told(number: int, frame: FrameType | None) -> None:
        on_signal(signal.Signals(number).name)

    before = {number: signal.signal(number, told) for number in (signal.SIGINT, signal.SIGTERM)}
    thread = threading.Thread(target=run, name="run")
    thread.start()
    try:
        while thread.is_alive():
            # Not without a timeout: a signal is heard between two waits only.
            thread.join(_BLINK)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if failed:
        raise failed[0]
    return ended[0]
