"""Reads jobs from answers: unknown fields are carried along, unknown shapes are not guessed at."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from patternmill.service.redaction import clean
from patternmill.states import Stage

RUNNING = "running"
SUCCEEDED = "succeeded"
FAILED = "failed"
POLL = "jobs/get"

#: The operation that creates each stage; for refinements their group, since each kind has its own operation.
CREATES = {
    Stage.REFERENCE: "references/create",
    Stage.PATTERN: "patterns/create",
    Stage.REFINEMENT: "refine",
    Stage.PRODUCT: "products/create",
    Stage.CHECKOUT: "checkouts/create",
}
#: The field with the ID of what was made, in a job's result or in the answer itself.
RESULT_FIELDS = {
    Stage.REFERENCE: "referenceId",
    Stage.PATTERN: "patternId",
    Stage.REFINEMENT: "patternId",
    Stage.PRODUCT: "productId",
    Stage.CHECKOUT: "checkoutId",
}
#: Stages whose create may answer with what was made, and no job.
_IMMEDIATE = frozenset({Stage.REFERENCE, Stage.CHECKOUT})
#: The fields in which a service may repeat the request, beside the job's own fields.
_REPEATED_IN = ("request", "input", "inputs", "params", "parameters", "arguments", "body", "payload")
#: Fields with a picture of this very stage, read before those with any picture.
_OWN_PICTURES = {
    Stage.PATTERN: ("patternImageUrl", "patternUrl"),
    Stage.REFINEMENT: ("patternImageUrl", "patternUrl"),
    Stage.PRODUCT: ("productImageUrl", "productUrl", "mockupUrl"),
}
_PICTURES = (
    *("imageUrl", "previewUrl", "pictureUrl", "thumbnailUrl"),
    *("url", "image", "preview", "picture"),
)
_PICTURE_URL = re.compile(r"https?://[^\s\"'<>\\]{1,1990}")
LONGEST_ID = 500


@dataclass(frozen=True, slots=True)
class Job:
    """One job. `error` is the reason of a failure, cleaned; results are read by the stage that was asked for."""

    job_id: str
    kind: str
    status: str
    error: str | None
    raw: dict[str, Any]
    #: The object that names what was made; empty while it runs.
    result: dict[str, Any] = field(default_factory=dict)
    #: The create answered with what was made, and no job: that ID stands for the job's.
    is_immediate: bool = False

    def result_id(self, stage: Stage) -> str | None:
        """Return the ID of what was asked for, whatever else the result names."""
        return self.job_id if self.is_immediate else named_result(self.result, stage)

    def picture_url(self, stage: Stage) -> str | None:
        """Return the address of a picture of what was asked for, when the service names one."""
        names = (*_OWN_PICTURES.get(stage, ()), *_PICTURES)
        return _picture(self.result, names) or _picture(self.raw, names)

    def named_anywhere(self, stage: Stage) -> str | None:
        """Return the ID of what was asked for, also where it stands beside the result."""
        beside = named_result(self.raw, stage) if stage in {Stage.PATTERN, Stage.PRODUCT} else None
        return self.result_id(stage) or beside

    @property
    def has_ended(self) -> bool:
        """Return whether the job has ended; one that succeeded has not until it names what was made."""
        return self.status == FAILED or (self.status == SUCCEEDED and bool(self.made))

    @property
    def repeated(self) -> Iterator[dict[str, Any]]:
        """Yield the job itself, and each object in it that repeats the request."""
        yield self.raw
        yield from (self.raw[name] for name in _REPEATED_IN if isinstance(self.raw.get(name), dict))

    @property
    def request_ids(self) -> Iterator[str]:
        """Yield the request IDs that it names."""
        yield from (name for shown in self.repeated if isinstance(name := shown.get("requestId"), str))

    def pattern_ids(self, stage: Stage) -> Iterator[str]:
        """Yield the patterns that the job says it was made from; not a refinement's own result."""
        beside, *asked = self.repeated
        shown = asked if stage is Stage.REFINEMENT else (beside, self.result, *asked)
        yield from (name for fields in shown if (name := named_result(fields, Stage.PATTERN)) is not None)

    @property
    def made(self) -> frozenset[Stage]:
        """Return the stages whose results it names; none while it runs."""
        return frozenset(stage for stage in Stage if self.result_id(stage) is not None)

    def has_another_kind(self, stage: Stage) -> bool:
        """Return whether its kind contradicts what was asked for; the interface names that of pattern jobs alone."""
        kind = self.kind.strip().casefold()
        if stage is Stage.PATTERN:
            return bool(kind) and Stage.PATTERN not in kind
        return stage is Stage.PRODUCT and kind == Stage.PATTERN


def read_job(body: Any) -> Job | None:
    """Return the job in an answer's body; None when it names no usable job ID. A missing status reads ""."""
    job_id = _identifier(body, "jobId")
    if job_id is None:
        return None
    kind, status = body.get("kind"), body.get("status")
    return Job(
        job_id=job_id,
        kind=kind if isinstance(kind, str) else "",
        status=status if isinstance(status, str) else "",
        error=_reason(body.get("error")) if status == FAILED else None,
        raw=body,
        result=result if isinstance(result := body.get("result"), dict) else {},
    )


def read_created(body: Any, stage: Stage) -> Job | None:
    """Return the job that a create answered with, or what was made where no job makes it; None without either."""
    made = named_result(body, stage) if stage in _IMMEDIATE else None
    if made is None:
        return read_job(body)
    return Job(made, kind=stage.value, status=SUCCEEDED, error=None, raw=body, is_immediate=True)


def named_result(body: Any, stage: Stage) -> str | None:
    """Return the ID of what was made, where the answer to a create, or the result of a job, names it."""
    return _identifier(body, RESULT_FIELDS[stage])


def _identifier(body: Any, name: str) -> str | None:
    """Return the ID in a field as it came, if it is text that can be printed on one line."""
    value = body.get(name) if isinstance(body, dict) else None
    if isinstance(value, str) and value.strip() and len(value) <= LONGEST_ID and value.isprintable():
        return value
    return None


def _picture(fields: dict[str, Any], names: tuple[str, ...]) -> str | None:
    """Return the first plausible address of a picture; only http and https, for it goes into a page."""
    for name in names:
        value = fields.get(name)
        if isinstance(value, str) and _PICTURE_URL.fullmatch(value) and value.isprintable():
            return value
    return None


def _reason(error: Any) -> str:
    if isinstance(error, dict):
        error = error.get("message") or error.get("code") or ""
    return clean(error) if isinstance(error, str) and error.strip() else "the service gave no reason"
