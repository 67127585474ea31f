"""How a create, and how a job, can end: what the engine learns from the wire."""

from __future__ import annotations

from dataclasses import dataclass

from patternmill.service.jobs import Job


@dataclass(frozen=True, slots=True)
class Accepted:
    """The service has the request; `job` names it (and may have ended already)."""

    job: Job


@dataclass(frozen=True, slots=True)
class Refused:
    """The service calls the request invalid. Final for this item."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Stopped:
    """No new item may be begun in this run."""

    code: str
    message: str
    #: The request may have been executed by an earlier try: the next run sends it again.
    in_doubt: bool = False
    #: The answer is final for this item too (a redirect).
    item_refused: bool = False


@dataclass(frozen=True, slots=True)
class Conflict:
    """Answers contradict one another: this item stops, no new ID is made, and nothing new is begun."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Unresolved:
    """A person decides; the run goes on with other items."""

    code: str
    message: str
    #: The fate of the request is unknown, and the same request may be sent again by the next run.
    in_doubt: bool = False


@dataclass(frozen=True, slots=True)
class InDoubt:
    """The run was stopped while the fate of the request was unknown."""

    message: str


@dataclass(frozen=True, slots=True)
class NotBegun:
    """The run was stopped, and it is certain that the service never had this request."""


@dataclass(frozen=True, slots=True)
class Succeeded:
    """The job made something: `result_id` is its pattern ID or product ID."""

    result_id: str
    picture_url: str | None = None


@dataclass(frozen=True, slots=True)
class Failed:
    """The service itself said that the job failed, with this reason (cleaned, at most 500 characters)."""

    message: str


@dataclass(frozen=True, slots=True)
class GaveUp:
    """The job did not end in time. Its ID is good: the next run asks again."""

    job_id: str
    reason: str


CreateEnd = Accepted | Refused | Conflict | Unresolved | Stopped | InDoubt | NotBegun
JobEnd = Succeeded | Failed | GaveUp | Unresolved | Conflict | Stopped
