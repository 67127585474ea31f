"""The workshop: a home, and a service that outlives its runs."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from patternmill.ledger.ledger import Ledger
from patternmill.service.studio_api import StudioApi
from patternmill.settings import Settings
from tests.hostile.in_process import InProcessApi, Service

from .workshop import ADDRESSES, Workshop

#: 2027-01-15 08:00 UTC.
MORNING = 1_800_000_000.0


@pytest.fixture
def service() -> Service:
    return Service()


@pytest.fixture
def home() -> Iterator[Path]:
    """Return a home in memory where there is such a place: what a disk makes of a commit is tested elsewhere."""
    memory = Path("/dev/shm")
    with TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        yield Path(folder) / "home"


@pytest.fixture
def long_day(monkeypatch: pytest.MonkeyPatch) -> None:
    """Begin the ledger's clock in the morning (UTC), so that no day's budget is renewed in the middle of a test."""
    ahead = MORNING - time.time()
    monkeypatch.setattr(
        "patternmill.ledger.ledger.Ledger", partial(Ledger, clock=lambda: time.time() + ahead)
    )


@pytest.fixture
def shop(home: Path, service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workshop:
    """Return a workshop with settings in the environment, as commands have them, and a working folder."""
    its = Workshop(home, service, folder=tmp_path)

    def api(settings: Settings) -> InProcessApi:
        its.apis.append(InProcessApi(service, in_doubt_limit=settings.in_doubt_limit))
        return its.apis[-1]

    monkeypatch.setattr(StudioApi, "from_settings", api)
    monkeypatch.setenv("PATTERNMILL_HOME", str(home))
    profiles = {name: {"url": url, "key": "key"} for name, url in ADDRESSES.items()}
    monkeypatch.setenv("PATTERNMILL_PROFILES", json.dumps(profiles))
    monkeypatch.setenv("PATTERNMILL_ATTEMPTS", "1")
    monkeypatch.chdir(tmp_path)
    return its
