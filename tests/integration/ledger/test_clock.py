"""The clock of a ledger: the database's own where it has one, never backwards; and an order that needs no clock."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pydantic import SecretStr

from patternmill.identifiers import ItemKey, RunId
from patternmill.ledger.catalogs import RETRY_OF
from patternmill.ledger.database import ServerClock
from patternmill.ledger.ledger import Ledger
from patternmill.ledger.postgres import PostgresDatabase
from patternmill.ledger.reports.run_lookup import latest_run
from patternmill.ledger.sqlite import SqliteDatabase
from patternmill.states import AttemptState, Outcome, Stage
from tests.unit.runs.fake_studio import Service
from tests.unit.runs.workshop import Workshop, many

from .conftest import OpenLedger
from .samples import CATALOG, RAW, RECORD, STAGING, WAYS, begin, learned, run_row

HOUR = 3600.0


def server_time(ledger: Ledger) -> float:
    return float(ledger.database.rows("SELECT extract(epoch FROM clock_timestamp())")[0][0])


@pytest.mark.parametrize("skew", [-26 * HOUR, 26 * HOUR])
def test_postgres_ledger_is_dated_by_the_servers_clock(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch, skew: float
) -> None:
    """Attempts, events and everything else, whatever the machine's clock says."""
    right = time.time
    monkeypatch.setattr(time, "time", lambda: right() + skew)
    ledger = Ledger(PostgresDatabase(postgres_url))
    assert ledger.now() == pytest.approx(server_time(ledger), abs=1)
    assert begin(ledger, "a").intended_at == pytest.approx(server_time(ledger), abs=1)
    ledger.close()


def test_sqlite_ledger_is_dated_by_the_machines_clock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "time", lambda: 1_900_000_000.0)
    ledger = Ledger(SqliteDatabase(tmp_path / "ledger.sqlite3"))
    assert ledger.now() == 1_900_000_000.0
    ledger.close()


class Local:
    """A local clock, set by the test."""

    def __init__(self) -> None:
        self.now = 50.0

    def __call__(self) -> float:
        return self.now


def test_servers_clock_is_measured_again() -> None:
    """After half a minute: a server whose clock was set is followed."""
    local = Local()
    clock = ServerClock(local)
    assert clock.is_due()
    clock.measure(lambda: 1000.0)
    local.now += 29
    assert clock() == 1029 and not clock.is_due()
    local.now += 2
    assert clock.is_due()
    clock.measure(lambda: 5000.0)
    assert clock() == 5000


def test_slow_answer_is_no_measurement() -> None:
    """Half of the round trip is subtracted; a measurement with a slow one is dropped."""
    local = Local()
    clock = ServerClock(local)

    def ask(seconds: float, answer: float) -> None:
        def asked() -> float:
            local.now += seconds
            return answer

        clock.measure(asked)

    ask(0.4, 1000.0)
    assert clock() == pytest.approx(1000.2)
    local.now += 30
    ask(9, 2000.0)
    assert clock() == pytest.approx(1039.2)


def test_run_is_dated_by_its_ledger(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its beginning, its end and its ID, whatever its machine thinks."""
    measured = ServerClock.__call__
    monkeypatch.setattr(ServerClock, "__call__", lambda self: measured(self) + 48 * HOUR)
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
    right, measured = time.time, ServerClock.__call__
    monkeypatch.setattr(time, "time", lambda: right() + offset)
    monkeypatch.setattr(ServerClock, "__call__", lambda self: measured(self) + offset)
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


@pytest.mark.parametrize("hours", [-100, 100])
def test_products_of_a_retry_are_known_from_the_record(open_ledger: OpenLedger, hours: int) -> None:
    """Not from times: a retry adds what it made itself, and nothing older."""
    ledger = open_ledger()
    row = '{"prompt": "herons", "category": "Mug", "selections": {}}'
    ids = {"old": RunId("run-0"), "new": RunId("run-1")}
    for name, run_id in ids.items():
        begin(ledger, f"p-{name}", run=run_id)
        begin(ledger, name, stage=Stage.PRODUCT, run=run_id, sku=name, pattern_key=ItemKey(f"p-{name}"))
        for key in (f"p-{name}", name):
            for to in WAYS[AttemptState.SUCCEEDED]:
                with ledger.transaction():
                    found = ledger.purchases.attempts_of(ItemKey(key))[-1]
                    ledger.purchases.change(run_id, found.request_id, to, **learned(key, to))
    retry = replace(
        RECORD,
        run_id=ids["new"],
        started_at=datetime.fromtimestamp(ledger.now(), UTC) + timedelta(hours=hours),
        options={RETRY_OF: "run-0"},
        outcome=Outcome.COMPLETED,
    )
    with ledger.transaction():
        ledger.runs.add(retry, RAW)
        ledger.runs.add_rows(
            retry.run_id, [run_row(0, "p-old", "old", row=row), run_row(1, "p-new", "new", row=row)]
        )
        ledger.catalogs.update(retry)
    assert [current.sku for current in ledger.catalogs.rows(STAGING, CATALOG)] == ["SKU-1"]
