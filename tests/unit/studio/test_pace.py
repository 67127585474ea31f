"""Job times: settled by the request, within the bounds of the pace."""

from __future__ import annotations

from datetime import timedelta
from statistics import median

import pytest

from studio.pace import BOUNDS, Pace, duration


@pytest.mark.parametrize(("pace", "kind"), sorted(BOUNDS))
def test_durations_are_bounded_and_repeatable(pace: Pace, kind: str) -> None:
    shortest, longest = (timedelta(seconds=bound) for bound in BOUNDS[pace, kind])

    for number in range(500):
        taken = duration(pace, kind, f"r-{number}")
        assert shortest <= taken <= longest
        assert taken == duration(pace, kind, f"r-{number}")


def test_realistic_patterns_take_a_minute_and_a_half() -> None:
    """One to two minutes, as the interface says, most of them near the middle."""
    seconds = [duration(Pace.REALISTIC, "pattern", str(number)).total_seconds() for number in range(2000)]

    assert 80 < median(seconds) < 90
    assert len({round(one, 3) for one in seconds}) > 1500
