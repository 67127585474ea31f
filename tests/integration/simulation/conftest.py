"""The seeds: fixed ones, or the one of SIMULATION_SEED to replay it."""

from __future__ import annotations

import os

import pytest

#: They meet every fault; `make soak` plays others for 30 virtual days.
FIXED = (2, 26, 34, 35, 58, 102, 103, 107, 122, 140, 161, 172, 177, 183, 240, 265, 272)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seed" in metafunc.fixturenames:
        replayed = os.environ.get("SIMULATION_SEED")
        metafunc.parametrize("seed", [int(replayed)] if replayed else FIXED)
