"""One run on several machines: real workers under TLS, a ledger in PostgreSQL, and what happens to them meanwhile."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.acceptance.evidence import Evidence
from tests.acceptance.harness import Ended, Room, Started, Zygote, clean_environment, some_rows, wait_for
from tests.acceptance.machines import Postgres, Workers
from tests.acceptance.prefect_servers import NamedServer, lay_database, migrated_database, start_import
from tests.hostile import Hostile, Plan
from tests.hostile.plan import Times


@dataclass
class Cluster:
    """A run and the machines that it is driven on."""

    room: Room
    postgres: Postgres
    workers: Workers
    environment: dict[str, str]
    window: int
    closing: ExitStack

    def start(self) -> Started:
        running = start_import(self.room, **self.environment)
        self.closing.callback(running.kill)
        return running

    def await_purchases(self, count: int) -> None:
        wait_for(self.room.service.record, '"created"', count=count, timeout=600)

    def assert_whole(self, ended: Ended) -> None:
        assert ended.code == 0, ended.output
        evidence = Evidence(self.room, self.postgres.url)
        assert evidence.faults_of_record() == []
        bought = evidence.audit.purchases
        changes = [(p.at, 1) for p in bought] + [(p.ended_at, -1) for p in bought if p.ended_at]
        in_flight = most = 0
        for _, change in sorted(changes):
            in_flight += change
            most = max(most, in_flight)
        assert most <= self.window


MakeCluster = Callable[..., Cluster]


@pytest.fixture
def make_cluster(tmp_path: Path, zygote: Zygote) -> Iterator[MakeCluster]:
    with ExitStack() as stack:

        def make(rows: int, window: int, seconds: float, workers: int, threads: int) -> Cluster:
            plan = Plan(patterns=Times(median=seconds), products=Times(median=seconds))
            service = stack.enter_context(Hostile(plan, tmp_path / "service"))
            postgres = stack.enter_context(Postgres())
            template = migrated_database(tmp_path.parent)
            server = NamedServer(lay_database(template, tmp_path / "named"))
            stack.callback(server.kill)
            server.start()
            server.await_ready()
            settings = {
                "PATTERNMILL_LEDGER_URL": postgres.url,
                "PATTERNMILL_MAX_IN_FLIGHT": str(window),
                "PREFECT_API_URL": server.api.url,
                "PREFECT_HOME": str(tmp_path / "client"),
                "PYTHONUNBUFFERED": "1",
            }
            room = Room(tmp_path / "room", service, some_rows(rows, shared=0), zygote, settings)
            environment = clean_environment() | room.environment
            machines = stack.enter_context(closing(Workers(tmp_path, environment, threads)))
            for _ in range(workers):
                machines.add()
            return Cluster(room, postgres, machines, machines.settings, window, stack)

        yield make


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_killed_machine_costs_nothing(make_cluster: MakeCluster) -> None:
    """Its groups are driven by another one, and go on in the share that they had."""
    cluster = make_cluster(rows=120, window=24, seconds=1.0, workers=2, threads=4)
    running = cluster.start()
    cluster.await_purchases(30)
    cluster.workers.kill()
    cluster.workers.add()
    cluster.assert_whole(running.wait(300))


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_machines_freeze_die_and_restart(make_cluster: MakeCluster) -> None:
    """PostgreSQL and the flow's own process too."""
    cluster = make_cluster(rows=1000, window=100, seconds=3.0, workers=3, threads=8)
    running = cluster.start()
    cluster.await_purchases(100)
    frozen = cluster.workers.running[-1]
    frozen.send_signal(signal.SIGSTOP)
    for count in (400, 800):
        cluster.await_purchases(count)
        cluster.workers.kill()
        cluster.workers.add()
    cluster.await_purchases(1000)
    cluster.postgres.stop()
    time.sleep(2)
    cluster.postgres.start()
    cluster.await_purchases(1200)
    frozen.send_signal(signal.SIGCONT)
    running.kill()
    cluster.assert_whole(cluster.start().wait(1200))
