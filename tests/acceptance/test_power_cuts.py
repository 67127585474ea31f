"""Power cuts at random moments: whatever a program had not synced is lost, and nothing is bought twice."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

import pytest

from tests.acceptance.harness import HURRY, Room, Zygote, some_rows
from tests.acceptance.kill_loop import SHORT, Tally, await_work, judge, mixed_faults, run_until_done
from tests.acceptance.power.disk import ForgetfulDisk
from tests.hostile import Hostile, Plan

CUTS = int(os.environ.get("CUTS", "5"))


@pytest.mark.timeout(60 + 20 * CUTS)
@pytest.mark.skipif(shutil.which("cc") is None, reason="a C compiler watches what is synced")
def test_power_cuts_buy_nothing_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The ledger has what it acknowledged. `CUTS=100` cuts the power a hundred times."""
    seed = int(os.environ.get("KILL_SEED", random.randrange(10**6)))
    print(f"KILL_SEED={seed}")
    dice = random.Random(seed)
    with Hostile(Plan(seed=seed, rules=mixed_faults(), patterns=SHORT, products=SHORT), tmp_path) as service:
        warm = Zygote(tmp_path / "warm")
        room = Room(tmp_path / "room", service, some_rows(60), warm, {"PATTERNMILL_MAX_IN_FLIGHT": "8"})
        disk = ForgetfulDisk(room.folder, tmp_path)
        (tmp_path / "warm").mkdir()
        tally = Tally(rows=len(room.rows))
        for name, text in disk.environment.items():
            monkeypatch.setenv(name, text)
        while tally.kills < CUTS:
            size = service.record.stat().st_size if service.record.exists() else 0
            started = room.start(inject=HURRY)
            await_work(service.record, size, started)
            started.outlives(dice.uniform(0, 0.3))
            ended = started.kill()
            assert ended.code == -9, ended.output
            tally.kills += 1
            disk.cut_power()
        tally.faults += [] if run_until_done(room, tally, ()).code == 0 else ["it did not end"]
        judge(room, tally)
        warm.close()
    assert tally.faults == []
    assert tally.mid_run >= CUTS // 2
