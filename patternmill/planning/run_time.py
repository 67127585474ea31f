"""How long a plan takes: its items by the times of the latest jobs, from their 10th to their 90th percentile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import quantiles

from patternmill.planning.plan import TO_DO, Plan
from patternmill.states import Stage
from patternmill.text import duration_range, plural

#: From so many known jobs of a stage on, they are gone by.
ENOUGH_JOBS = 5
#: Seconds that a pattern takes, as the interface says; it says nothing of the rest.
STATED = {Stage.PATTERN: (60.0, 120.0)}


@dataclass(frozen=True)
class RunTime:
    """From how many seconds to how many, and by how many known jobs; 0: by what the interface says of patterns."""

    low: float
    high: float
    jobs: int

    def __str__(self) -> str:
        """`42 min to 1 h 5 min, by the last 480 jobs here`."""
        basis = f"the last {plural(self.jobs, 'job')} here" if self.jobs else "one to two minutes a pattern"
        return f"{duration_range(self.low, self.high)}, by {basis}"


def run_time(plan: Plan, known: Mapping[Stage, Sequence[float]], window: int) -> RunTime | None:
    """None where nothing is to be done, or nothing is known of it. `known`: seconds of ended jobs.

    At least while the work fills the window, or while one row is made; at most both, one after the other.
    """
    counts = plan.counts(TO_DO)
    if not all(len(known.get(stage, ())) >= ENOUGH_JOBS for stage in counts):
        known = {}
    times = {stage: _range(known[stage]) if known else STATED.get(stage) for stage in counts}
    ranges = [(counts[stage], *seconds) for stage, seconds in times.items() if seconds is not None]
    if not ranges:
        return None
    low = max(sum(count * fast for count, fast, _ in ranges) / window, sum(fast for _, fast, _ in ranges))
    high = sum(count * slow for count, _, slow in ranges) / window + sum(slow for _, _, slow in ranges)
    return RunTime(low, high, sum(len(known[stage]) for stage in counts) if known else 0)


def _range(seconds: Sequence[float]) -> tuple[float, float]:
    """The 10th and the 90th percentile."""
    tenths = quantiles(seconds, n=10, method="inclusive")
    return tenths[0], tenths[-1]
