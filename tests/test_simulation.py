"""Days in virtual time. Each is played in a process of its own, whose clocks are virtual from its start."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
#: One of each dialect; `python -m tests.simulation --days 400 FILE` plays others.
SEEDS = range(17)
#: Bugs of `tests/simulation/bugs.py`, a part of what the judge says about each, and a seed that shows it.
BUGS = [
    ("new_id_per_try", "WRONG twice", 6), ("job_before_intent", "WRONG twice", 3),
    ("next_attempt_in_doubt", "WRONG twice", 1), ("poll_error_is_failure", "WRONG twice", 17),
    ("failure_not_confirmed", "WRONG twice", 6), ("drivers_ignored", "WRONG twice", 56),
    ("overlap_ignored", "WRONG twice", 56), ("age_ignored", "WRONG twice", 244),
    ("duplicates_not_read", "WRONG wrong_advice", 32), ("each_remake_moves", "WRONG twice", 2),
]  # fmt: skip
HAPPENED = (
    "deaths", "Paused", "SkippedOverlap", "settled: job", "settled: resend", "settled: write-off", "purchases",
    "remakes", "orders",
)  # fmt: skip


def played(*arguments, **env):
    """Return the exit code and what the simulation said."""
    ended = subprocess.run(
        [sys.executable, "-m", "tests.simulation", *map(str, arguments)], cwd=ROOT, env=os.environ | env,
        capture_output=True, text=True, timeout=250,
    )  # fmt: skip
    return ended.returncode, ended.stdout + ended.stderr


@pytest.mark.slow
@pytest.mark.parametrize("half", [0, 1])
def test_nothing_is_bought_twice_or_lost_and_no_advice_is_wrong(half):
    code, said = played(*SEEDS[half::2])
    assert (code, "WRONG" in said) == (0, False), "\n".join(
        line for line in said.splitlines() if "WRONG" in line
    )
    assert [happened for happened in HAPPENED if happened not in said] == []


@pytest.mark.slow
def test_a_seed_replays_exactly():
    assert played(3, PYTHONHASHSEED="1") == played(3, PYTHONHASHSEED="2")


@pytest.fixture(scope="module")
def with_bugs():
    """What is said about all bugs, by one process: to start one takes as long as to play a seed."""
    return played("--bugs", *(f"{bug}:{seed}" for bug, _, seed in BUGS))[1]


@pytest.mark.slow
@pytest.mark.parametrize(("bug", "found", "seed"), BUGS, ids=[bug for bug, _, _ in BUGS])
def test_a_seeded_bug_is_found(with_bugs, bug, found, seed):
    assert f"{bug}:{seed} {found}" in with_bugs
