"""A studio in this process, and one in a process of its own whose clock, faults and meter a test has."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator

import pytest

from studio.testing import Studio

from .in_process import InProcess


@pytest.fixture(scope="module")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcess]:
    """Yield one studio for a whole module."""
    with InProcess.open(tmp_path_factory.mktemp("studio")) as made:
        yield made


@pytest.fixture(scope="session")
def running() -> Iterator[Studio]:
    with Studio(clock="2026-01-31T12:00:00Z", pace="realistic") as studio:
        yield studio


@pytest.fixture
def instruments(running: Studio) -> Studio:
    """Return the running studio, emptied."""
    running.reset()
    return running


def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run an asynchronous test for a minute at most."""
    if not inspect.iscoroutinefunction(pyfuncitem.function):
        return None
    names = inspect.signature(pyfuncitem.function).parameters
    test = pyfuncitem.function(**{name: pyfuncitem.funcargs[name] for name in names})
    asyncio.run(asyncio.wait_for(test, 60))
    return True
