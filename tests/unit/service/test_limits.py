"""Limits that nobody stated are found and made use of, each operation's by itself; in virtual time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.service.limits_simulation import CASES, simulate


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("6 + 6, fixed window, no hint", 0.9),
        ("12 together, burst 10, no hint", 0.9),
        ("20 patterns + 3 products", 0.9),
        pytest.param("6 + 6, sliding window, no hint", 0.9, marks=pytest.mark.soak),
        pytest.param("6 + 6, token bucket, burst 10, Retry-After", 0.9, marks=pytest.mark.soak),
    ],
)
def test_each_limit_is_made_use_of(name: str, least: float) -> None:
    """After the first minute; few answers are 429 then, and none of them makes the window smaller."""
    figures = simulate(replace(CASES[name], phases=(150.0,)))
    assert all(share > least for phases in figures.used.values() for share in phases), figures
    assert figures.late_429 < 0.025, figures
    assert figures.smallest_window == CASES[name].window


@pytest.mark.slow
def test_limit_of_jobs_at_once_shrinks_the_window() -> None:
    """Answered with 429 too; the jobs that the service carries are the measure."""
    figures = simulate(CASES["20 jobs of 10 s at once"])
    assert figures.smallest_window < 30
    assert figures.used["together"][0] > 0.65


@pytest.mark.slow
def test_few_rows_without_a_limit_take_no_longer() -> None:
    """Nothing is learned without a 429."""
    figures = simulate(CASES["no limit, 200 in flight"])
    assert figures.all_429 == 0
    assert figures.lasted is not None and figures.lasted < 27
