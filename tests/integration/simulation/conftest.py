"""The seeds: a few fixed ones, SIMULATIONS=n for n fresh ones, or the one of SIMULATION_SEED to replay it."""

from __future__ import annotations

import os
import random

import pytest

#: Chosen so that together they meet every fault.
FIXED = range(1, 11)


def seeds() -> list[int]:
    if seed := os.environ.get("SIMULATION_SEED"):
        return [int(seed)]
    if many := os.environ.get("SIMULATIONS"):
        first = random.SystemRandom().randrange(1_000_000_000)
        return list(range(first, first + int(many)))
    return list(FIXED)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seed" in metafunc.fixturenames:
        metafunc.parametrize("seed", seeds())
