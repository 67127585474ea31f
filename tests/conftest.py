"""Testers: six thousand tests stay, so that garbage is looked for rarely; and what they start can be interrupted."""

from __future__ import annotations

import gc
import signal
from contextlib import suppress

import pytest

from patternmill.processes import collect_rarely

collect_rarely()
# A shell has its background jobs ignore it, and they pass that on to what they start.
with suppress(ValueError):  # not in the main thread
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish(session: pytest.Session) -> None:
    """What is there by now is not looked at again."""
    gc.collect()
    gc.freeze()
