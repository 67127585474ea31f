"""One run on several machines: real workers under TLS, a ledger in PostgreSQL, and what happens to them meanwhile."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from benchmarks.machines import Events, Figures, Load, measurement

if not (shutil.which("pg_ctl") or any(Path("/usr/lib/postgresql").glob("*/bin/pg_ctl"))):
    reason = "no PostgreSQL server that a test could start"
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason, allow_module_level=True)


def assert_whole(figures: Figures, load: Load) -> None:
    assert figures.code == 0, figures.output
    assert (figures.bought_twice, figures.lost) == (0, 0), figures.line(load)
    assert figures.peak <= load.window


@pytest.mark.slow
def test_killed_machine_costs_nothing() -> None:
    """Its groups are driven by another one, and go on in the slots that they had."""
    load, events = Load(rows=120, window=24, seconds=1.0, threads=4), Events()
    with measurement(load) as measured:
        events.at(3, measured.kill_worker)
        figures = measured.run(events)
    assert figures.happened == ["a worker killed"]
    assert_whole(figures, load)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_machines_freeze_die_and_restart() -> None:
    """PostgreSQL and the flow's own process too; the figures at full size are in the bench's page."""
    load, events = Load(rows=1000, window=100, seconds=3.0, workers=3), Events()
    with measurement(load) as measured:
        events.at(20, measured.kill_worker, again_every=40)
        events.at(10, lambda: measured.freeze_worker(60))
        events.at(30, measured.restart_postgres)
        events.at(50, measured.restart_import)
        figures = measured.run(events)
    assert len(figures.happened) >= 4
    assert_whole(figures, load)
