"""Days in virtual time. Each is played in a process of its own, whose clocks are virtual from its start."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
#: Two of each dialect; `python -m tests.simulation --days 10 FILE` plays others.
SEEDS = range(34)
#: Bugs of `tests/simulation/bugs.py`, a part of what the judge says about each, and seeds that show it.
BUGS = [
    ("new_id_per_try", "WRONG twice", (0, 6)),
    ("job_before_intent", "WRONG twice", (0, 6)),
    ("next_attempt_in_doubt", "WRONG twice", (0, 1, 3)),
    ("poll_error_is_failure", "WRONG twice", (12, 17)),
    ("failure_not_confirmed", "WRONG twice", (0, 6)),
    ("drivers_ignored", "WRONG twice", (39, 56)),
    ("overlap_ignored", "WRONG twice", (56, 124)),
    ("age_ignored", "WRONG twice", (6, 108)),
    ("duplicates_not_read", "WRONG wrong_advice", (15, 32)),
]
HAPPENED = (
    "deaths",
    "Paused",
    "SkippedOverlap",
    "settled: job",
    "settled: resend",
    "settled: write-off",
    "purchases",
)


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


@pytest.mark.slow
@pytest.mark.parametrize(("bug", "found", "seeds"), BUGS, ids=[bug for bug, _, _ in BUGS])
def test_a_seeded_bug_is_found(bug, found, seeds):
    code, said = played("--bug", bug, *seeds)
    assert code
    assert found in said
