"""Forecasts of time and money: how a plan is played, and how often the intervals hold against a simulated truth."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest

from patternmill.planning.forecast import (
    ENOUGH_JOBS,
    Experience,
    Forecast,
    Interval,
    _play_time,
    _ProductGroup,
    _Rounds,
    _Work,
    forecast,
    makespan,
)
from patternmill.planning.items import Scope
from patternmill.planning.plan import Plan, make_plan
from patternmill.planning.recognition import Memory
from patternmill.states import Stage
from tests.unit.catalog.samples import HEADER, checked

PRICES = {Stage.PATTERN: 50, Stage.PRODUCT: 10}
FREE = {Stage.PATTERN: 0, Stage.PRODUCT: 0}


@dataclass(frozen=True)
class Job:
    attempt: int
    failed: bool
    seconds: float


def plan(rows: int, *, sharing: int = 1) -> Plan:
    lines = [f"S-{number},prompt {number // sharing},Mug,11oz,," for number in range(rows)]
    entries = checked("\n".join((HEADER, *lines)) + "\n").entries
    return make_plan(Scope("staging", "spring"), entries, Memory())


def alike(seconds: float, count: int = 50) -> list[Job]:
    return [Job(1, False, seconds)] * count


def of(rows: Plan, experience: Experience, *, window: int = 10, attempts: int = 2) -> Forecast:
    found = forecast(rows, experience, PRICES, attempts=attempts, window=window, currency="EUR")
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("patterns", "ready", "products", "window", "seconds"),
    [
        # One after the other: its pattern, its product.
        ([(60.0, 1)], 0, [10.0], 5, 70.0),
        # Products go first, so that the second pattern waits for the first one's products.
        ([(60.0, 2), (60.0, 1)], 0, [10.0, 10.0, 10.0], 1, 150.0),
        # A failed pattern unlocks nothing.
        ([(60.0, 0)], 0, [], 5, 60.0),
        # Those whose pattern exists begin at once.
        ([], 4, [10.0] * 4, 2, 20.0),
    ],
)
def test_items_are_played_as_the_engine_drives_them(
    patterns: list[tuple[float, int]], ready: int, products: list[float], window: int, seconds: float
) -> None:
    assert makespan(patterns, ready, products, window) == seconds


def test_nothing_to_do_has_no_forecast() -> None:
    nothing = make_plan(Scope("staging", "spring"), (), Memory())
    assert forecast(nothing, Experience(), PRICES, attempts=2, window=10) is None


def test_without_jobs_it_goes_by_assumptions_and_says_so() -> None:
    """One to two minutes a pattern is inside of what is shown for one row."""
    found = of(plan(1), Experience())
    assert found.jobs == 0
    assert found.seconds.low < 90 < 120 < found.seconds.high
    assert str(found).endswith("in 80 % of such runs (assumed: too few jobs of this environment are known)")


def test_few_jobs_are_not_enough() -> None:
    """Of each stage that the plan needs."""
    enough = alike(1.0, ENOUGH_JOBS)
    few = Experience({Stage.PATTERN: enough, Stage.PRODUCT: enough[1:]})
    assert of(plan(3), few).jobs == 0
    assert of(plan(3), Experience({Stage.PATTERN: enough, Stage.PRODUCT: enough})).jobs == 2 * ENOUGH_JOBS


def test_known_jobs_decide() -> None:
    """Forty rows in a window of ten: four rounds of a pattern and a product."""
    known = Experience({Stage.PATTERN: alike(60), Stage.PRODUCT: alike(10)})
    found = of(plan(40), known)
    assert found.seconds.low < 4 * 70 < found.seconds.high < 1.4 * 4 * 70
    assert found.amount is not None and found.amount.low >= 40 * 60
    assert str(found) == str(of(plan(40), known)), "the same wherever it is shown"


def test_failures_cost_time_and_money() -> None:
    failing = [Job(1, number % 4 == 0, 60.0) for number in range(200)]
    known = {Stage.PATTERN: failing, Stage.PRODUCT: alike(10)}
    calm = Experience({Stage.PATTERN: alike(60, 200), Stage.PRODUCT: alike(10)})
    assert of(plan(40), Experience(known)).seconds.middle > of(plan(40), calm).seconds.middle
    once = of(plan(40), Experience(known), attempts=1)
    assert once.amount is not None and once.amount.high < 40 * 60, (
        "products of failed patterns are not bought"
    )
    twice = of(plan(40), Experience(known))
    assert twice.amount is not None and twice.amount.middle > 40 * 60


def test_missed_forecasts_make_wider_ones() -> None:
    known = {Stage.PATTERN: alike(60), Stage.PRODUCT: alike(10)}
    sure, unsure = of(plan(40), Experience(known)), of(plan(40), Experience(known, (0.7, -0.6, 0.8)))
    assert unsure.seconds.high - unsure.seconds.low > 1.5 * (sure.seconds.high - sure.seconds.low)


def test_one_text_for_both() -> None:
    """Amounts only where prices are set; an interval of one value is that value."""
    times = Interval(60, 70, 90)
    assert str(Forecast(times, Interval(500, 500, 500), 40, "EUR")) == (
        "1 min to 1 min 30 s, €5.00, in 80 % of such runs (by the last 40 jobs here)"
    )
    assert str(Forecast(times, None, 1)).startswith("1 min to 1 min 30 s, in 80 % of such runs")
    found = forecast(plan(2), Experience(), FREE, attempts=2, window=10)
    assert found is not None and found.amount is None


def test_large_plans_are_quick() -> None:
    """100,000 rows, in processor time; and a small window is not taken for a large one."""
    everything = {Stage.PATTERN: 100_000, Stage.PRODUCT: 100_000}
    work = _Work((_ProductGroup((Stage.PATTERN,), 1),) * 100_000, 0, everything, dict.fromkeys(Stage, 0))
    chances = {Stage.PATTERN: _Fixed(60.0), Stage.PRODUCT: _Fixed(10.0)}
    for window in (1, 10, 200, 5000):
        began = time.process_time()
        seconds = _play_time(_Rounds.of(work, window), chances)  # type: ignore[arg-type]
        assert time.process_time() - began < 0.3
        assert seconds == pytest.approx(100_000 * 70 / window, rel=0.06)


class _Fixed:
    """A chance of jobs that are all alike."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def items(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        return np.full(count, self.seconds), np.zeros(count, dtype=bool)


# Against a truth: jobs, failures and how runs differ are drawn; forecasts see the jobs of the runs before.


class Truth:
    """A service with a pace and failures of its own, and runs that differ from one another."""

    def __init__(self, seed: int) -> None:
        self.dice = np.random.default_rng(seed)
        self.median = {Stage.PATTERN: self.dice.uniform(30, 120), Stage.PRODUCT: self.dice.uniform(3, 30)}
        self.spread = self.dice.uniform(0.1, 0.5)
        self.fails = self.dice.uniform(0.0, 0.1)
        self.runs_differ = self.dice.uniform(0.05, 0.2)

    def run(self, rows: int, window: int) -> tuple[float, int, dict[Stage, list[Job]]]:
        """Seconds, amount and jobs of a run of so many rows, each with a pattern of its own, tried twice."""
        factor = np.exp(self.runs_differ * self.dice.standard_normal())
        jobs: dict[Stage, list[Job]] = {stage: [] for stage in Stage}
        patterns, made = [], 0
        for _ in range(rows):
            seconds, failed = self._item(Stage.PATTERN, factor, jobs)
            patterns.append((seconds, int(not failed)))
            made += not failed
        products = [self._item(Stage.PRODUCT, factor, jobs)[0] for _ in range(made)]
        amount = sum(len(jobs[stage]) * price for stage, price in PRICES.items())
        return makespan(patterns, 0, products, window), amount, jobs

    def _item(self, stage: Stage, factor: float, jobs: dict[Stage, list[Job]]) -> tuple[float, bool]:
        total = 0.0
        for attempt in (1, 2):
            seconds = factor * self.median[stage] * np.exp(self.spread * self.dice.standard_normal())
            failed = bool(self.dice.random() < self.fails)
            jobs[stage].append(Job(attempt, failed, float(seconds)))
            total += float(seconds)
            if not failed:
                return total, False
        return total, True


def held(seeds: Sequence[int], rows: int, window: int) -> tuple[int, int]:
    """Of one forecast a seed, after three runs: how many held the time, and the money."""
    times = money = 0
    for seed in seeds:
        truth, known = Truth(seed), {stage: list[Job]() for stage in Stage}
        for _ in range(3):
            _, _, jobs = truth.run(rows, window)
            known = {stage: [*known[stage], *jobs[stage]][-300:] for stage in Stage}
        found = of(plan(rows), Experience(known), window=window)
        seconds, amount, _ = truth.run(rows, window)
        times += found.seconds.low <= seconds <= found.seconds.high
        assert found.amount is not None
        money += found.amount.low <= amount <= found.amount.high
    return times, money


def test_intervals_hold_about_as_often_as_they_say() -> None:
    """80 % of 40 are 32; fewer than 26 would come of a sound model once in a hundred times."""
    times, money = held(range(40), rows=20, window=10)
    assert 26 <= times <= 39
    assert 26 <= money <= 40


@pytest.mark.soak
@pytest.mark.parametrize(("rows", "window"), [(10, 50), (100, 20), (400, 30)])
def test_intervals_hold_for_other_plans(rows: int, window: int) -> None:
    times, money = held(range(200), rows=rows, window=window)
    assert 140 <= times <= 190
    assert 140 <= money <= 195
