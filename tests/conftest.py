"""Set-up of all tests: thousands stay in memory, so garbage is collected rarely; what they start can be interrupted."""

from __future__ import annotations

import asyncio
import gc
import inspect
import signal
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

import pytest

from patternmill.processes import collect_rarely

collect_rarely()
# A shell makes its background jobs ignore SIGINT, and they pass that on to what they start.
with suppress(ValueError):  # not in the main thread
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Freeze what is there by now, so that no collection looks at it again."""
    gc.collect()
    gc.freeze()


def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run an asynchronous test for a minute at most."""
    return run_test(pyfuncitem, lambda test: asyncio.run(asyncio.wait_for(test, 60)))


def run_test(item: pytest.Function, run: Callable[[Coroutine[Any, Any, None]], object]) -> bool | None:
    """Run an asynchronous test and return True; return None for any other test."""
    if not inspect.iscoroutinefunction(item.function):
        return None
    run(item.function(**{name: item.funcargs[name] for name in inspect.signature(item.function).parameters}))
    return True
