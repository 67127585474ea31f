"""How long a plan takes, by the jobs that are known, or by what the interface says."""

from __future__ import annotations

from patternmill.planning.items import Scope
from patternmill.planning.plan import Plan, make_plan
from patternmill.planning.recognition import Memory
from patternmill.planning.run_time import run_time
from patternmill.states import Stage
from tests.unit.catalog.samples import HEADER, checked

#: From 60 s to 100 s, and from 10 s to 20 s, of which the outer tenths do not count.
KNOWN = {
    Stage.PATTERN: [1.0, 60, 64, 70, 80, 80, 80, 90, 96, 100, 999],
    Stage.PRODUCT: [1.0, 10, 12, 14, 15, 15, 15, 16, 18, 20, 999],
}


def plan(rows: int) -> Plan:
    lines = [f"S-{number},prompt {number},Mug,11oz,," for number in range(rows)]
    entries = checked("\n".join((HEADER, *lines)) + "\n").entries
    return make_plan(Scope("staging", "spring"), entries, Memory())


def test_work_fills_the_window() -> None:
    """From the 10th percentile to the 90th of the known jobs; the last row's chain comes on top."""
    found = run_time(plan(1000), KNOWN, 10)
    assert found is not None
    assert (found.low, found.high) == (7000.0, 12_000.0 + 120.0)
    assert str(found) == "1 to 4 h, by the last 22 jobs here"


def test_few_rows_take_as_long_as_one() -> None:
    found = run_time(plan(3), KNOWN, 200)
    assert found is not None
    assert (found.low, found.high) == (70.0, 120.0 + 3 * 120.0 / 200)


def test_without_known_jobs_the_interface_counts() -> None:
    """One to two minutes a pattern, and nothing for what it does not speak of; also where jobs of one kind are few."""
    for known in ({}, {**KNOWN, Stage.PRODUCT: [15.0] * 4}):
        found = run_time(plan(1000), known, 10)
        assert found is not None
        assert (found.low, found.high, found.jobs) == (6000.0, 12_000.0 + 120.0, 0)
        assert str(found).endswith(", by one to two minutes a pattern")


def test_nothing_to_do_takes_no_time() -> None:
    nothing = make_plan(Scope("staging", "spring"), (), Memory())
    assert run_time(nothing, KNOWN, 10) is None
