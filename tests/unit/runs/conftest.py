"""The workshop: a home, and a service that outlives its runs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from patternmill.ledger.ledger import Ledger
from tests.hostile.in_process import Service

from .workshop import Workshop

#: 2027-01-15 08:00 UTC.
MORNING = 1_800_000_000.0


@pytest.fixture
def service() -> Service:
    return Service()


@pytest.fixture
def home() -> Iterator[Path]:
    """In memory where there is such a place: what a disk makes of a commit is tested elsewhere."""
    memory = Path("/dev/shm")
    with TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        yield Path(folder) / "home"


@pytest.fixture
def long_day(monkeypatch: pytest.MonkeyPatch) -> None:
    """A ledger's clock that begins in the morning (UTC): no budget of a day is given anew in the middle of a test."""
    ahead = MORNING - time.time()
    monkeypatch.setattr(
        "patternmill.ledger.ledger.Ledger", partial(Ledger, clock=lambda: time.time() + ahead)
    )


@pytest.fixture
def shop(home: Path, service: Service) -> Workshop:
    return Workshop(home, service)
