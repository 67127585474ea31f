"""How long a plan takes and what it costs, as intervals: the plan is played many times, as the jobs before it went."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from heapq import heappop, heappush
from math import exp, sqrt
from statistics import NormalDist
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from patternmill.identifiers import ItemKey
from patternmill.planning.plan import TO_BUY, TO_DO, Plan, Reason
from patternmill.states import Stage
from patternmill.text import between, duration, money, plural

#: The share of runs that an interval is meant to hold.
CONFIDENCE = 0.8
#: From so many jobs of a stage on, they are believed in place of the assumptions.
ENOUGH_JOBS = 5
#: Median and spread (sigma of the logarithm) of jobs while too few are known. The service speaks of one to two minutes
#: a pattern, and says nothing of the rest.
ASSUMED = {
    Stage.REFERENCE: (2.0, 0.6),
    Stage.PATTERN: (85.0, 0.25),
    Stage.REFINEMENT: (30.0, 0.6),
    Stage.PRODUCT: (20.0, 0.6),
}
#: How far whole runs differ from one another, as sigma of the logarithm: with jobs known, and on assumptions alone.
USUAL_MISS, ASSUMED_MISS = 0.2, 0.5
#: What the first of these counts for, in runs, against the misses of earlier forecasts.
USUAL_RUNS = 3
#: Items that are played one by one: the last rounds of the window. What comes before them is work by its mean.
MOST_PLAYED, ROUNDS = 1000, 4
MOST_PLAYS, FEWEST_PLAYS, EFFORT = 200, 45, 45_000
#: The same plan has the same forecast, wherever it is shown.
_SEED = 7

Floats = NDArray[np.float64]
Prices = Mapping[Stage, int]
#: Of several items: for how long each takes up the window, and whether it fails.
Drawn = tuple[Floats, NDArray[np.bool_]]


class PastJob(Protocol):
    """A job that ended: of which attempt at its item, whether it failed, and for how long it took up the window."""

    @property
    def attempt(self) -> int: ...
    @property
    def failed(self) -> bool: ...
    @property
    def seconds(self) -> float: ...


@dataclass(frozen=True)
class Experience:
    """What is known of an environment."""

    jobs: Mapping[Stage, Sequence[PastJob]] = field(default_factory=dict)
    #: How far earlier forecasts of time that knew jobs were off: logarithms of what came over what was expected.
    misses: Sequence[float] = ()

    def of(self, stage: Stage) -> Sequence[PastJob]:
        """The jobs of a stage, where they are enough to go by."""
        jobs = self.jobs.get(stage, ())
        return jobs if len(jobs) >= ENOUGH_JOBS else ()


@dataclass(frozen=True)
class Interval:
    low: float
    middle: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float], share: float = CONFIDENCE) -> Interval:
        """The middle share of the values."""
        outside = (1 - share) / 2
        return cls(*map(float, np.quantile(values, [outside, 0.5, 1 - outside], method="nearest")))


@dataclass(frozen=True)
class Forecast:
    """What a run is expected to take and to spend."""

    seconds: Interval
    #: Minor units; None where no prices are set.
    amount: Interval | None
    #: The jobs that it goes by; 0: assumptions alone, for one stage at least.
    jobs: int
    currency: str | None = None

    @property
    def time_text(self) -> str:
        """`42 min to 1 h 5 min`."""
        return between(duration(self.seconds.low), duration(self.seconds.high))

    @property
    def money_text(self) -> str:
        """`€5.00 to €5.40`; empty without prices."""
        if self.amount is None:
            return ""
        return between(*(money(round(one), self.currency) for one in (self.amount.low, self.amount.high)))

    def __str__(self) -> str:
        """`42 min to 1 h 5 min, €5.00 to €5.40, in 80 % of such runs (by the last 480 jobs here)`."""
        both = ", ".join(filter(None, (self.time_text, self.money_text)))
        return f"{both}, in {CONFIDENCE:.0%} of such runs ({self._basis})".replace("%", " %")

    @property
    def _basis(self) -> str:
        if self.jobs:
            return f"by the last {plural(self.jobs, 'job')} here"
        return "assumed: too few jobs of this environment are known"


def forecast(
    plan: Plan,
    experience: Experience,
    prices: Prices,
    *,
    attempts: int,
    window: int,
    currency: str | None = None,
) -> Forecast | None:
    """None where nothing is to be done. Rejected requests, limits and approvals are not foreseen."""
    work = _Work.of(plan)
    if not work.items:
        return None
    dice = np.random.default_rng(_SEED)
    facts = {stage: _JobFacts(experience.of(stage), stage) for stage in ASSUMED}
    rounds = _Rounds.of(work, window)
    seconds, amounts = [], []
    for factor in _factors(work, experience, dice):
        chances = {stage: _Chance(facts[stage], factor, attempts, dice) for stage in ASSUMED}
        seconds.append(_play_time(rounds, chances))
        amounts.append(_play_money(work, chances, prices, attempts, dice))
    amount = Interval.of(amounts) if any(prices.values()) else None
    return Forecast(Interval.of(seconds), amount, _known_jobs(work, experience), currency)


@dataclass(frozen=True)
class _ProductGroup:
    """Products that wait for the same pattern, and the stages of what has to be made before them, in that order."""

    stages: tuple[Stage, ...]
    products: int

    @property
    def items(self) -> int:
        return len(self.stages) + self.products


@dataclass(frozen=True)
class _Work:
    """What a plan has to make."""

    #: In the order of the plan.
    groups: tuple[_ProductGroup, ...]
    #: Products whose pattern exists.
    ready: int
    #: Items to buy, and items that were begun before.
    new: Mapping[Stage, int]
    begun: Mapping[Stage, int]

    @classmethod
    def of(cls, plan: Plan) -> _Work:
        """The one place that knows how a plan is made up. What several patterns are built on counts for the first."""
        waiting: dict[ItemKey | None, list[Stage]] = {}
        products: Counter[ItemKey | None] = Counter()
        counted: set[ItemKey] = set()
        for row in plan.to_do():
            stages = waiting.setdefault(row.pattern, [])
            products[row.pattern] += 1
            for key in row.keys[:-1]:
                if key not in counted and plan.items[key].reason in TO_DO:
                    counted.add(key)
                    stages.append(plan.items[key].item.stage)
        groups = tuple(
            _ProductGroup(tuple(stages), products[key]) for key, stages in waiting.items() if stages
        )
        ready = products.total() - sum(group.products for group in groups)
        return cls(groups, ready, plan.counts(TO_BUY), plan.counts({Reason.CONTINUED}))

    @cached_property
    def items(self) -> int:
        return sum(group.items for group in self.groups) + self.ready

    @cached_property
    def by_stage(self) -> Counter[Stage]:
        found = Counter(stage for group in self.groups for stage in group.stages)
        found[Stage.PRODUCT] += sum(group.products for group in self.groups) + self.ready
        return found

    @cached_property
    def products_a_group(self) -> float:
        return sum(group.products for group in self.groups) / len(self.groups) if self.groups else 0.0

    def last(self, most: int) -> _Work:
        """The last of it, about as many items; those whose pattern exists are made first."""
        kept: deque[_ProductGroup] = deque()
        left = most
        for group in reversed(self.groups):
            if left <= 0:
                break
            kept.appendleft(replace(group, products=min(group.products, left)))
            left -= group.items
        return replace(self, groups=tuple(kept), ready=min(self.ready, max(left, 0)))


def _factors(work: _Work, experience: Experience, dice: np.random.Generator) -> Iterator[float]:
    """By what each play is longer than the jobs say: evenly over how far runs differ, in random order."""
    plays = min(MOST_PLAYS, max(FEWEST_PLAYS, EFFORT // min(work.items, MOST_PLAYED)))
    spread = NormalDist(0.0, _miss(work, experience))
    for place in dice.permutation(plays):
        yield exp(spread.inv_cdf((float(place) + 0.5) / plays))


def _miss(work: _Work, experience: Experience) -> float:
    """How far a run is off, as sigma of the logarithm: what is usual, and what became of earlier forecasts."""
    if not _known_jobs(work, experience):
        return ASSUMED_MISS
    squares = USUAL_RUNS * USUAL_MISS**2 + sum(miss**2 for miss in experience.misses)
    return sqrt(squares / (USUAL_RUNS + len(experience.misses)))


def _known_jobs(work: _Work, experience: Experience) -> int:
    known = [len(experience.of(stage)) for stage in work.by_stage]
    return sum(known) if all(known) else 0


class _JobFacts:
    """The known jobs of a stage, in the form in which plays draw from them."""

    def __init__(self, jobs: Sequence[PastJob], stage: Stage) -> None:
        first = [job.failed for job in jobs if job.attempt == 1]
        further = [job.failed for job in jobs if job.attempt > 1]
        self.seconds = np.array([job.seconds for job in jobs])
        #: Parameters of the beta distributions of the share that fails, with what is believed before any is known.
        self.first = (0.5 + sum(first), 10.0 + len(first) - sum(first))
        self.further = (1.0 + sum(further), 2.0 + len(further) - sum(further))
        self.assumed = ASSUMED[stage]


class _Chance:
    """What one play believes of a stage: how long its jobs take, and how often they fail.

    The fewer jobs are known, the more the beliefs differ from play to play (Bayesian bootstrap, beta distribution).
    """

    def __init__(self, facts: _JobFacts, factor: float, attempts: int, dice: np.random.Generator) -> None:
        self._facts, self._factor, self._attempts, self._dice = facts, factor, attempts, dice
        #: That a first attempt fails, and that one after it does.
        self.first = float(dice.beta(*facts.first))
        self.further = float(dice.beta(*facts.further))
        count = len(facts.seconds)
        self._weights = np.cumsum(dice.dirichlet(np.ones(count))) if count else None

    def items(self, count: int) -> Drawn:
        """For how long each of so many items takes up the window, with all its attempts, and whether it fails."""
        seconds = self._draw(count)
        failed = self._dice.random(count) < self.first
        for _ in range(1, self._attempts):
            again = int(failed.sum())
            if not again:
                break
            seconds[failed] += self._draw(again)
            failed[failed] = self._dice.random(again) < self.further
        return seconds, failed

    def _draw(self, count: int) -> Floats:
        if self._weights is None:
            median, spread = self._facts.assumed
            return self._factor * median * np.exp(spread * self._dice.standard_normal(count))
        places = np.searchsorted(self._weights[:-1], self._dice.random(count))
        return np.asarray(self._factor * self._facts.seconds[places], dtype=np.float64)


@dataclass(frozen=True)
class _Rounds:
    """The last rounds of the window, played item by item; before them the window is full, so that only a sum counts."""

    played: _Work
    counts: Mapping[Stage, int]
    window: int
    #: What comes before them, by stage; and how often the window is filled with that.
    before: Mapping[Stage, int]
    fillings: float

    @classmethod
    def of(cls, work: _Work, window: int) -> _Rounds:
        """A window too large to be played is played smaller, with as many fewer items that stand for its own."""
        rounds = min(work.items, max(ROUNDS * window, MOST_PLAYED // 2))
        played = work.last(min(rounds, MOST_PLAYED))
        smaller = max(1, round(window * min(1.0, MOST_PLAYED / rounds)))
        before = work.by_stage - played.by_stage
        return cls(played, played.by_stage, smaller, before, (work.items - rounds) / window)


def _play_time(rounds: _Rounds, chances: Mapping[Stage, _Chance]) -> float:
    drawn = {stage: chances[stage].items(count) for stage, count in rounds.counts.items()}
    played = rounds.played
    end = makespan(_entries(played, drawn), played.ready, drawn[Stage.PRODUCT][0].tolist(), rounds.window)
    if not rounds.before:
        return end
    total = sum(count * _mean(chances[stage]) for stage, count in rounds.before.items())
    return end + rounds.fillings * total / sum(rounds.before.values())


def _entries(played: _Work, drawn: Mapping[Stage, Drawn]) -> Iterator[tuple[float, int]]:
    """Of each group, how long it takes until its products can be made, and how many can be then."""
    draws = {
        stage: zip(seconds.tolist(), failed.tolist(), strict=True)
        for stage, (seconds, failed) in drawn.items()
    }
    for group in played.groups:
        seconds, failed = 0.0, False
        for stage in group.stages:
            its_seconds, it_fails = next(draws[stage])
            seconds, failed = seconds + its_seconds, failed or it_fails
        yield seconds, 0 if failed else group.products


def _mean(chance: _Chance) -> float:
    return float(chance.items(200)[0].mean())


def makespan(
    patterns: Iterable[tuple[float, int]], ready: int, products: Sequence[float], window: int
) -> float:
    """When the last of these ends: as the engine drives them, products first, then patterns in their order.

    `patterns`: how long each takes, and how many products can be made then; `ready`: those that can from the start.
    """
    waiting, lengths = deque(patterns), iter(products)
    running: list[tuple[float, int]] = []
    now = 0.0
    while ready or waiting or running:
        while (ready or waiting) and len(running) < window:
            if ready:
                ready -= 1
                heappush(running, (now + next(lengths), 0))
            else:
                seconds, unlocks = waiting.popleft()
                heappush(running, (now + seconds, unlocks))
        now, unlocked = heappop(running)
        ready += unlocked
    return now


def _play_money(
    work: _Work, chances: Mapping[Stage, _Chance], prices: Prices, attempts: int, dice: np.random.Generator
) -> float:
    """Each attempt has its price, also one that fails; what was begun before has paid for its first."""
    amount = unbought = 0.0
    for stage in (stage for stage in chances if stage is not Stage.PRODUCT):
        bought, lost = _attempts(work, chances[stage], stage, attempts, dice)
        amount += bought * prices.get(stage, 0)
        unbought += lost * work.products_a_group
    bought, _ = _attempts(work, chances[Stage.PRODUCT], Stage.PRODUCT, attempts, dice)
    return amount + max(0, bought - round(unbought)) * prices[Stage.PRODUCT]


def _attempts(
    work: _Work, chance: _Chance, stage: Stage, attempts: int, dice: np.random.Generator
) -> tuple[int, int]:
    """How many are bought for the items of a stage, and how many of the items fail for good."""
    bought = work.new[stage]
    failed = int(dice.binomial(bought + work.begun[stage], chance.first))
    for _ in range(1, attempts):
        bought += failed
        failed = int(dice.binomial(failed, chance.further))
    return bought, failed
