"""How long jobs take, learned from polls: the chance that a running job ends now, by its age."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from functools import cache
from itertools import pairwise
from math import erfc, log, pi, sqrt

import numpy as np
from numpy.typing import NDArray

#: Ages in seconds that bound the bins: each a twentieth longer than the last, from 20 ms to some four hours.
FIRST, RATIO, BINS = 0.02, 1.05, 278
EDGES = [0.0, *(FIRST * RATIO**number for number in range(BINS))]
WIDTHS = np.diff(EDGES)
MIDDLES = [(upper + lower) / 2 for lower, upper in pairwise(EDGES)]
#: Belief before anything is seen, in jobs: each age is as likely as each tenfold of it.
VAGUE_JOBS = 0.1
VAGUE = np.array([0.7 / max(middle, FIRST) for middle in MIDDLES])
#: Belief that jobs are spread like a lognormal, in jobs. The spreads (sigma of the logarithm) that are
#: thought of, and how likely each is beforehand: a third most, and half or double that nearly as much.
SHAPED_JOBS = 6.0
SPREADS = (0.03, 0.05, 0.08, 0.12, 0.18, 0.27, 0.4, 0.6, 0.9, 1.3)
LIKELIEST_SPREAD, SPREAD_OF_SPREADS = 0.25, 0.9
#: So many ends are judged anew with each fit.
SHAPED_UNTIL = 300
#: More jobs than this, and the older half of the memory fades: a service changes.
MEMORY = 1000.0

Bins = NDArray[np.float64]


class Durations:
    """An empirical hazard in bins of age, fed with intervals in which jobs ran or ended.

    Jobs that still run count as well as those that ended, so that quick ones, which end first, are not
    taken for all. While few have ended, lognormals of many medians and spreads, each as likely as what was
    seen makes it, fill the bins in which nothing was seen.
    """

    def __init__(self) -> None:
        self._ran: Bins = np.zeros(BINS)
        self._ended: Bins = np.zeros(BINS)
        #: In which jobs ran, not counted yet.
        self._stretches: list[tuple[float, float]] = []
        #: The first ends as they were seen: the bins that each is between, placed anew with each fit.
        self._sights: Counter[tuple[int, int]] = Counter()
        #: Of the lognormals: the share of jobs alive at each edge.
        self._alive = _expected_at_first()
        #: Jobs seen to end.
        self.seen = 0
        self._observed, self._refresh_at = 0, 1
        self._weight = 0.0
        self._believe()

    @property
    def stale(self) -> bool:
        """Enough was observed since the last `refresh` to make a difference."""
        return self._observed >= self._refresh_at

    def ran(self, since: float, until: float) -> None:
        self._stretches.append((since, until))
        self._observed += 1

    def ended(self, since: float, until: float) -> None:
        """A job ended between these ages; which moment is likely follows from what is known so far."""
        first, last, lengths = _parts(since, max(until, since + 1e-6))
        if self.seen < SHAPED_UNTIL:
            self._sights[first, last] += 1
        else:
            _place_end(first, last, lengths, self._chances, 1, self._ended, self._ran)
        self._count()

    def next_age(self, age: float, step: float) -> float:
        """The age at which to ask next: where the root of the hazard, summed from `age`, reaches `step`.

        Where the hazard hardly changes this is the gap sqrt(2c / hazard); where it is nothing, it looks ahead.
        """
        return self._age_at(self._density_at(age) + step)

    def refresh(self) -> None:
        """Work out what `next_age` reads. Some milliseconds: not for every poll."""
        self._refresh_at = self._observed + max(1, min(self._observed // 5, 500))
        self._count_stretches()
        if self.seen <= SHAPED_UNTIL and (self._sights or not self.seen):
            self._alive = _expected(_posterior(self._ran / WIDTHS, self._sights))
        self._believe()

    def _believe(self) -> None:
        """Weigh what was seen against the lognormals, and against a vague belief that anything can be.

        Only the first two decide when an end probably was: the third would place ends where no job was polled.
        """
        alive, hazard = _middle(self._alive), _hazard(self._alive)
        ended, ran = self._placed(hazard)
        known = ran + SHAPED_JOBS * alive * WIDTHS
        self._chances = (ended + SHAPED_JOBS * alive * hazard * WIDTHS + 1e-9) / (known + 1e-6)
        vague = VAGUE_JOBS * WIDTHS
        self._sum_up((self._chances * known + VAGUE * vague) / (known + vague))

    def _placed(self, hazard: Bins) -> tuple[Bins, Bins]:
        """What was seen, with each end shared out among the bins in which it may have been."""
        if not self._sights:
            return self._ended, self._ran
        ended, ran = self._ended.copy(), self._ran.copy()
        for (first, last), times in self._sights.items():
            _place_end(first, last, WIDTHS[first:last], hazard, times, ended, ran)
        if self.seen >= SHAPED_UNTIL:
            self._ended, self._ran = ended, ran
            self._sights.clear()
        return ended, ran

    def _sum_up(self, hazards: Bins) -> None:
        parts = np.sqrt(hazards) * WIDTHS
        alive = np.exp(-np.concatenate([[0.0], np.cumsum(hazards * WIDTHS)]))
        self._density: list[float] = [0.0, *np.cumsum(parts).tolist()]
        #: The integral of the root of density times survival: polls a job times the step between them.
        self.spread = float(np.sum(parts * (alive[:-1] + alive[1:]) / 2))
        #: The mean, in seconds.
        self.typical = max(float(np.sum((alive[:-1] - alive[1:]) * MIDDLES)), FIRST)
        #: Before this age, one job in twenty has ended.
        self.first_likely = EDGES[int(np.sum(alive > 0.95)) - 1]

    def _count(self) -> None:
        self.seen += 1
        self._observed += 1
        if self.seen < 10:
            self._refresh_at = self._observed
        self._weight += 1
        if self._weight > MEMORY:
            self._count_stretches()
            self._weight /= 2
            self._ran /= 2
            self._ended /= 2

    def _count_stretches(self) -> None:
        if self._stretches:
            since, until = np.array(self._stretches).T
            self._ran += _passed(until) - _passed(since)
            self._stretches.clear()

    def _density_at(self, age: float) -> float:
        number = _bin(age)
        share = min(1.0, (age - EDGES[number]) / float(WIDTHS[number]))
        return self._density[number] + share * (self._density[number + 1] - self._density[number])

    def _age_at(self, density: float) -> float:
        number = min(bisect_right(self._density, density), BINS) - 1
        rise = self._density[number + 1] - self._density[number]
        share = (density - self._density[number]) / rise if rise > 0 else 1.0
        return EDGES[number] + min(share, 1.0) * float(WIDTHS[number])


def _bin(age: float) -> int:
    return min(bisect_right(EDGES, age), BINS) - 1


def _passed(ages: Bins) -> Bins:
    """The seconds that jobs of these ages have spent in each bin."""
    ages = np.minimum(ages, EDGES[-1])
    bins = np.minimum(np.searchsorted(EDGES, ages, side="right"), BINS) - 1
    here = np.bincount(bins, minlength=BINS)
    beyond = np.cumsum(here[::-1])[::-1] - here
    return np.asarray(beyond * WIDTHS + np.bincount(bins, ages - np.take(EDGES, bins), minlength=BINS))


def _parts(since: float, until: float) -> tuple[int, int, Bins]:
    """The bins that an interval covers, the first and the one after the last, with the seconds in each."""
    first, last = _bin(since), _bin(until) + 1
    lengths = WIDTHS[first:last].copy()
    lengths[0] -= min(since, EDGES[-1]) - EDGES[first]
    lengths[-1] -= max(EDGES[last] - until, 0.0)
    return first, last, np.maximum(lengths, 1e-6)


def _place_end(
    first: int, last: int, lengths: Bins, hazards: Bins, times: int, ended: Bins, ran: Bins
) -> None:
    shares = lengths * hazards[first:last] + 1e-12
    shares = shares / shares.sum()
    ended[first:last] += times * shares
    ran[first:last] += times * lengths * np.maximum(0.0, 1.0 - np.cumsum(shares) + shares / 2)


# The lognormals. Along the axes: spread, median (an edge each), age (an edge each).


@cache
def _dooms() -> NDArray[np.float64]:
    """Minus the logarithm of the share alive, for each spread, median and age."""
    rows = []
    steps = np.arange(BINS)
    for sigma in SPREADS:
        by_distance = np.array([_doom(number * log(RATIO) / sigma) for number in range(-BINS, BINS)])
        rows.append(by_distance[steps[None, :] - steps[:, None] + BINS])
    dooms = np.concatenate(rows)
    return np.concatenate([np.zeros((len(dooms), 1)), dooms], axis=1)


def _doom(z: float) -> float:
    """Minus the logarithm of the chance that a standard normal is above `z`."""
    if z < 6.0:
        return -log(0.5 * erfc(z / sqrt(2)))
    return z * z / 2 + log(z * sqrt(2 * pi))


@cache
def _log_prior() -> Bins:
    """Of each lognormal: every median alike, by its logarithm."""
    spreads = np.log(np.array(SPREADS) / LIKELIEST_SPREAD) / SPREAD_OF_SPREADS
    return np.repeat(-0.5 * spreads**2, BINS)


def _weights(logarithms: Bins) -> Bins:
    weights = np.exp(logarithms - logarithms.max())
    return np.asarray(weights / weights.sum())


@cache
def _expected_at_first() -> Bins:
    return _expected(_weights(_log_prior()))


def _posterior(running: Bins, sights: Counter[tuple[int, int]]) -> Bins:
    """How likely each lognormal is, given the jobs that ran through each bin and the ends that were seen."""
    dooms = _dooms()
    # Jobs that ran through a bin survived it.
    through = np.concatenate([[0.0], running]) - np.concatenate([running, [0.0]])
    likely = _log_prior() - _weighed(dooms, through)
    for (first, last), times in sights.items():
        likely += times * np.log(np.maximum(-np.expm1(dooms[:, first] - dooms[:, last]), 1e-300))
    return _weights(likely)


def _expected(weights: Bins) -> Bins:
    """The share alive at each edge, over all lognormals that are at all likely."""
    likely = weights > 1e-5
    return _weighed(np.exp(-_dooms()[likely]).T, weights[likely])


def _weighed(table: NDArray[np.float64], weights: Bins) -> Bins:
    """The product of a table and a vector, not by BLAS: its idle threads spin, and burn more than it saves."""
    return np.asarray(np.einsum("ij,j->i", table, weights))


def _middle(alive: Bins) -> Bins:
    return (alive[:-1] + alive[1:]) / 2


def _hazard(alive: Bins) -> Bins:
    floor = np.maximum(alive, 1e-300)
    return -np.diff(np.log(floor)) / WIDTHS
