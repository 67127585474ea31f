"""What goes wrong in a simulation: drawn from its seed, or set."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field

#: What can happen to one exchange.
FAULTS = (
    "refused",
    "reset_before",
    "reset_after",
    "late",
    "slow",
    "twice",
    "failed_unexecuted",
    "failed_executed",
    "limited",
    "unreadable",
    "nameless",
)
#: What else can happen, counted as it does.
HAPPENINGS = (
    "over_the_limit",
    "outage",
    "job_failed",
    "job_refused",
    "job_stuck",
    "job_unknown",
    "status_unknown",
    "sent_elsewhere",
    "account_limit",
    "refused_as_known",
    "looked_up",
    "row_refused",
    "polls_mixed",
    "renamed",
    "named_in_refusal",
    "without_result",
    "of_another_kind",
    "failed_with_result",
    "settled",
)
#: What is answered for a while, instead of the service or by it, to all requests or to some.
SPELLS = (
    *("tls", "no_name", "unconnected", "item_failed", "asked_to_wait", "proxy_page"),
    *("status_401", "status_402", "status_403", "status_407", "status_404", "status_405"),
    *("redirect_302", "redirect_303", "redirect_307"),
)
#: The size of which no product is made.
NOT_MADE = "xl"
#: A failed job's reason that is final.
FINAL = "content refused"


@dataclass(frozen=True)
class Spell:
    """One of SPELLS, with its beginning and end, and the share of requests and jobs that it meets."""

    kind: str
    begins: float
    ends: float
    share: float


@dataclass(frozen=True)
class Weather:
    """Shares of all exchanges or jobs; times in seconds; rates a second, None without limit."""

    faults: Mapping[str, float] = field(default_factory=dict)
    latency: float = 0.05
    create_rate: float | None = None
    poll_rate: float | None = None
    jobs_fail: float = 0.0
    jobs_refused: float = 0.0
    jobs_stuck: float = 0.0
    jobs_unknown: float = 0.0
    status_unknown: float = 0.0
    #: The times from and to which nothing is answered well.
    outages: tuple[tuple[float, float], ...] = ()
    #: The times from and to which the account may have no more products; this is refused like a faulty row.
    limits: tuple[tuple[float, float], ...] = ()
    spells: tuple[Spell, ...] = ()
    #: Polls that are answered with another job.
    polls_mixed: float = 0.0
    #: Repeated creates that are answered with another name of their job.
    renamed: float = 0.0
    #: Refusals of a known request ID that name its job all the same.
    named_in_refusals: float = 0.0
    #: Jobs of which the result is never named, is of another kind, or is named though they failed.
    jobs_odd: float = 0.0
    #: How it refuses a request ID that it has; None: it answers with the job.
    dialect: str | None = None
    #: Requests that another machine has sent before.
    sent_elsewhere: float = 0.0
    #: It finds a job by its request ID.
    looks_up: bool = False
    pattern_time: float = 75.0
    product_time: float = 30.0
    spread: float = 0.35


def mixed(chance: random.Random) -> Weather:
    """Return weather with all kinds of faults at once, some of them often."""
    share = chance.choice([0.01, 0.05, 0.12, 0.3])
    weights = {fault: chance.expovariate(1.0) for fault in FAULTS}
    total = sum(weights.values())
    outages = []
    if chance.random() < 0.5:
        begins = chance.uniform(0, 300)
        outages.append((begins, begins + chance.choice([5.0, 40.0, 200.0, 900.0])))
    return Weather(
        faults={fault: share * weight / total for fault, weight in weights.items()},
        latency=chance.choice([0.001, 0.05, 0.4]),
        create_rate=chance.choice([None, 3.0, 10.0]),
        poll_rate=chance.choice([None, 5.0, 20.0]),
        jobs_fail=chance.choice([0.0, 0.05, 0.2]),
        jobs_refused=chance.choice([0.0, 0.02]),
        jobs_stuck=chance.choice([0.0, 0.0, 0.04]),
        jobs_unknown=chance.choice([0.0, 0.3]),
        status_unknown=chance.choice([0.0, 0.02]),
        outages=tuple(outages),
        sent_elsewhere=chance.choice([0.0, 0.05, 0.2]),
        looks_up=chance.random() < 0.4,
        pattern_time=chance.choice([2.0, 20.0, 75.0]),
        product_time=chance.choice([1.0, 10.0, 30.0]),
        spread=chance.choice([0.05, 0.35, 0.7]),
        limits=_limits(chance),
        spells=tuple(_spell(chance) for _ in range(chance.choice([0, 1, 1, 2]))),
        polls_mixed=chance.choice([0.0, 0.0, 0.01]),
        renamed=chance.choice([0.1, 0.7]),
        named_in_refusals=chance.choice([0.0, 0.6]),
        jobs_odd=chance.choice([0.0, 0.03]),
    )


def _spell(chance: random.Random) -> Spell:
    begins, lasts = chance.choice([0.0, chance.uniform(0, 200)]), chance.choice([8.0, 60.0, 300.0, 1500.0])
    return Spell(chance.choice(SPELLS), begins, begins + lasts, chance.choice([0.04, 0.2, 1.0]))


def _limits(chance: random.Random) -> tuple[tuple[float, float], ...]:
    begins = chance.uniform(0, 120)
    return ((begins, begins + chance.choice([10.0, 60.0, 400.0])),) if chance.random() < 0.8 else ()
