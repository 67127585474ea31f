"""What the interface states of a job, as pure functions on the answers that showed it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from patternmill.service.jobs import FAILED, RUNNING, SUCCEEDED

_ENDED = frozenset({SUCCEEDED, FAILED})
_STATUSES = frozenset({RUNNING, *_ENDED})


@dataclass(frozen=True)
class JobTrail:
    """One job: the answer to its create, then those to its polls, beyond its end."""

    #: `pattern` or `product`.
    made: str
    answers: tuple[Any, ...]
    #: Statuses of polls that were refused or failed.
    refusals: frozenset[int] = frozenset()

    @property
    def polls(self) -> tuple[Any, ...]:
        return self.answers[1:]

    @property
    def has_ended(self) -> bool:
        return any(status_of(answer) in _ENDED for answer in self.polls)

    @property
    def result_id(self) -> str | None:
        """What the job made, once it has succeeded."""
        return text_at(self.answers[-1], "result", f"{self.made}Id")


def text_at(answer: Any, *path: str) -> str | None:
    """The text at this place in an answer; None where there is none, or an empty one."""
    for name in path:
        answer = answer.get(name) if isinstance(answer, dict) else None
    return answer if isinstance(answer, str) and answer else None


def status_of(answer: Any) -> str | None:
    return text_at(answer, "status")


def job_id_of(answer: Any) -> str | None:
    return text_at(answer, "jobId")


def shape_faults(answers: Iterable[Any]) -> list[str]:
    """Of the fields that each answer has to have."""
    return list(dict.fromkeys(fault for answer in answers for fault in _shape_faults(answer)))


def poll_shape_faults(trail: JobTrail) -> list[str]:
    """A job that its create named has to be found."""
    refused = [f"jobs/get answers {status} for it" for status in sorted(trail.refusals)]
    return refused + shape_faults(trail.polls)


def _shape_faults(answer: Any) -> Iterator[str]:
    if not isinstance(answer, dict):
        yield "a job is no object"
        return
    if job_id_of(answer) is None:
        yield "jobId is no text"
    if not isinstance(answer.get("kind"), str):
        yield "kind is no text"
    if status_of(answer) not in _STATUSES:
        yield "status is none of running, succeeded, failed"
    if "result" not in answer or not isinstance(answer["result"], dict | None):
        yield "result is neither an object nor null"


def kind_faults(trail: JobTrail) -> list[str]:
    """`pattern` is the kind of pattern jobs, and of no other."""
    found = (answer.get("kind") for answer in trail.answers if isinstance(answer, dict))
    kinds = {kind for kind in found if isinstance(kind, str)}
    if trail.made == "pattern":
        return ["kind is not `pattern`"] if kinds - {"pattern"} else []
    return ["kind is `pattern`"] if "pattern" in kinds else []


def start_faults(trail: JobTrail) -> list[str]:
    first = trail.answers[0]
    faults = [] if status_of(first) == RUNNING else ["its create is not answered with the status running"]
    if isinstance(first, dict) and first.get("result") is not None:
        faults.append("its create is answered with a result")
    return faults


def identity_faults(trail: JobTrail) -> list[str]:
    ids = {job_id_of(answer) for answer in trail.answers}
    return [] if len(ids) == 1 else ["polls name another jobId than was asked for"]


def transition_faults(trail: JobTrail) -> list[str]:
    """From running to one end, and never away from it."""
    statuses = [status_of(answer) for answer in trail.polls]
    steps = [pair for pair in pairwise(statuses) if pair[0] in _ENDED and pair[0] != pair[1]]
    return sorted({f"{before} became {after}" for before, after in steps})


def running_faults(trail: JobTrail) -> list[str]:
    running = _with_status(trail.polls, RUNNING)
    early = [answer for answer in running if answer.get("result") is not None]
    return ["result is not null while the job runs"] if early else []


def result_faults(trail: JobTrail) -> list[str]:
    """Of the jobs that succeeded."""
    name = f"{trail.made}Id"
    found = [text_at(answer, "result", name) for answer in _with_status(trail.polls, SUCCEEDED)]
    return [] if all(found) else [f"result.{name} is no text"]


def failure_faults(trail: JobTrail) -> list[str]:
    """Of the jobs that failed."""
    found = [text_at(answer, "error", "message") or "" for answer in _with_status(trail.polls, FAILED)]
    return [] if all(map(str.strip, found)) else ["error.message is no text"]


def _with_status(answers: Sequence[Any], status: str) -> list[dict[str, Any]]:
    return [answer for answer in answers if status_of(answer) == status]
