"""A studio for the refreshes of a session, and a desk with a home of its own to run them from."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cli.services import EmbeddedStudio
from patternmill.ledger.catalogs import counts_of
from patternmill.ledger.ledger import open_ledger
from patternmill.planning.changes import CurrentRow
from patternmill.runs.request import RefreshRequest
from patternmill.runs.run import Run, RunEnding
from patternmill.runs.spec import run_spec
from patternmill.settings import load_settings
from studio.store import read_record
from tests.quick_writer import quick_writer as quick_writer

HEADER = "sku,prompt,category,option:size,option:fabric,note"


@pytest.fixture(scope="session")
def studio_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("studio")


@pytest.fixture(scope="session")
def studio(studio_home: Path) -> Iterator[EmbeddedStudio]:
    with EmbeddedStudio(studio_home, pace="instant") as running:
        yield running


@dataclass(frozen=True)
class Refreshed:
    """A refresh that has ended, with its files."""

    ending: RunEnding
    out: Path

    @property
    def counts(self) -> dict[str, int]:
        """What it found; what it did not find is left out."""
        found = counts_of(self.ending.record) or {}
        return {kind: count for kind, count in found.items() if count}

    def changes(self) -> dict[str, dict[str, str]]:
        import csv

        with (self.out / "changes.csv").open(encoding="utf-8-sig", newline="") as file:
            return {line["sku"]: line for line in csv.DictReader(file)}

    def manifest(self) -> Any:
        return json.loads((self.out / "manifest.json").read_text())


@dataclass
class Desk:
    """Where a catalog is refreshed from; each call is another night."""

    folder: Path
    studio_record: Path
    catalog: str

    @property
    def source(self) -> Path:
        return self.folder / "spring.csv"

    def write(self, *rows: str, header: str = HEADER) -> None:
        self.source.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")

    def refresh(self, source: str | None = None, **options: Any) -> Refreshed:
        async def main() -> Refreshed:
            request = RefreshRequest(source=source or str(self.source), catalog=self.catalog, **options)
            async with Run(run_spec(request)) as work:
                await work.run_through()
                return Refreshed(work.ended, work.published.out)

        return asyncio.run(asyncio.wait_for(main(), 60))

    def night(self, *rows: str, **options: Any) -> Refreshed:
        self.write(*rows)
        return self.refresh(**options)

    def state(self) -> dict[str, CurrentRow]:
        settings = load_settings()
        ledger = open_ledger(settings)
        try:
            return {row.sku: row for row in ledger.catalogs.rows(settings.environment, self.catalog)}
        finally:
            ledger.close()

    def products(self) -> dict[str, str]:
        return {sku: row.product_id for sku, row in self.state().items() if row.retired_at is None}

    def creates(self) -> int:
        """How much was ever asked of the studio, by anybody."""
        return len(read_record(self.studio_record))


@pytest.fixture
def desk(studio: EmbeddedStudio, studio_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATTERNMILL_STUDIO_URL", studio.url)
    monkeypatch.setenv("PATTERNMILL_API_KEY", studio.key.get_secret_value())
    monkeypatch.setenv("PATTERNMILL_HOME", str(tmp_path / "home"))
    # A catalog of its own: request IDs of two tests are never the same.
    return Desk(tmp_path, studio_home / "studio" / "studio.db", tmp_path.name)
