"""A studio with a catalog whose products are made, and a home from which they are ordered."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from studio.testing import Studio
from tests.integration.orders.shop import CATALOG, Shop
from tests.quick_writer import quick_writer as quick_writer


@pytest.fixture(scope="session")
def one_studio() -> Iterator[Studio]:
    with Studio() as studio:
        yield studio


@pytest.fixture
def studio(one_studio: Studio) -> Studio:
    one_studio.reset()
    return one_studio


@pytest.fixture
def shop(studio: Studio, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    """The catalog `spring` with five products, in a working directory of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATTERNMILL_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATTERNMILL_STUDIO_URL", studio.base_url)
    monkeypatch.setenv("PATTERNMILL_API_KEY", studio.key)
    shop = Shop(studio, tmp_path)
    shop.imported_now(CATALOG)
    return shop
