"""What the hostile service is to do wrong, and how long its jobs take: the plan of one test, as values."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

#: Their shapes are this service's own: uploads are jobs too, and their kinds are the operations' names.
REFINE = ("refine/recolor", "refine/edit")
UPLOAD = "references/create"
CREATES = ("patterns/create", "products/create")
STARTS_JOB = (*CREATES, *REFINE, UPLOAD)
OPERATIONS = (*STARTS_JOB, "jobs/get", "categories/list", "categories/get")

#: Faults that decide what becomes of a job; the create itself is answered as it should be.
FATES = frozenset({"job_fails"})
#: Faults of one exchange.
WIRE_FAULTS = frozenset(
    {
        "reset_before",  # reset, nothing executed
        "answer_lost",  # executed, then reset (params how="reset") or closed (how="close") without an answer
        "late",  # executed, answered after params delay
        "status",  # params code, retry_after, body, execute
        "redirect",  # params code, query; to the second listener
        "no_content",
        "half_json",
        "body",  # params text, content_type, code
        "edit",  # params remove=[...], set={...} on the correct answer
        "forget",  # a known requestId treated as new: a second job
    }
)
#: Faults under which nothing is executed, unless params have execute=True.
NOT_EXECUTED = frozenset({"reset_before", "status", "redirect"})


@dataclass(frozen=True)
class Rule:
    """One fault, and the requests that it falls on. All of its conditions must hold."""

    operation: str
    fault: str
    params: Mapping[str, Any] = field(default_factory=dict)
    #: Part of the fitting requests, drawn from the plan's seed, the request's identity and its ordinal.
    share: float = 1.0
    #: Only these of the fitting requests, counted from 1 since the process began.
    nth: tuple[int, ...] = ()
    #: Text found in what the request is about: prompt, category, selections.
    matching: str = ""
    #: The most times that it falls on one identity.
    each: int | None = None
    #: Creates: only of a requestId known already (True), or not (False).
    repeat: bool | None = None

    def __post_init__(self) -> None:
        if self.fault not in WIRE_FAULTS | FATES:
            raise ValueError(f"{self.operation}: no such fault: {self.fault}")
        if self.operation not in {"*", *OPERATIONS}:
            raise ValueError(f"no such operation: {self.operation}")
        if self.fault in FATES and self.operation not in STARTS_JOB:
            raise ValueError(f"{self.fault} needs a create, not {self.operation}")
        if self.fault == "forget" and self.repeat is not True:
            raise ValueError("only a known requestId can be forgotten: repeat=True")

    @property
    def by_content(self) -> bool:
        """Return whether it is counted by content, as what becomes of jobs is, and not by requestId or jobId."""
        return self.fault in FATES


@dataclass(frozen=True)
class Times:
    """How long jobs of one kind run, in seconds; each job's own time is drawn from the seed and its content."""

    kind: Literal["constant", "uniform", "lognormal"] = "constant"
    median: float = 0.0
    sigma: float = 0.0
    low: float = 0.0
    high: float = 0.0

    def draw(self, seed: str) -> float:
        chance = random.Random(seed)
        if self.kind == "uniform":
            return chance.uniform(self.low, self.high)
        return self.median * math.exp(chance.gauss(0, self.sigma)) if self.sigma else self.median


CATALOG: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "Cushion": {"fabric": ("cotton", "linen", "velvet"), "size": ("40x40", "50x50")},
    "Mug": {"size": ("11oz", "15oz")},
    "Tote Bag": {"handle": ("short", "long"), "size": ("small", "large")},
    "Wallpaper": {"finish": ("matte", "satin"), "width": ("50cm", "70cm")},
}


@dataclass(frozen=True)
class Plan:
    """Everything that can be set. The same seed and the same requests meet the same faults."""

    seed: int = 1
    rules: tuple[Rule, ...] = ()
    patterns: Times = Times()
    products: Times = Times()
    #: Category name -> option -> offered values.
    catalog: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=lambda: CATALOG)
    #: Category IDs begin with it, as they differ between environments.
    environment: str = "staging"
