"""The lineage of a pattern: the first one that it comes from, and all that was made of that."""

from __future__ import annotations

from dataclasses import dataclass, field

from studio.operations.context import Answer, Caller
from studio.operations.patterns import Patterns, pattern_body
from studio.requests import GetPattern
from studio.service import Service

#: A tree is shown up to so many patterns.
LIMIT = 200


@dataclass
class Branch:
    """A pattern and those that were made of it."""

    pattern: Answer
    children: list[Branch] = field(default_factory=list)


@dataclass(frozen=True)
class Lineage:
    """The whole tree; `is_cut` when it has more than LIMIT patterns."""

    root: Branch
    is_cut: bool


def lineage(service: Service, pattern_id: str, caller: Caller) -> Lineage:
    """The tree that this pattern is in. Raises Refusal (404)."""
    root = Branch(_first(service.patterns, pattern_id, caller))
    waiting, count = [root], 1
    while waiting and count < LIMIT:
        branch = waiting.pop(0)
        branch.children = _children(service, branch, caller, LIMIT - count)
        waiting += branch.children
        count += len(branch.children)
    return Lineage(root, is_cut=count >= LIMIT)


def _first(patterns: Patterns, pattern_id: str, caller: Caller) -> Answer:
    pattern = patterns.get(GetPattern(patternId=pattern_id), caller)
    while pattern["parentPatternId"] is not None:
        pattern = patterns.get(GetPattern(patternId=str(pattern["parentPatternId"])), caller)
    return pattern


def _children(service: Service, branch: Branch, caller: Caller, limit: int) -> list[Branch]:
    parent = str(branch.pattern["patternId"])
    jobs = service.store.jobs.refined_from(caller.account, parent, service.now(), limit)
    return [Branch(pattern_body(job, caller)) for job in jobs]
