"""A real studio, and runs of the library against it."""

from __future__ import annotations

import asyncio
import json
from base64 import b64decode
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from pydantic import SecretStr

from patternmill.engine.options import RunOptions
from patternmill.ledger.ledger import open_ledger
from patternmill.profiles import Profile
from patternmill.runs.request import RetryRequest
from patternmill.runs.retry import select_rows
from patternmill.runs.run import Run, RunEnding
from patternmill.runs.spec import RunSpec
from patternmill.settings import Settings
from studio.testing import Studio
from tests.integrity import problems
from tests.quick_writer import quick_writer as quick_writer
from tests.row_results import RowResult, row_results

#: A picture of one colour.
PNG = b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAACAAAAAgCAIAAAD8GO2jAAAAKklEQVR42mOQt4+nKW"
    "IYtWDUglELRi0YtWDUglELRi0YtWDUglELhooFAFip9B8cm1XHAAAAAElFTkSuQmCC"
)


@dataclass
class ChainRun:
    """An ended run with its rows."""

    ending: RunEnding
    rows: dict[str, RowResult]


@dataclass
class Chains:
    """One catalog with a home of its own, at a real studio; each call is another run of the same command."""

    home: Path
    studio: Studio
    operations: Path | None = None

    @property
    def settings(self) -> Settings:
        return Settings(
            home=self.home / "state",
            profiles={"staging": Profile(url=self.studio.base_url, key=SecretStr(self.studio.key))},
            max_in_flight=8,
            operations_file=self.operations,
        )

    def spec(self, text: str) -> RunSpec:
        file = self.home / "spring.csv"
        file.write_text(text, "utf-8")
        return RunSpec(str(file), "spring", self.settings, RunOptions(), out=self.home / "out")

    def run(self, text: str) -> ChainRun:
        return self._run(self.spec(text))

    def retry(self) -> ChainRun:
        """The rows of the last run that did not succeed."""
        request = RetryRequest()
        with open_ledger(self.settings) as ledger:
            selection = select_rows(ledger, request)
        spec = self.spec((self.home / "spring.csv").read_text("utf-8"))
        record = selection.record
        chosen = {"file": selection.checked.catalog, "selection": selection, "source": record.source}
        return self._run(replace(spec, retries=True, **chosen))

    def know(self, **operations: object) -> None:
        """What a person says about the operations of the service."""
        self.operations = self.home / "operations.json"
        self.operations.write_text(json.dumps({"staging": operations}), "utf-8")

    def _run(self, spec: RunSpec) -> ChainRun:
        async def main() -> ChainRun:
            async with Run(spec) as work:
                await work.run_through()
                with open_ledger(self.settings) as ledger:
                    record = work.ended.record
                    rows = {row.sku: row for row in row_results(ledger, record)}
                    assert not list(problems(ledger))
                return ChainRun(work.ended, rows)

        return asyncio.run(asyncio.wait_for(main(), 120))

    @property
    def bought(self) -> Counter[str]:
        """By operation, what the studio's meter says was bought."""
        purchases = self.studio.meter.read()["purchases"]
        return Counter(str(purchase["operation"]) for purchase in purchases)


@pytest.fixture(scope="session")
def one_studio() -> Iterator[Studio]:
    with Studio() as studio:
        yield studio


@pytest.fixture
def chains(one_studio: Studio, tmp_path: Path) -> Chains:
    one_studio.reset()
    (tmp_path / "heron.png").write_bytes(PNG)
    return Chains(tmp_path, one_studio)
