"""The seeds: fixed ones, or the one of SIMULATION_SEED to replay it."""

from __future__ import annotations

import os

import pytest

#: By file, so that the testers share them. Those of the first meet every fault, and run every branch.
FIRST = (26, 34, 35, 58, 70, 102, 103, 107, 122, 140, 161, 172, 177, 180, 183, 189, 240, 265, 272)
FIXED = {
    "test_simulation": {*range(1, 9), *FIRST},
    "test_more_seeds": {*range(200, 237)},
    "test_other_seeds": {*range(237, 276)} - {*FIRST},
}


def seeds(file: str) -> list[int]:
    """Of one file."""
    if seed := os.environ.get("SIMULATION_SEED"):
        return [int(seed)] if file == "test_simulation" else []
    return sorted(FIXED[file])


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seed" in metafunc.fixturenames:
        metafunc.parametrize("seed", seeds(metafunc.module.__name__.rpartition(".")[2]))
