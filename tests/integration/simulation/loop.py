"""An event loop in virtual time whose one client can die at any moment, and whose threads are the loop itself."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any

from tests.unit.service.virtual import VirtualLoop

#: The most seconds that a commit takes to begin on the disk, and that its result takes to come back.
DISK = 0.004


class SimulationLoop(VirtualLoop):
    """A loop that does the work of threads itself, some virtual milliseconds later, in the order of each executor.

    A client that has died gets no more work done: neither what was scheduled before, nor what is scheduled later.
    """

    def __init__(self, chance: random.Random) -> None:
        super().__init__()
        self._chance = chance
        self._free_at: dict[Any, float] = {}
        self.alive = True
        self.died = asyncio.Event()
        self._life = 0
        #: Moments left until the client dies; None: it does not die so.
        self.moments_left: int | None = None
        self.moments = 0

    def moment(self) -> bool:
        """One of the points at which a process can end: before and after all that others can see of it."""
        self.moments += 1
        if self.alive and self.moments_left is not None:
            self.moments_left -= 1
            if self.moments_left <= 0:
                self.die()
        return self.alive

    def die(self) -> None:
        self.alive = False
        self.died.set()

    def begin_life(self) -> None:
        self._life += 1
        self.alive, self.moments_left = True, None
        self.died.clear()
        self._free_at.clear()

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:
        if not self.alive:
            raise OSError("the process is dead")
        done = self.create_future()
        at = max(self.time(), self._free_at.get(executor, 0.0)) + self._chance.uniform(0, DISK)
        if executor is not None:
            self._free_at[executor] = at
        self.call_at(at, self._work, self._life, done, func, args)
        return done

    def _work(self, life: int, done: asyncio.Future[Any], func: Callable[..., Any], args: Any) -> None:
        if life != self._life or not self.moment():
            return
        try:
            answer, error = func(*args), None
        except Exception as raised:
            answer, error = None, raised
        if self.moment():
            self.call_later(self._chance.uniform(0, DISK), _answer, done, answer, error)


def _answer(done: asyncio.Future[Any], answer: Any, error: Exception | None) -> None:
    if done.done():
        return
    if error is not None:
        done.set_exception(error)
    else:
        done.set_result(answer)
