"""Whole imports in virtual time through faults, hidden limits, deaths and stops; each replays from one seed."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from patternmill.engine.item_attempts import Attempts
from patternmill.ledger.records import Attempt
from patternmill.states import AttemptState
from tests.integration.simulation import branches, judge
from tests.integration.simulation.play import Setup, mixed_setup, play
from tests.integration.simulation.weather import FAULTS, HAPPENINGS, SPELLS, Spell

#: What fired over the seeds of this session, how lives ended, and which lines of the decisions ran.
FIRED, RAN = Counter[str](), set[int]()
#: A seed that is played soon.
QUICK = 2


def judged(setup: Setup) -> None:
    """Play it, and judge it; a failure shows how to replay it."""
    replay = f"SIMULATION_SEED={setup.seed} replays it: {setup}"
    try:
        with branches.watched(RAN):
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
    """What few seeds have."""
    setup = mixed_setup(number)
    judged(replace(setup, weather=replace(setup.weather, **weather)))


def test_every_fault_and_every_branch_occurred() -> None:
    """Over the fixed seeds of this file: each kind of weather and of end, each line of the decisions."""
    if os.environ.get("SIMULATION_SEED") or not FIRED:
        pytest.skip("needs the fixed seeds, just played")
    expected = {*FAULTS, *HAPPENINGS, *SPELLS, "overlap", "moment", "second", "stop", "itself"}
    assert {one for one in expected if not FIRED[one]} == set()
    assert branches.all_lines() - RAN == set()


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


def test_seeded_new_id_for_an_item_in_doubt_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A seeded bug: an open intent is left behind, and the next run makes another attempt."""
    right = Attempts._next_number

    def wrong(self: Attempts, attempts: tuple[Attempt, ...], retried: bool, after: int) -> int | None:
        if attempts and attempts[-1].state is AttemptState.INTENDED:
            return attempts[-1].attempt + 1
        return right(self, attempts, retried, after)

    monkeypatch.setattr(Attempts, "_next_number", wrong)
    found = [fault for seed in (2, 7) for fault in judge.faults(play(mixed_setup(seed)))]
    assert any("had not failed" in fault for fault in found)
