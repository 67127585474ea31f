"""Limits: what they admit, what they refuse, and when one may come again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from studio.errors import Refusal
from studio.limits import Limit, Limits, read_limit

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def admitted(limits: Limits, operation: str, times: int, at: datetime = NOW, account: str = "a") -> int:
    """How many of so many requests at once are admitted."""
    count = 0
    for _ in range(times):
        try:
            limits.admit_request(operation, account, at)
        except Refusal as refusal:
            assert refusal.status == 429
        else:
            count += 1
    return count


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("creates=10/s", Limit("creates", 10, 1.0)),
        ("jobs/get=600/m,undeclared", Limit("jobs/get", 600, 60.0, declared=False)),
        ("patterns/create=4", Limit("patterns/create", 4, None)),
    ],
)
def test_limits_are_read(text: str, limit: Limit) -> None:
    assert read_limit(text) == limit


@pytest.mark.parametrize("text", ["", "creates", "creates=0/s", "creates=10/day", "=3", "creates=3,loud"])
def test_what_is_no_limit_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no limit"):
        read_limit(text)


def test_rate_is_refilled_by_the_clock() -> None:
    """As many at once as fit in the period, then one for each part of it; in each account for itself."""
    limits = Limits([read_limit("creates=4/s")])

    assert admitted(limits, "patterns/create", 9) == 4
    assert admitted(limits, "refine/edit", 9, NOW + timedelta(seconds=0.5)) == 2
    assert admitted(limits, "products/create", 9, NOW + timedelta(hours=1)) == 4
    assert admitted(limits, "patterns/create", 9, account="b") == 4
    assert admitted(limits, "jobs/get", 9) == 9


def test_jobs_at_once_are_limited_until_one_ends() -> None:
    """Those that were running at the start count too."""
    ends = [NOW + timedelta(seconds=seconds) for seconds in (7, 90)]
    limits = Limits([read_limit("creates=2")], [("a", ends[1])])
    limits.admit_job("patterns/create", "a", NOW)
    limits.job_started("a", ends[0])

    with pytest.raises(Refusal, match="2 jobs are running") as refused:
        limits.admit_job("patterns/create", "a", NOW)
    assert refused.value.headers == {"Retry-After": "7"}
    limits.admit_job("patterns/create", "b", NOW)
    limits.admit_job("patterns/create", "a", ends[0])
