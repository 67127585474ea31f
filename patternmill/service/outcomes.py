"""How a create, and how a job, can end."""

from __future__ import annotations

from dataclasses import dataclass

from patternmill.service.jobs import Job


@dataclass(frozen=True, slots=True)
class Accepted:
    """The service has the request; `job` names it (and may have ended already)."""

    job: Job


@dataclass(frozen=True, slots=True)
class Refused:
    """The service refused the request as invalid. Final for this item."""

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
    """A person decides; other items continue."""

    code: str
    message: str
    #: Whether the request was executed is unknown; the next run may resend it.
    in_doubt: bool = False


@dataclass(frozen=True, slots=True)
class InDoubt:
    """The run was stopped before it was known whether the request was executed."""

    message: str


@dataclass(frozen=True, slots=True)
class NotBegun:
    """The run was stopped, and the service never had this request."""


@dataclass(frozen=True, slots=True)
class Succeeded:
    """The job made something: `result_id` is its pattern ID or product ID."""

    result_id: str
    picture_url: str | None = None


@dataclass(frozen=True, slots=True)
class Failed:
    """The service reported the job as failed, with this reason (cleaned, at most 500 characters)."""

    message: str


@dataclass(frozen=True, slots=True)
class GaveUp:
    """The job did not end in time; the next run polls it again."""

    job_id: str
    reason: str


CreateEnd = Accepted | Refused | Conflict | Unresolved | Stopped | InDoubt | NotBegun
JobEnd = Succeeded | Failed | GaveUp | Unresolved | Conflict | Stopped
