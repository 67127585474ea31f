"""Limits on how often operations may be asked and how many jobs may run, by account; none unless they are set."""

from __future__ import annotations

import heapq
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from studio.errors import too_many

PERIODS = {"s": 1.0, "m": 60.0, "h": 3600.0}
LIMIT = re.compile(
    r"(?P<name>[a-z/]+)=(?P<count>[1-9]\d{0,8})(?:/(?P<period>[smh]))?(?P<undeclared>,undeclared)?"
)
#: Operations that a limit may name together.
GROUPS = {
    "creates": re.compile(r"(patterns|products|checkouts|references)/create|refine/.*"),
    "polls": re.compile(r"jobs/get"),
    "all": re.compile(r".*"),
}


@dataclass(frozen=True)
class Limit:
    """So many requests in `period` seconds or, without a period, so many jobs that run at once.

    A declared limit says when to come again; an undeclared one leaves it to the caller.
    """

    name: str
    count: int
    period: float | None
    declared: bool = True

    def holds_for(self, operation: str) -> bool:
        return stands_for(self.name, operation)


def stands_for(name: str, operation: str) -> bool:
    """Whether it is the operation's own name, or that of a group which has it."""
    group = GROUPS.get(name)
    return operation == name if group is None else group.fullmatch(operation) is not None


def read_limit(text: str) -> Limit:
    """`creates=10/s`, `jobs/get=600/m,undeclared`, `creates=4` (at once). Raises ValueError."""
    found = LIMIT.fullmatch(text)
    if found is None:
        raise ValueError(
            f"{text!r} is no limit: write NAME=COUNT/s, /m or /h, or NAME=COUNT for jobs at once"
        )
    period = None if found["period"] is None else PERIODS[found["period"]]
    return Limit(found["name"], int(found["count"]), period, declared=found["undeclared"] is None)


class Limits:
    """The limits of a studio, and what was used of them since it started."""

    def __init__(self, limits: Sequence[Limit] = (), running: Iterable[tuple[str, datetime]] = ()) -> None:
        self.change(limits, running)

    def change(self, limits: Sequence[Limit], running: Iterable[tuple[str, datetime]]) -> None:
        """From now on these hold, and nothing but the running jobs is used of them."""
        self._limits = tuple(limits)
        #: When the next request would be due if all were evenly spread, by limit and account.
        self._due: dict[tuple[Limit, str], datetime] = {}
        self._ends: dict[str, list[datetime]] = {}
        for account, end in running:
            self.job_started(account, end)

    def admit_request(self, operation: str, account: str, now: datetime) -> None:
        """Raises Refusal (429) when a rate is used up."""
        for limit in self._limits:
            if limit.period is not None and limit.holds_for(operation):
                self._take(limit, limit.period, account, now)

    def admit_job(self, operation: str, account: str, now: datetime) -> None:
        """Raises Refusal (429) when too many jobs are running."""
        for limit in self._limits:
            if limit.period is None and limit.holds_for(operation):
                self._check_running(limit, account, now)

    def job_started(self, account: str, end: datetime) -> None:
        heapq.heappush(self._ends.setdefault(account, []), end)

    def _take(self, limit: Limit, period: float, account: str, now: datetime) -> None:
        gap = timedelta(seconds=period / limit.count)
        due = max(self._due.get((limit, account), now), now)
        early = due + gap - now - timedelta(seconds=period)
        if early > timedelta():
            message = f"More than {limit.count} requests in {period:g} s."
            raise too_many("rate_limited", message, _seconds(limit, early))
        self._due[limit, account] = due + gap

    def _check_running(self, limit: Limit, account: str, now: datetime) -> None:
        ends = self._ends.get(account, [])
        while ends and ends[0] <= now:
            heapq.heappop(ends)
        if len(ends) >= limit.count:
            message = f"{len(ends)} jobs are running; {limit.count} may run at once."
            raise too_many("too_many_jobs", message, _seconds(limit, ends[0] - now))


def _seconds(limit: Limit, wait: timedelta) -> int | None:
    return max(1, math.ceil(wait.total_seconds())) if limit.declared else None
