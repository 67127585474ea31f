"""How a tester collects garbage: its six thousand tests stay, and looking through them again and again is costly."""

from __future__ import annotations

import gc

import pytest

from patternmill.processes import collect_rarely

collect_rarely()


def pytest_collection_finish(session: pytest.Session) -> None:
    """What is there by now is not looked at again."""
    gc.collect()
    gc.freeze()
