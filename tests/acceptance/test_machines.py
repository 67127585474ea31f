"""One run on several machines: real workers under TLS, a ledger in PostgreSQL, and what happens to them meanwhile."""

from __future__ import annotations

import signal
import time
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from prefect_host.own_server import OwnServer
from tests.acceptance.evidence import Evidence
from tests.acceptance.harness import Room, Zygote, clean_environment, some_rows, wait_for
from tests.acceptance.machines import Postgres, Workers
from tests.acceptance.prefect_servers import start_import
from tests.hostile import Hostile, Plan
from tests.hostile.plan import Times

WINDOW = 100


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_machines_freeze_die_and_restart(tmp_path: Path, zygote: Zygote, joint_server: OwnServer) -> None:
    """So do PostgreSQL and the flow's own process; groups go on elsewhere, with the share that they had."""
    jobs = Times(median=3.0)
    with ExitStack() as stack:
        service = stack.enter_context(Hostile(Plan(patterns=jobs, products=jobs), tmp_path / "service"))
        postgres = stack.enter_context(Postgres())
        settings = {
            **joint_server.client_environment,
            "PATTERNMILL_LEDGER_URL": postgres.url,
            "PATTERNMILL_MAX_IN_FLIGHT": str(WINDOW),
            "PYTHONUNBUFFERED": "1",
        }
        room = Room(tmp_path / "room", service, some_rows(1000, shared=0), zygote, settings)
        environment = clean_environment() | room.environment
        workers = stack.enter_context(closing(Workers(tmp_path, environment, threads=8)))
        for _ in range(3):
            workers.add()

        def await_purchases(count: int) -> None:
            wait_for(service.record, '"created"', count=count, timeout=600)

        running = start_import(room, **workers.settings)
        await_purchases(100)
        frozen = workers.running[-1]
        frozen.send_signal(signal.SIGSTOP)
        for count in (400, 800):
            await_purchases(count)
            workers.kill()
            workers.add()
        await_purchases(1000)
        postgres.stop()
        time.sleep(2)
        postgres.start()
        await_purchases(1200)
        frozen.send_signal(signal.SIGCONT)
        running.kill()
        ended = start_import(room, **workers.settings).wait(1200)
        assert ended.code == 0, ended.output
        evidence = Evidence(room, postgres.url)
        assert evidence.faults_of_record() == []
        bought = evidence.audit.purchases
        changes = [(p.at, 1) for p in bought] + [(p.ended_at, -1) for p in bought if p.ended_at]
        in_flight = 0
        for _, change in sorted(changes):
            in_flight += change
            assert in_flight <= WINDOW
