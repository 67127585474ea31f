"""A run that is spread over real processes on a PostgreSQL ledger, with no Prefect anywhere."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from patternmill.ledger.ledger import open_ledger
from patternmill.runs.pipeline import Pipeline
from patternmill.runs.request import ImportRequest
from patternmill.runs.run import RunEnding
from patternmill.runs.spec import import_spec
from patternmill.runs.spread import PartGrant, spread
from patternmill.settings import load_settings
from prefect_host import shared_process
from tests.acceptance.harness import CHECKOUT, some_rows, write_csv
from tests.hostile import Audit, ExpectedRow, Hostile, Plan, audit
from tests.integration.ledger.conftest import postgres_server as postgres_server
from tests.integration.ledger.conftest import postgres_url as postgres_url


@dataclass
class Process:
    """A process that a part was assigned to."""

    grant: PartGrant
    process: subprocess.Popen[bytes]

    async def is_gone(self) -> bool:
        return self.process.poll() is not None

    async def dismiss(self) -> None:
        """Left alone: what it writes does not count."""

    async def await_end(self) -> None:
        await asyncio.to_thread(self.process.wait, 60)


@dataclass
class Processes:
    """Starts one for each part, and remembers all of them."""

    log: Path
    started: list[Process] = field(default_factory=list)

    async def start(self, grant: PartGrant) -> Process:
        arguments = (grant.run_id, str(grant.number), str(grant.grant), grant.environment)
        with self.log.open("ab") as log:
            process = shared_process.start_process(
                [sys.executable, "-m", "tests.integration.spread.part_process", *arguments],
                cwd=CHECKOUT,
                stdout=log,
                stderr=log,
            )
        self.started.append(Process(grant, process))
        return self.started[-1]

    def end(self) -> None:
        for started in self.started:
            if started.process.poll() is None:
                started.process.send_signal(signal.SIGCONT)
                started.process.kill()
            started.process.wait()


@dataclass
class Site:
    """A catalog with its service, its ledger, and the processes of its parts."""

    folder: Path
    service: Hostile
    rows: list[ExpectedRow]
    processes: Processes

    def spec(self, **asked: Any) -> Pipeline:
        file = write_csv(self.folder / "herons.csv", self.rows)
        return Pipeline(import_spec(ImportRequest(file=file, out=self.folder / "out", spread=2, **asked)))

    @asynccontextmanager
    async def begun(self, **asked: Any) -> AsyncIterator[Pipeline]:
        """An import with its plan on record."""
        async with self.spec(**asked) as work:
            await work.read()
            await work.check()
            await work.plan()
            yield work

    async def run(self, **asked: Any) -> RunEnding:
        """Spread it, and end it."""
        async with self.begun(**asked) as work:
            await spread(work.begun, self.processes, lambda part: part.engine.drive())
            ending = await work.end()
            await work.publish()
        return ending

    @property
    def audit(self) -> Audit:
        return audit(self.service.record, self.rows)

    def spent(self, ending: RunEnding) -> int:
        ledger = open_ledger(load_settings())
        rows = ledger.database.rows(
            "SELECT sum(amount) FROM spending WHERE run_id = :run_id", {"run_id": ending.record.run_id}
        )
        ledger.close()
        return int(rows[0][0])

    def most_in_flight(self) -> int:
        """By the service's own record."""
        moves = [(line["at"], 1) for line in self.service.lines() if line["event"] == "created"]
        moves += [(line["at"], -1) for line in self.service.lines() if line["event"] == "ended"]
        most = now = 0
        # At one and the same moment an end comes before a beginning.
        for _, step in sorted(moves):
            now += step
            most = max(most, now)
        return most


@pytest.fixture
def site(tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Site]]:
    """Makes the site of a test: rows and the service's plan."""
    opened: list[Hostile] = []
    processes = Processes(tmp_path / "parts.log")

    def make(plan: Plan, rows: int) -> Site:
        service = Hostile(plan, tmp_path / "service")
        service.start()
        opened.append(service)
        for name in [name for name in os.environ if name.startswith(("PATTERNMILL_", "PREFECT_"))]:
            monkeypatch.delenv(name)
        settings = {
            **service.environment,
            "PATTERNMILL_HOME": str(tmp_path / "home"),
            "PATTERNMILL_LEDGER_URL": postgres_url,
            "PATTERNMILL_PATTERN_PRICE": "10",
            "PATTERNMILL_PRODUCT_PRICE": "3",
        }
        for name, value in settings.items():
            monkeypatch.setenv(name, value)
        return Site(tmp_path, service, some_rows(rows), processes)

    yield make
    processes.end()
    for service in opened:
        service.stop()
