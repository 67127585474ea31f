"""How long jobs of one kind took of late, and when one that still runs is likely to have ended."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import deque


class Durations:
    """The percentiles of the last durations that are known, in seconds."""

    MEMORY = 300

    def __init__(self) -> None:
        self._recent = deque[float]()
        self._sorted: list[float] = []
        #: Jobs seen to end.
        self.seen = 0
        self._noted_at = 0

    def ended(self, since: float, until: float) -> None:
        """A job ended between these ages."""
        self.seen += 1
        self._recent.append((since + until) / 2)
        insort(self._sorted, self._recent[-1])
        if len(self._recent) > self.MEMORY:
            del self._sorted[bisect_right(self._sorted, self._recent.popleft()) - 1]

    def is_news(self) -> bool:
        """Whether so many were seen since this was last asked for that it makes a difference."""
        if self.seen < 1.2 * self._noted_at + (self._noted_at < self.MEMORY):
            return False
        self._noted_at = self.seen
        return True

    @property
    def typical(self) -> float:
        return self._percentile(0.5)

    @property
    def first_likely(self) -> float:
        """The age before which few jobs end."""
        return self._percentile(0.05)

    def next_age(self, age: float, share: float) -> float:
        """The age by which this share of all jobs ends after `age`, but at most a third of those that still run then.

        Beyond the longest known duration the gaps grow with the distance from the shortest.
        """
        known, ended = len(self._sorted), bisect_right(self._sorted, age)
        if ended < known:
            return self._sorted[int(ended + min(share * known, (known - ended) / 3))]
        return age + 0.3 * share * (age - self._sorted[0]) + 0.01 * age

    def _percentile(self, share: float) -> float:
        return self._sorted[int(share * len(self._sorted))]
