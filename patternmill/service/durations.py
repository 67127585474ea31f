"""How long jobs take, learned from polls: the chance that a running job ends now, by its age."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from itertools import pairwise
from math import erfc, exp, log, pi, sqrt

#: Ages in seconds that bound the bins: each a twentieth longer than the last, from 20 ms to some four hours.
FIRST, RATIO, BINS = 0.02, 1.05, 278
EDGES = [0.0, *(FIRST * RATIO**number for number in range(BINS))]
WIDTHS = [upper - lower for lower, upper in pairwise(EDGES)]
MIDDLES = [(upper + lower) / 2 for lower, upper in pairwise(EDGES)]
#: Belief before anything is seen, in jobs: each age is as likely as each tenfold of it.
VAGUE_JOBS, VAGUE_CHANCE = 0.1, 0.7
#: Belief that jobs are spread like a lognormal, in jobs, once some have ended.
SHAPED_JOBS = 6.0
SHAPED_UNTIL = 300
#: Medians that are tried, as steps of the logarithm from the mean of the ends, which come early at first.
SHIFTS = (-0.5, -0.25, -0.1, 0.0, 0.1, 0.25, 0.5, 1.0)
#: Spreads (sigma of the logarithm) that are tried; the likeliest beforehand is a third.
SPREADS = (0.03, 0.06, 0.1, 0.15, 0.22, 0.32, 0.5, 0.8, 1.2)
#: More jobs than this, and the older half of the memory fades: a service changes.
MEMORY = 1000.0


class Durations:
    """An empirical hazard in bins of age, fed with intervals in which jobs ran or ended.

    Jobs that still run count as well as those that ended, so that quick ones, which end first, are not
    taken for all. While few have ended, a fitted lognormal says what the bins without a sight are like.
    """

    def __init__(self) -> None:
        self._ran = [0.0] * len(WIDTHS)
        self._ended = [0.0] * len(WIDTHS)
        #: The first ends as they were seen: the bins that an end lies between, to be judged anew with each fit.
        self._sights: Counter[tuple[int, int]] = Counter()
        self._fit: tuple[float, float] | None = None
        self.seen = 0
        self._weight = 0.0
        self._density: list[float] = []
        #: The integral of the root of density times survival: polls a job times the step between them.
        self.spread = 1.0
        #: The mean, in seconds.
        self.typical = 60.0
        #: Before this age, one job in twenty has ended.
        self.first_likely = 0.0
        self._hazards = self._chances = _vague()
        self._sum_up()

    def ran(self, since: float, until: float) -> None:
        """A job was running from age `since` to age `until`."""
        for number, length in _parts(since, until):
            self._ran[number] += length

    def ended(self, since: float, until: float) -> None:
        """A job ended between these ages; which moment is likely follows from what is known so far."""
        until = max(until, since + 1e-6)
        if self.seen < SHAPED_UNTIL:
            self._sights[_bin(since), _bin(until) + 1] += 1
        else:
            _place_end(_parts(since, until), self._chances, 1, self._ended, self._ran)
        self._count()

    def next_age(self, age: float, step: float) -> float:
        """The age at which to ask next: where the root of the hazard, summed from `age`, reaches `step`.

        Where the hazard hardly changes this is the gap sqrt(2c / hazard); where it is nothing, it looks ahead.
        """
        return self._age_at(self._density_at(age) + step)

    def refresh(self) -> None:
        """Work out what `next_age` reads. Some milliseconds: not for every poll."""
        if self._sights:
            self._fit = _fitted(self._sights, self._ran)
        ended, ran = self._ended, self._ran
        shape = _lognormal(*self._fit) if self._fit else [0.0] * len(WIDTHS)
        if self._sights:
            ended, ran = _placed(self._sights, shape, ended, ran)
            if self.seen >= SHAPED_UNTIL:
                self._ended, self._ran = ended, ran
                self._sights.clear()
        self._believe(ended, ran, _with_survival(shape) if self._fit else [(0.0, 0.0)] * len(WIDTHS))
        self._sum_up()

    def _believe(self, ended: list[float], ran: list[float], shape: list[tuple[float, float]]) -> None:
        """Weigh what was seen against the fitted shape, and against a vague belief that anything can be.

        Only the first two say when an end probably was: the third would see ends where nobody was looking.
        """
        chances, hazards = [], []
        for width, end, run, (alive, hazard), vague in zip(WIDTHS, ended, ran, shape, _vague(), strict=True):
            known = run + SHAPED_JOBS * alive * width
            chance = (end + SHAPED_JOBS * alive * hazard * width + 1e-9) / (known + 1e-6)
            chances.append(chance)
            hazards.append((chance * known + VAGUE_JOBS * vague * width) / (known + VAGUE_JOBS * width))
        self._chances, self._hazards = chances, hazards

    def _sum_up(self) -> None:
        density, alive, spread, mean, total = [0.0], 1.0, 0.0, 0.0, 0.0
        self.first_likely = 0.0
        for hazard, width, middle, upper in zip(self._hazards, WIDTHS, MIDDLES, EDGES[1:], strict=True):
            part = sqrt(hazard) * width
            total += part
            density.append(total)
            dies = 1.0 - exp(-hazard * width)
            spread += part * alive * (1 - dies / 2)
            mean += alive * dies * middle
            alive *= 1 - dies
            if alive > 0.95:
                self.first_likely = upper
        self._density, self.spread, self.typical = density, spread, max(mean, FIRST)

    def _count(self) -> None:
        self.seen += 1
        self._weight += 1
        if self._weight > MEMORY:
            self._weight /= 2
            self._ran = [value / 2 for value in self._ran]
            self._ended = [value / 2 for value in self._ended]

    def _density_at(self, age: float) -> float:
        number = _bin(age)
        share = min(1.0, (age - EDGES[number]) / WIDTHS[number])
        return self._density[number] + share * (self._density[number + 1] - self._density[number])

    def _age_at(self, density: float) -> float:
        number = min(bisect_right(self._density, density), len(WIDTHS)) - 1
        rise = self._density[number + 1] - self._density[number]
        share = (density - self._density[number]) / rise if rise > 0 else 1.0
        return EDGES[number] + min(share, 1.0) * WIDTHS[number]


def _bin(age: float) -> int:
    return min(bisect_right(EDGES, age), len(WIDTHS)) - 1


def _parts(since: float, until: float) -> list[tuple[int, float]]:
    """The bins that an interval covers, with the seconds in each."""
    parts = []
    for number in range(_bin(since), _bin(until) + 1):
        length = min(until, EDGES[number + 1]) - max(since, EDGES[number])
        if length > 0:
            parts.append((number, length))
    return parts or [(_bin(since), 1e-6)]


def _vague() -> list[float]:
    return [VAGUE_CHANCE / max(middle, FIRST) for middle in MIDDLES]


def _lognormal(typical: float, sigma: float) -> list[float]:
    """The hazard of a lognormal in each bin: the fall of the logarithm of its survival, per second."""
    fall = [0.0, *(_doom(log(edge / typical) / sigma) for edge in EDGES[1:])]
    return [(after - before) / width for (before, after), width in zip(pairwise(fall), WIDTHS, strict=True)]


def _doom(z: float) -> float:
    """Minus the logarithm of the chance that a standard normal is above `z`."""
    if z < 6.0:
        return -log(0.5 * erfc(z / sqrt(2)))
    return z * z / 2 + log(z * sqrt(2 * pi))


def _with_survival(hazards: list[float]) -> list[tuple[float, float]]:
    """Each bin's hazard, with the share of jobs alive at its middle."""
    alive, pairs = 1.0, []
    for hazard, width in zip(hazards, WIDTHS, strict=True):
        after = alive * exp(-min(hazard * width, 700.0))
        pairs.append(((alive + after) / 2, hazard))
        alive = after
    return pairs


def _placed(
    sights: Counter[tuple[int, int]], hazards: list[float], ended: list[float], ran: list[float]
) -> tuple[list[float], list[float]]:
    """What was seen, with each end shared out among the bins in which it may have been."""
    ended, ran = list(ended), list(ran)
    for (first, last), times in sights.items():
        parts = [(number, WIDTHS[number]) for number in range(first, min(last, len(WIDTHS)))]
        _place_end(parts, hazards, times, ended, ran)
    return ended, ran


def _place_end(
    parts: list[tuple[int, float]], hazards: list[float], times: int, ended: list[float], ran: list[float]
) -> None:
    chances = [length * hazards[number] + 1e-12 for number, length in parts]
    total, left = sum(chances), 1.0
    for (number, length), chance in zip(parts, chances, strict=True):
        share = chance / total
        ended[number] += times * share
        ran[number] += times * length * max(0.0, left - share / 2)
        left -= share


def _fitted(sights: Counter[tuple[int, int]], ran: list[float]) -> tuple[float, float]:
    """The likeliest median and spread for what was seen, those still running counted in."""
    running = [(number, run / WIDTHS[number]) for number, run in enumerate(ran) if run > 0]
    total = sum(sights.values())
    middles = (
        times * log((EDGES[first] + EDGES[min(last, BINS)]) / 2) for (first, last), times in sights.items()
    )
    centre = exp(sum(middles) / total)
    edges = sorted(
        {*(bound for sight in sights for bound in sight), *(n + d for n, _ in running for d in (0, 1))}
    )
    tried = [(centre * exp(shift * max(sigma, 0.1)), sigma) for sigma in SPREADS for shift in SHIFTS]
    return max(tried, key=lambda one: _likelihood(one, edges, sights, running))


def _likelihood(
    one: tuple[float, float],
    edges: list[int],
    sights: Counter[tuple[int, int]],
    running: list[tuple[int, float]],
) -> float:
    """The logarithm of the chance to see this, and of how likely such a spread is beforehand."""
    typical, sigma = one
    fall = {edge: _doom(log(max(EDGES[edge], FIRST / 10) / typical) / sigma) for edge in edges}
    value = -0.5 * (log(sigma / 0.33) / 0.8) ** 2
    for number, jobs in running:
        value -= jobs * (fall[number + 1] - fall[number])
    for (first, last), times in sights.items():
        value += times * log(max(1.0 - exp(-(fall[last] - fall[first])), 1e-300))
    return value
