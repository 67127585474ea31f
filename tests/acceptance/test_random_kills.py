"""SIGKILL at random moments, any number of times, then the same command: nothing is bought twice or lost."""

from __future__ import annotations

import pytest

from tests.acceptance import kill_loop
from tests.acceptance.harness import Zygote


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "options",
    [
        "--kills 6 --rows 40",
        pytest.param("--kills 50 --rows 300", marks=pytest.mark.soak),
        pytest.param("--kills 50 --rows 200 --chains", marks=pytest.mark.soak),
    ],
)
def test_random_kills_buy_nothing_twice(zygote: Zygote, options: str) -> None:
    """With 12 % faults, the service's own record shows no purchase too many."""
    assert kill_loop.main(options.split(), zygote) == 0
