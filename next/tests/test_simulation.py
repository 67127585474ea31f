"""Days in virtual time. Each is played in a process of its own, whose clocks are virtual from its start."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.simulation.bugs import BUGS

ROOT = Path(__file__).resolve().parent.parent
#: Three of the seeds of each dialect; `python -m tests.simulation --days 10 FILE` plays others.
SEEDS = range(51)


def played(*arguments, **env):
    """Return the exit code and what the simulation said."""
    ended = subprocess.run(
        [sys.executable, "-m", "tests.simulation", *map(str, arguments)], cwd=ROOT, env=os.environ | env,
        capture_output=True, text=True, timeout=250,
    )  # fmt: skip
    return ended.returncode, ended.stdout + ended.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    "seeds", [SEEDS[::3], SEEDS[1::3], SEEDS[2::3]], ids=["a third", "another", "the last"]
)
def test_nothing_is_bought_twice_or_lost_and_no_advice_is_wrong(seeds):
    code, said = played(*seeds)
    assert (code, "WRONG" in said) == (0, False), said[-4000:]
    for happened in ("deaths", "pauses", "settled", "SkippedOverlap", "purchases"):
        assert happened in said


@pytest.mark.slow
def test_a_seed_replays_exactly():
    assert played(3, PYTHONHASHSEED="1") == played(3, PYTHONHASHSEED="2")


@pytest.mark.slow
@pytest.mark.parametrize(("bug", "seeds"), [(bug, seeds) for bug, (_, seeds) in BUGS.items()])
def test_a_seeded_bug_is_found(bug, seeds):
    code, said = played("--bug", bug, *seeds)
    assert "WRONG twice" in said, said[-2000:]
    assert code
