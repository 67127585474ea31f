"""A home with a ledger in it, which the command finds by its settings."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from patternmill.ledger.ledger import Ledger, open_database
from tests.unit.cli.ledgers import Clock, Past


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home, in a working directory of its own."""
    for name in ("ENVIRONMENT", "STUDIO_URL", "API_KEY", "LEDGER_URL", "PATTERN_PRICE", "PRODUCT_PRICE"):
        monkeypatch.delenv(f"PATTERNMILL_{name}", raising=False)
    monkeypatch.setenv("PATTERNMILL_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "home"


@pytest.fixture
def past(home: Path) -> Iterator[Past]:
    """A ledger in the home, to be given a past."""
    clock = Clock()
    ledger = Ledger(open_database(None, home), clock=clock)
    yield Past(ledger, clock)
    ledger.close()
