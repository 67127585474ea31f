"""The manual clock, and what the instruments keep of it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from studio.instruments.clock import ManualClock, read_clock
from studio.instruments.fault_plan import FaultPlan
from studio.instruments.instrument_set import Instruments, Start
from studio.store import Store

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store(tmp_path / "studio.db")
    yield made
    made.close()


def manual(instruments: Instruments) -> ManualClock:
    assert isinstance(instruments.clock, ManualClock)
    return instruments.clock


def test_time_stands_still_until_it_is_moved(store: Store) -> None:
    """Also over a restart."""
    clock = ManualClock(store.settings, NOON)
    assert clock() == clock() == NOON

    clock.advance(timedelta(seconds=90))
    assert ManualClock(store.settings, NOON)() == NOON + timedelta(seconds=90)


def test_clocks_are_read() -> None:
    assert read_clock("manual") == "manual"
    assert read_clock("2026-01-31T12:00:00Z") == NOON
    with pytest.raises(ValueError, match="'noon' is no clock"):
        read_clock("noon")


def test_instruments_go_on_after_a_restart_with_the_same_options(store: Store) -> None:
    """With others they are what the options say."""
    start = Start(clock=NOON)
    first = Instruments(store, start)
    manual(first).advance(timedelta(seconds=5))
    first.faults.use(FaultPlan.model_validate({"faults": [{"on": "all", "effect": {"kind": "close"}}]}))

    same = Instruments(store, start)
    assert (same.now(), same.idle) == (NOON + timedelta(seconds=5), False)

    other = Instruments(store, Start(clock=NOON, control=True))
    assert (other.now(), other.idle) == (NOON, True)
