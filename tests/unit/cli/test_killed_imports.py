"""What a rehearsal draws: faults that the studio takes, none of which hides another, and kills along the purchases."""

from __future__ import annotations

import os
import random
from itertools import combinations
from math import gcd

import pytest

from cli.killed_imports import counted_calls, draw_moments, fault_plan, is_counter, own_settings_removed
from studio.instruments.fault_plan import FaultPlan


@pytest.mark.parametrize("seed", range(20))
def test_faults_do_not_hide_one_another(seed: int) -> None:
    """On one call the first of them fires, so that the numbers of calls between them have no common factor."""
    faults = fault_plan(random.Random(seed))
    assert FaultPlan.model_validate({"seed": seed, "faults": faults}).named
    for on in ("creates", "polls"):
        every = [
            one["every"]
            for one in faults
            if one["on"] == on and "every" in one and one["effect"]["kind"] != "job_fails"
        ]
        assert len(every) >= 4
        assert all(gcd(one, other) == 1 for one, other in combinations(every, 2))


def test_counters_count_and_are_no_faults() -> None:
    faults = fault_plan(random.Random(1))
    counters = [{"name": one["name"], "calls": 7} for one in faults if is_counter(one["name"])]
    assert set(counted_calls(counters).values()) == {7}
    assert "jobs/get" in counted_calls(counters)
    assert len(counters) < len(faults) / 2


@pytest.mark.parametrize(("kills", "of_studio"), [(0, 0), (1, 1), (6, 2), (20, 7)])
def test_kills_are_spread_over_the_purchases(kills: int, of_studio: int) -> None:
    moments = draw_moments(random.Random(2), kills)
    shares = [moment.share for moment in moments]
    assert shares == sorted(shares)
    assert sum(moment.of_import for moment in moments) == kills
    assert len(moments) == kills + of_studio
    assert all(0 <= share < 1 for share in shares)


def test_own_settings_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also after an error; nothing else is removed."""
    monkeypatch.setenv("PATTERNMILL_API_KEY", "canary")
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:9/api")
    before = dict(os.environ)
    with pytest.raises(KeyError), own_settings_removed():
        assert {"PATTERNMILL_API_KEY", "PREFECT_API_URL"} & set(os.environ) == set()
        assert "PATH" in os.environ
        raise KeyError
    assert dict(os.environ) == before
