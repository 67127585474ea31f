"""Virtual time: an event loop in which waiting costs nothing, and processes that may die at any moment.

Import this before anything of the program: its clocks are bound when its modules are read.
"""

import asyncio
import contextvars
import random
import selectors
import sqlite3
import time
import uuid
from collections.abc import Callable, Coroutine
from typing import Any

EPOCH = 1_900_000_000.0
#: The most seconds that a thread's work waits for its turn, and that its result takes to come back.
THREAD = 0.004
_real = {name: getattr(time, name) for name in ("time", "monotonic", "gmtime")}
_connect = sqlite3.connect
_playing: list["VirtualLoop"] = []
#: The process that the running code belongs to; none: the world outside, such as the service.
PROCESS = contextvars.ContextVar["Process | None"]("process", default=None)


class Process:
    """A process of the program within this one. When it dies, whatever it was doing is gone."""

    def __init__(self, moments: int | None = None) -> None:
        """Let it die after so many moments: points before and after what others can see of it."""
        self.is_alive, self._left = True, moments
        self.died = asyncio.Event()
        self.tasks: dict[asyncio.Task[Any], None] = {}  # in their order, so that a seed replays
        self.connections: list[sqlite3.Connection] = []

    def lives_on(self) -> bool:
        """Count a moment, and return whether the process is still there after it."""
        if self.is_alive and self._left is not None:
            self._left -= 1
            if self._left < 0:
                self.die()
        return self.is_alive

    def die(self) -> None:
        self.is_alive = False
        for connection in self.connections:
            connection.close()
        self.died.set()

    def start(self, work: Coroutine[Any, Any, Any]) -> "asyncio.Task[Any]":
        """Start work that belongs to this process, with all that it starts."""
        context = contextvars.Context()
        context.run(PROCESS.set, self)
        return context.run(asyncio.get_running_loop().create_task, work)

    async def bury(self) -> None:
        """End all tasks of the dead process; nothing that they still do is seen by anybody."""
        while left := [task for task in self.tasks if not task.done()]:
            for task in left:
                task.cancel()
            await asyncio.wait(left, timeout=1)


async def lives_on() -> None:
    """Pass a moment of the process that runs this; a dead one gets no further."""
    process = PROCESS.get()
    if process and not process.lives_on():
        await asyncio.Event().wait()


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop that does the work of threads itself, some virtual milliseconds later."""

    def __init__(self, seed: str) -> None:
        super().__init__(_Selector(self))
        self.virtual, self._chance = 0.0, random.Random(f"{seed}/threads")
        self.set_task_factory(_register)
        self.set_exception_handler(lambda loop, context: None)  # what a dead process leaves behind

    def time(self) -> float:
        return self.virtual

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> "asyncio.Future[Any]":
        done = self.create_future()
        self.call_later(self._chance.uniform(0, THREAD), self._work, done, func, args)
        return done

    def _work(self, done: "asyncio.Future[Any]", func: Callable[..., Any], args: Any) -> None:
        process = PROCESS.get()
        if process and not process.lives_on():
            return
        try:
            result, error = func(*args), None
        except Exception as raised:
            result, error = None, raised
        if process is None or process.lives_on():
            self.call_later(self._chance.uniform(0, THREAD), _tell, done, result, error)


class _Selector(selectors.DefaultSelector):
    """Lets virtual time pass in place of waiting."""

    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> Any:
        if timeout is None:
            raise RuntimeError("everybody waits for something that will never happen")
        self._loop.virtual += timeout
        return super().select(0)


def _tell(done: "asyncio.Future[Any]", result: Any, error: Exception | None) -> None:
    if not done.done():
        done.set_exception(error) if error else done.set_result(result)


def _register(loop: asyncio.AbstractEventLoop, work: Any, **more: Any) -> "asyncio.Task[Any]":
    task = asyncio.Task(work, loop=loop, **more)
    if process := PROCESS.get():
        process.tasks[task] = None
        task.add_done_callback(process.tasks.pop)
    return task


def _open(*args: Any, **more: Any) -> sqlite3.Connection:
    process = PROCESS.get()
    if process and not process.is_alive:
        raise sqlite3.OperationalError("the process is dead")
    connection = _connect(*args, **more)
    if process:
        process.connections.append(connection)
    return connection


def now() -> float:
    """Return the virtual time in seconds since 1970; the real one where nothing is played."""
    return EPOCH + _playing[-1].virtual if _playing else _real["time"]()


def play(seed: str, story: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    """Run a story in virtual time."""
    with asyncio.Runner(loop_factory=lambda: VirtualLoop(seed)) as runner:
        _playing.append(runner.get_loop())  # type: ignore[arg-type]
        try:
            return runner.run(story())
        finally:
            _playing.pop()


time.time = now
time.monotonic = lambda: 1000 + _playing[-1].virtual if _playing else _real["monotonic"]()
time.gmtime = lambda seconds=None: _real["gmtime"](now() if seconds is None else seconds)
sqlite3.connect = _open  # type: ignore[assignment]
uuid.uuid4 = lambda: uuid.UUID(int=random.getrandbits(128), version=4)
