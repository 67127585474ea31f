"""SIGKILL at random moments of a remake, at a service with faults, then the same command: each take is bought once."""

from __future__ import annotations

import os
import random
from collections import Counter
from pathlib import Path

import pytest

from tests.acceptance.evidence import Evidence
from tests.acceptance.harness import Room, Zygote, some_rows
from tests.acceptance.kill_loop import SHORT, mixed_faults
from tests.hostile import Hostile, Plan

KILLS = 15


@pytest.mark.timeout(180)
def test_killed_remake_buys_each_take_once(tmp_path: Path, zygote: Zygote) -> None:
    """And the import of the unchanged file afterwards undoes nothing, and buys nothing."""
    seed = int(os.environ.get("KILL_SEED", random.randrange(10**6)))
    print(f"KILL_SEED={seed}")
    dice, rows = random.Random(seed), some_rows(60, shared=0)
    remade = rows[:30]
    skus = [text for row in remade for text in ("--sku", row.sku)]
    with Hostile(Plan(seed=seed, rules=mixed_faults(), patterns=SHORT, products=SHORT), tmp_path) as service:
        room = Room(tmp_path / "room", service, rows, zygote, {"PATTERNMILL_MAX_IN_FLIGHT": "8"})
        assert until_done(room) == 0
        kills = 0
        while kills < KILLS:
            started = room.start(*skus, verb="remake")
            killed = started.outlives(dice.uniform(0.2, 1.0))
            ended = started.kill() if killed else started.wait()
            kills += killed
            if ended.code == 0:
                break
        assert until_done(room, *skus, verb="remake") == 0
        made = patterns(room)
        assert made == {row.prompt: 2 if row in remade else 1 for row in rows}
        count = len(Evidence(room).audit.purchases)
        assert until_done(room) == 0
        evidence = Evidence(room)
    assert len(evidence.audit.purchases) == count, "an unchanged file costs nothing"
    assert evidence.audit.requests_with_two_jobs == ()
    assert evidence.audit.changed_bodies == ()
    second = {purchase.result_id for purchase in evidence.audit.purchases if purchase.stage == "pattern"}
    assert {row["pattern_id"] for row in evidence.results} <= second
    latest = latest_patterns(evidence)
    for row in evidence.results:
        assert row["pattern_id"] == latest[row["prompt"]], f"{row['sku']} was undone"
    assert kills >= 5, "the remake was over before it proved anything"


def until_done(room: Room, *options: str, verb: str = "import") -> int:
    for _ in range(20):
        ended = room.start(*options, verb=verb).wait(120)
        if ended.code == 0:
            break
    return ended.code


def patterns(room: Room) -> Counter[str]:
    """By prompt, how many patterns the service made and did not fail."""
    bought = Evidence(room).audit.purchases
    return Counter(one.prompt for one in bought if one.stage == "pattern" and one.ended != "failed")


def latest_patterns(evidence: Evidence) -> dict[str, str | None]:
    """By prompt, the pattern of the last purchase."""
    made = [one for one in evidence.audit.purchases if one.stage == "pattern" and one.ended != "failed"]
    return {one.prompt: one.result_id for one in sorted(made, key=lambda one: one.at)}
