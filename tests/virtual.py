"""An event loop whose clock goes as fast as its tasks allow."""

import asyncio
import selectors


class VirtualLoop(asyncio.SelectorEventLoop):
    """Sleeps take no time: the clock moves to the next timer as soon as nothing else is to be done."""

    def __init__(self):
        super().__init__(_Skipping(self))
        self.moment = 1000.0

    def time(self):
        return self.moment


class _Skipping(selectors.DefaultSelector):
    def __init__(self, loop):
        super().__init__()
        self._loop = loop

    def select(self, timeout=None):
        if timeout:
            self._loop.moment += timeout
        return super().select(0)


def play(main):
    """Return what a coroutine function returns, in virtual time."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main())
