"""What goes wrong at the double: the weather of its exchanges, spells of time, and dialects for repeated requests."""

import random
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

#: Faults of one exchange: the request is not executed; it is, and its answer is lost or spoiled; it takes its time.
UNEXECUTED = ("unreachable", "reset", "failed", "limited", "busy")
SPOILED = ("lost", "failed_after", "html", "half", "nameless", "error_in_200", "no_content")
DELAYED = ("late", "slow", "twice")
FAULTS = (*UNEXECUTED, *SPOILED, *DELAYED)
#: After these a request may be sent again as if nothing had been: none of them is a reason to hold it.
HARMLESS = frozenset({"", *UNEXECUTED, *DELAYED, "lost", "failed_after", "gateway", "asked_to_wait", "away"})

#: What is answered for a while in place of the service, and the status.
STATUSES = {
    "gateway": 502, "asked_to_wait": 503, "unauthorized": 401, "unpaid": 402, "firewall": 403, "misplaced": 404,
    "moved": 302,
}  # fmt: skip
#: `no_more`: creates are refused, and why does not say which row is wrong; `jobs_fail`: jobs that are begun do fail;
#: `read_failed`: every job reads failed meanwhile, and has not.
SPELLS = (*STATUSES, "away", "no_more", "jobs_fail", "read_failed")

#: How a service answers a request ID that it knows, when it does not say which job it has: status and body.
WORDS: Mapping[str, tuple[int, Any]] = {
    "409 bare": (409, None),
    "422 reuse": (
        422,
        {"error": {"code": "idempotency_key_reuse", "message": "Keys can only be used once."}},
    ),
    "400 duplicate": (400, {"error": "Duplicate request"}),
    "422 processed": (422, {"message": "This operation has already been processed."}),
    "400 code": (400, {"errors": [{"code": "DUPLICATE_ORDER", "detail": "order exists"}]}),
    "412 used": (412, {"error": {"message": "requestId was used before"}}),
    "200 error": (200, {"success": False, "error": {"message": "duplicate requestId"}}),
    "422 taken": (422, {"detail": [{"loc": ["body", "requestId"], "msg": "has already been taken"}]}),
    "422 exists": (422, {"error": {"field": "prompt", "message": "A pattern for this prompt exists."}}),
    "422 unknown": (422, {"error": {"code": "E-1138", "message": "Nope."}}),
}
#: Those that answer with the job, in their way; `forgets` does so for some hours only.
JOBS = (
    "same job", "stored answer", "another job", "in progress", "failed as a duplicate", "looks up", "forgets",
)  # fmt: skip
DIALECTS = (*JOBS, *WORDS)
#: How long `forgets` knows a request ID; the program must not send one again after 12 hours.
REMEMBERED = 13 * 3600.0
ODD_ENDS = ("failed_with_result", "without_result", "of_another_kind", "shapeless")


@dataclass(frozen=True)
class Spell:
    """One of SPELLS with its beginning and end, as times of the double, and the share of names that it meets."""

    kind: str
    begins: float
    ends: float
    share: float = 1.0


@dataclass(frozen=True)
class Weather:
    """Shares of exchanges, requests or jobs; times in seconds; `rate` in creates a second."""

    dialect: str = "same job"
    #: The share of each of FAULTS.
    faults: Mapping[str, float] = field(default_factory=dict)
    spells: tuple[Spell, ...] = ()
    latency: float = 0.05
    #: After how long a client gives up on an exchange: `late` answers come later, `slow` ones before.
    timeout: float = 30.0
    rate: float | None = None
    pattern_time: float = 75.0
    product_time: float = 30.0
    spread: float = 0.35
    jobs_fail: float = 0.0
    jobs_stuck: float = 0.0
    #: The share of the jobs whose end is one of ODD_ENDS.
    jobs_odd: float = 0.0
    #: Polls: of a young job that is unknown, with a strange word as status, with the answer of another job.
    unknown: float = 0.0
    pondering: float = 0.0
    crossed: float = 0.0
    #: Whether answers repeat what was sent.
    echoes: bool = False


def mixed_weather(chance: random.Random, dialect: str, now: float, spared: Collection[str] = ()) -> Weather:
    """Return weather with all kinds of faults at once, some of them often, and spells soon after `now`.

    `spared`: spells that are not among them.
    """
    drawn = [_spell(chance, now) for _ in range(chance.choice([0, 1, 2, 3]))]
    share = chance.choice([0.01, 0.05, 0.12, 0.3])
    weights = {fault: chance.expovariate(1.0) for fault in FAULTS}
    if (
        dialect == "looks up"
    ):  # copies of one request that meet at it are two jobs, and no client could help it
        weights |= {"late": 0.0, "twice": 0.0}
    if dialect == "forgets":  # what is in doubt for long is what it is there for
        share, weights["lost"] = 0.3, 6.0
    return Weather(
        dialect=dialect,
        faults={fault: share * weight / sum(weights.values()) for fault, weight in weights.items()},
        spells=tuple({spell.kind: spell for spell in drawn if spell.kind not in spared}.values()),
        latency=chance.choice([0.001, 0.05, 0.4]),
        rate=chance.choice([None, None, 3.0, 10.0]),
        pattern_time=chance.choice([5.0, 20.0, 75.0]),
        product_time=chance.choice([2.0, 10.0, 30.0]),
        spread=chance.choice([0.05, 0.35, 0.7]),
        jobs_fail=chance.choice([0.0, 0.05, 0.2]),
        jobs_stuck=chance.choice([0.0, 0.0, 0.04]),
        jobs_odd=chance.choice([0.0, 0.0, 0.03]),
        unknown=chance.choice([0.0, 0.3]),
        pondering=chance.choice([0.0, 0.02]),
        crossed=chance.choice([0.0, 0.0, 0.02]),
        echoes=chance.random() < 0.5,
    )


def _spell(chance: random.Random, now: float) -> Spell:
    begins, kind = now + chance.choice([0.0, chance.uniform(0, 300)]), chance.choice(SPELLS)
    # For a minute at most: what a service says to two runs, one after the other, is true.
    lasts = chance.choice([8.0, 60.0] if kind == "read_failed" else [8.0, 60.0, 300.0, 1500.0])
    every = kind in ("away", "jobs_fail", "read_failed", "no_more")
    return Spell(kind, begins, begins + lasts, 1.0 if every else chance.choice([0.05, 0.3, 1.0]))
