"""The workshop: a home, and a service that outlives its runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from .fake_studio import Service
from .workshop import Workshop


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
def shop(home: Path, service: Service) -> Workshop:
    return Workshop(home, service)
