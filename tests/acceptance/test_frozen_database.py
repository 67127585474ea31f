"""The command over a PostgreSQL that freezes in mid-run, with the deadlines that it really has."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import psycopg
import pytest

from tests.acceptance.evidence import Evidence
from tests.acceptance.harness import Room, Zygote, some_rows, wait_for
from tests.hostile import Hostile, Plan, Times
from tests.integration.ledger.conftest import postgres_server, postgres_url
from tests.integration.ledger.frozen import frost_over

__all__ = ["postgres_server", "postgres_url"]
pytestmark = pytest.mark.soak


@pytest.mark.parametrize(("stopped", "most"), [(False, 100), (True, 60)], ids=["alone", "stopped by Ctrl-C"])
def test_frozen_database_ends_the_run_in_order(
    tmp_path: Path, zygote: Zygote, postgres_url: str, stopped: bool, most: float
) -> None:
    """It ends in time and names the database, Ctrl-C works at once, and nothing is bought twice."""
    jobs = Times(median=0.3)
    with (
        frost_over(postgres_url) as frost,
        Hostile(Plan(patterns=jobs, products=jobs), tmp_path) as service,
    ):
        settings = {"PATTERNMILL_LEDGER_URL": frost.url, "PATTERNMILL_MAX_IN_FLIGHT": "4"}
        room = Room(tmp_path / "room", service, some_rows(24), zygote, settings)
        started = room.start()
        wait_for(service.record, '"created"', count=6)
        frost.flows.clear()
        frozen = time.monotonic()
        if stopped:
            time.sleep(8)
            started.send(signal.SIGINT)
            wait_for(started.err, "Stopping:", timeout=2)
        ended = started.wait(most)
        assert ended.code == 1, ended.output
        assert time.monotonic() - frozen < most
        assert "PostgreSQL (patternmill_test_" in ended.err
        assert "waiting for the ledger's PostgreSQL" in ended.err
        frost.flows.set()
        _thaw(postgres_url)
        again = room.run()
        assert again.code == 0, again.output
        assert Evidence(room, postgres_url).faults() == []


def _thaw(url: str) -> None:
    """Put the database in the state that a thawed server finds: the connection is closed."""
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
