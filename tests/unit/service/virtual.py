"""An event loop whose clock jumps to the next timer: hours pass in milliseconds, in a fixed order."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _JumpingSelector(selectors.SelectSelector):
    """A selector that sets the time to the next timer instead of waiting for it."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        ready = super().select(0)
        if not ready and timeout:
            self.now += timeout
        assert ready or timeout is not None, "everybody waits, and nothing will happen"
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose `time()` is virtual, and begins at 0."""

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run to the end in virtual time."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)


def clock() -> float:
    """Return the virtual time of the running loop."""
    return asyncio.get_running_loop().time()
