"""How long a job takes: a spread that is the same for the same request, whenever it is asked."""

from __future__ import annotations

import hashlib
from datetime import timedelta
from enum import StrEnum
from statistics import NormalDist


class Pace(StrEnum):
    """How patient one has to be."""

    #: Done as soon as it is accepted.
    INSTANT = "instant"
    #: A second or so: for trying things out.
    QUICK = "quick"
    #: One to two minutes a pattern, as the interface says.
    REALISTIC = "realistic"


#: Shortest and longest job in seconds, by pace and kind.
BOUNDS: dict[tuple[Pace, str], tuple[float, float]] = {
    (Pace.INSTANT, "pattern"): (0.0, 0.0),
    (Pace.INSTANT, "product"): (0.0, 0.0),
    (Pace.QUICK, "pattern"): (0.3, 1.5),
    (Pace.QUICK, "product"): (0.2, 0.6),
    (Pace.REALISTIC, "pattern"): (60.0, 120.0),
    (Pace.REALISTIC, "product"): (5.0, 20.0),
}
#: How long after its payment an order goes into production, is shipped, and is delivered.
ORDER_STEPS: dict[Pace, tuple[timedelta, timedelta, timedelta]] = {
    Pace.INSTANT: (timedelta(), timedelta(), timedelta()),
    Pace.QUICK: (timedelta(seconds=5), timedelta(seconds=10), timedelta(seconds=15)),
    Pace.REALISTIC: (timedelta(hours=2), timedelta(days=2), timedelta(days=5)),
}
#: Sigma of the lognormal spread of `realistic`; its median is the geometric middle of the bounds.
SIGMA = 0.2


def duration(pace: Pace, kind: str, request_id: str) -> timedelta:
    """How long the job of this request takes."""
    shortest, longest = BOUNDS[pace, kind]
    share = _share(kind, request_id)
    if pace is Pace.REALISTIC:
        factor = 2.718281828 ** (SIGMA * NormalDist().inv_cdf(share))
        middle = (shortest * longest) ** 0.5
        return timedelta(seconds=min(longest, max(shortest, middle * factor)))
    return timedelta(seconds=shortest + (longest - shortest) * share)


def _share(kind: str, request_id: str) -> float:
    """A number strictly between 0 and 1 that looks random and is not."""
    digest = hashlib.sha256(f"{kind}\n{request_id}".encode()).digest()
    return (int.from_bytes(digest[:6]) + 0.5) / 2**48
