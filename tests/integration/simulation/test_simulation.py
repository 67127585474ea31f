"""Whole imports in virtual time through faults, hidden limits, deaths and stops; each replays from one seed."""

from __future__ import annotations

import hashlib
import os
import random
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from tests.integration.simulation import judge
from tests.integration.simulation.play import Setup, mixed_setup, play, some_lines
from tests.integration.simulation.weather import FAULTS, HAPPENINGS, SPELLS, Spell, Weather

#: The count of each fault that fired over this session's seeds, and of each way in which lives ended.
FIRED = Counter[str]()
#: A seed that is quick to play.
QUICK = 2


def judged(setup: Setup) -> None:
    """Play it, and judge it; a failure shows how to replay it."""
    replay = f"SIMULATION_SEED={setup.seed} replays it: {setup}"
    try:
        story = play(setup)
    except BaseException as error:
        error.add_note(replay)
        raise
    assert judge.faults(story) == [], replay
    FIRED.update(story.service.fired)
    FIRED.update(life.partition(":")[0] for life in story.lives)


def test_all_faults_at_once(seed: int) -> None:
    """Faults, limits, failing jobs, outages, crashes, stops, overlaps: bought once, nothing lost."""
    judged(mixed_setup(seed))


@pytest.mark.parametrize(
    ("number", "weather"),
    [
        (4, {"polls_mixed": 0.1, "renamed": 1.0, "dialect": None, "spells": ()}),
        (4, {"spells": (Spell("asked_to_wait", 40.0, 90.0, 1.0),)}),
        (2, {"spells": (Spell("item_failed", 20.0, 1500.0, 0.5),)}),
    ],
    ids=["a second job", "a long wait", "no clear answer"],
)
def test_rare_weather(number: int, weather: dict[str, Any]) -> None:
    """Each kind of weather that few seeds have is survived."""
    setup = mixed_setup(number)
    judged(replace(setup, weather=replace(setup.weather, **weather)))


def test_every_fault_occurred() -> None:
    """Each kind of weather and of end occurred over the fixed seeds of this file."""
    if os.environ.get("SIMULATION_SEED") or not FIRED:
        pytest.skip("needs the fixed seeds, just played")
    expected = {*FAULTS, *HAPPENINGS, *SPELLS, "overlap", "moment", "second", "stop", "itself"}
    assert {one for one in expected if not FIRED[one]} == set()


def test_seed_replays_exactly() -> None:
    """Byte for byte in another process: requests with their times, the ledger's events, rows."""
    here = play(mixed_setup(QUICK)).trace()
    there = subprocess.run(
        [sys.executable, "-m", "tests.integration.simulation", str(QUICK)],
        env=os.environ | {"PYTHONHASHSEED": "77"},
        stdout=subprocess.PIPE,
        check=True,
        timeout=120,
    ).stdout
    assert there.decode().split()[-1] == hashlib.sha256(here.encode()).hexdigest()


def test_steady_faults_cost_few_requests() -> None:
    """In a steady 1 % of faults, requests stay under 1.1 times those of the same run without any."""
    shares = dict.fromkeys(("reset_after", "failed_executed"), 0.005)
    lines = some_lines(80, random.Random(1), shared=0.0, refined=0.0)
    calm = Setup("1", lines, Weather(spread=0.05), attempts=2)
    without, within = (
        play(replace(calm, weather=Weather(faults=faults, spread=0.05))) for faults in ({}, shares)
    )
    assert within.service.fired.total() > 0.005 * len(without.service.asked)
    assert len(within.service.asked) < 1.1 * len(without.service.asked)
    assert len(within.service.jobs) == len(without.service.jobs) == 160
