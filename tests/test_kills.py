"""A round of the kill loop: real processes, killed at random moments among faults, over two catalogs at once."""

import pytest

from tests.kill_loop import play


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.soak)])
def test_killed_at_random_nothing_is_bought_twice_and_nothing_lost(seed):
    counts, wrong = play(seed, kills=4, rows=16)
    assert wrong == []
    assert counts["kills"] == 4
    assert counts["faults"]
