"""Whole runs over each database: everything is bought once, and dated by the ledger."""

from __future__ import annotations

import random
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pydantic import SecretStr

from patternmill.ledger.postgres import PostgresDatabase
from patternmill.ledger.records import SpendingLimits
from patternmill.ledger.reports.run_lookup import latest_run
from patternmill.states import Outcome, RowStatus
from tests.hostile.in_process import Crash, Service
from tests.unit.runs.workshop import Workshop, many

HOUR = 3600.0


def test_crashes_and_limits_buy_everything_once(url: str, tmp_path: Path) -> None:
    """Crashes at random moments, then a limit, then the rest."""
    chance = random.Random(3)
    service = Service()
    shop = Workshop(tmp_path / "other-home", service, SecretStr(url))

    def crash(_: object) -> None:
        if chance.random() < 0.2:
            raise Crash

    service.at_create, service.at_job_end = crash, crash
    for _ in range(3):
        shop.crash(many(12), max_in_flight=4)
    service.at_create, service.at_job_end = (lambda _: None), (lambda _: None)
    limited = shop.run(many(12), max_in_flight=4, limits=SpendingLimits(items=6))
    assert limited.outcome is Outcome.BUDGET_REACHED
    assert limited.counts[RowStatus.SUCCEEDED] < 12
    assert shop.run(many(12)).outcome is Outcome.COMPLETED
    assert len(service.bought) == len(set(service.bought)) == 24
    asked = len(service.creates)
    assert shop.run(many(12)).outcome is Outcome.COMPLETED
    assert len(service.creates) == asked


def test_run_is_dated_by_its_ledger(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its beginning, its end and its ID, whatever its machine thinks."""
    measured = PostgresDatabase.time
    monkeypatch.setattr(PostgresDatabase, "time", lambda self: measured(self) + 48 * HOUR)
    shop = Workshop(tmp_path / "home", Service(), SecretStr(postgres_url))
    record = shop.run(many(2)).ending.record
    expected = datetime.now(UTC) + timedelta(hours=48)
    assert record.ended_at is not None
    assert record.started_at <= record.ended_at
    for moment in (record.started_at, record.ended_at):
        assert abs(moment - expected) < timedelta(minutes=1)
    assert record.run_id.startswith(f"{record.started_at:%Y%m%d-%H%M%S}")


def test_latest_run_is_the_one_with_the_latest_lease(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when the clock was set back in between."""
    shop = Workshop(tmp_path / "home", Service(), SecretStr(url))
    offset = 0.0
    right, measured = time.time, PostgresDatabase.time
    monkeypatch.setattr(time, "time", lambda: right() + offset)
    monkeypatch.setattr(PostgresDatabase, "time", lambda self: measured(self) + offset)
    ids = []
    for hours in (0.0, -5.0, 3.0):
        offset = hours * HOUR
        ids.append(shop.run(many(1)).ending.record.run_id)
    with shop.ledger() as ledger:
        listed = [run.run_id for run in ledger.runs.find(environment="staging", catalog="spring")]
        assert listed == ids[::-1]
        assert latest_run(ledger).run_id == latest_run(ledger, catalog="spring").run_id == ids[-1]
        numbers = ledger.database.rows("SELECT number FROM runs ORDER BY number")
        assert numbers == [(1,), (2,), (3,)]
