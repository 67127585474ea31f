"""The duration of jobs: a spread that is the same for the same request, whenever it is asked."""

from __future__ import annotations

import hashlib
from datetime import timedelta
from enum import StrEnum


class Pace(StrEnum):
    """The pace of jobs."""

    #: Jobs are done as soon as they are accepted.
    INSTANT = "instant"
    #: Jobs take about a second: for trying things out.
    QUICK = "quick"
    #: A pattern takes one to two minutes, as the interface says.
    REALISTIC = "realistic"


#: The shortest and the longest job in seconds, by pace and kind.
BOUNDS = {
    (Pace.INSTANT, "pattern"): (0.0, 0.0),
    (Pace.INSTANT, "product"): (0.0, 0.0),
    (Pace.QUICK, "pattern"): (0.3, 1.5),
    (Pace.QUICK, "product"): (0.2, 0.6),
    (Pace.REALISTIC, "pattern"): (60.0, 120.0),
    (Pace.REALISTIC, "product"): (5.0, 20.0),
}
#: The time from payment until an order goes into production, is shipped, and is delivered.
ORDER_STEPS = {
    Pace.INSTANT: (timedelta(), timedelta(), timedelta()),
    Pace.QUICK: (timedelta(seconds=5), timedelta(seconds=10), timedelta(seconds=15)),
    Pace.REALISTIC: (timedelta(hours=2), timedelta(days=2), timedelta(days=5)),
}


def duration(pace: Pace, kind: str, request_id: str) -> timedelta:
    """Return how long the job of this request takes, in seconds."""
    shortest, longest = BOUNDS[pace, kind]
    digest = hashlib.sha256(f"{kind}\n{request_id}".encode()).digest()
    return timedelta(seconds=shortest + (longest - shortest) * int.from_bytes(digest[:6]) / 2**48)
