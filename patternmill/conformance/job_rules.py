"""What the interface states of a job, as pure functions on the answers that showed it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from patternmill.service.jobs import FAILED, RUNNING, SUCCEEDED

ENDED = frozenset({SUCCEEDED, FAILED})
_STATUSES = frozenset({RUNNING, *ENDED})


@dataclass(frozen=True)
class JobTrail:
    """One job: the answer to its create, then those to its polls, beyond its end."""

    #: `pattern` or `product`.
    made: str
    answers: list[Any]
    #: Statuses of polls that were refused or failed.
    refusals: list[int] = field(default_factory=list)

    @property
    def polls(self) -> list[Any]:
        return self.answers[1:]

    @property
    def end(self) -> str | None:
        """The first status in which the job had ended."""
        return next((status for poll in self.polls if (status := status_of(poll)) in ENDED), None)

    @property
    def result_id(self) -> str | None:
        """What the job made, once it has succeeded."""
        return text_at(self.answers[-1], "result", f"{self.made}Id")


def text_at(answer: Any, *path: str) -> str | None:
    """The text at this place in an answer; None where there is none, or an empty one."""
    for name in path:
        answer = answer.get(name) if isinstance(answer, dict) else None
    return answer if isinstance(answer, str) and answer.strip() else None


def status_of(answer: Any) -> str | None:
    return text_at(answer, "status")


def job_id_of(answer: Any) -> str | None:
    return text_at(answer, "jobId")


def created_faults(answer: Any, made: str) -> list[str]:
    """Of the answer to a create: a job that runs, with no result yet."""
    faults = [*_shape_faults([answer]), *_kind_faults(made, answer)]
    if status_of(answer) != RUNNING:
        faults.append("it is not answered with the status running")
    if isinstance(answer, dict) and answer.get("result") is not None:
        faults.append("it is answered with a result")
    return faults


def job_faults(trail: JobTrail) -> list[str]:
    """Of the polls of one job, from its create to beyond its end."""
    polls, ids = trail.polls, {job_id_of(answer) for answer in trail.answers}
    by_status = {status: [poll for poll in polls if status_of(poll) == status] for status in _STATUSES}
    faults = [f"jobs/get answers {status} for it" for status in sorted(set(trail.refusals))]
    faults += _shape_faults(polls)
    faults += (fault for poll in polls for fault in _kind_faults(trail.made, poll))
    if len(ids) > 1:
        faults.append("polls name another jobId than was asked for")
    if any(poll.get("result") is not None for poll in by_status[RUNNING]):
        faults.append("result is not null while the job runs")
    steps = [pair for pair in pairwise(map(status_of, polls)) if pair[0] in ENDED and pair[0] != pair[1]]
    faults += (f"{before} became {after}" for before, after in steps)
    if not all(text_at(poll, "result", f"{trail.made}Id") for poll in by_status[SUCCEEDED]):
        faults.append(f"result.{trail.made}Id is no text")
    if not all(text_at(poll, "error", "message") for poll in by_status[FAILED]):
        faults.append("error.message is no text")
    return list(dict.fromkeys(faults))


def _shape_faults(answers: Sequence[Any]) -> Iterator[str]:
    for answer in answers:
        if not isinstance(answer, dict):
            yield "a job is no object"
            continue
        if job_id_of(answer) is None:
            yield "jobId is no text"
        if not isinstance(answer.get("kind"), str):
            yield "kind is no text"
        if status_of(answer) not in _STATUSES:
            yield "status is none of running, succeeded, failed"
        if "result" not in answer or not isinstance(answer["result"], dict | None):
            yield "result is neither an object nor null"


def _kind_faults(made: str, answer: Any) -> Iterator[str]:
    """`pattern` is the kind of pattern jobs, and of no other."""
    kind = text_at(answer, "kind")
    if kind is not None and (kind == "pattern") is not (made == "pattern"):
        yield f"kind of a {made} job is {'' if made == 'product' else 'not '}`pattern`"
