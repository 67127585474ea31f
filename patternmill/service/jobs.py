"""What creates answer with, read tolerantly: unknown fields are carried, unknown shapes are not guessed at."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from patternmill.service.redaction import clean
from patternmill.states import Stage

RUNNING = "running"
SUCCEEDED = "succeeded"
FAILED = "failed"


#: The operation that creates it; of refinements the group, since each kind has an operation of its own.
CREATES = {
    Stage.REFERENCE: "references/create",
    Stage.PATTERN: "patterns/create",
    Stage.REFINEMENT: "refine",
    Stage.PRODUCT: "products/create",
    Stage.CHECKOUT: "checkouts/create",
}
#: The field that has its ID: of a job's result, or of the answer itself.
RESULT_FIELDS = {
    Stage.REFERENCE: "referenceId",
    Stage.PATTERN: "patternId",
    Stage.REFINEMENT: "patternId",
    Stage.PRODUCT: "productId",
    Stage.CHECKOUT: "checkoutId",
}
#: The answer names what was made, and no job.
_IMMEDIATE = frozenset({Stage.REFERENCE, Stage.CHECKOUT})
#: Where a service may repeat what it was asked for, next to the job itself.
_REPEATED_IN = ("request", "input", "inputs", "params", "parameters", "arguments", "body", "payload")
#: Fields that name a picture of it, before those that may name one of anything.
_OWN_PICTURES = {
    Stage.PATTERN: ("patternImageUrl", "patternUrl"),
    Stage.REFINEMENT: ("patternImageUrl", "patternUrl"),
    Stage.PRODUCT: ("productImageUrl", "productUrl", "mockupUrl"),
}
_PICTURES = (
    *("imageUrl", "previewUrl", "pictureUrl", "thumbnailUrl"),
    *("url", "image", "preview", "picture"),
)
LONGEST_ID = 500


@dataclass(frozen=True, slots=True)
class Job:
    """One job; `error` is the reason of a failure, cleaned. What it made is read by what was asked for."""

    job_id: str
    kind: str
    status: str
    error: str | None
    raw: dict[str, Any]
    #: There is no job: the answer to the create named what was made, and its ID stands for the job's.
    is_immediate: bool = False

    def result_id(self, stage: Stage) -> str | None:
        """The ID of what was asked for; whatever else the result carries is not it."""
        return self.job_id if self.is_immediate else named_result(self._result, stage)

    def picture_url(self, stage: Stage) -> str | None:
        """The address of a picture of what was asked for, when the service names one."""
        names = (*_OWN_PICTURES.get(stage, ()), *_PICTURES)
        return _picture(self._result, names) or _picture(self.raw, names)

    def named_anywhere(self, stage: Stage) -> str | None:
        """Return the ID of what was asked for, also where the job itself has it next to its result."""
        beside = named_result(self.raw, stage) if stage in {Stage.PATTERN, Stage.PRODUCT} else None
        return self.result_id(stage) or beside

    @property
    def has_ended(self) -> bool:
        """Return whether the job has ended; one that succeeded has not until it names what was made."""
        return self.status == FAILED or (self.status == SUCCEEDED and bool(self.made))

    @property
    def repeated(self) -> Iterator[dict[str, Any]]:
        """The job itself, and what it was asked for where that is an object of its own."""
        yield self.raw
        yield from (self.raw[name] for name in _REPEATED_IN if isinstance(self.raw.get(name), dict))

    @property
    def request_ids(self) -> Iterator[str]:
        """Those that it names."""
        yield from (name for shown in self.repeated if isinstance(name := shown.get("requestId"), str))

    def pattern_ids(self, stage: Stage) -> Iterator[str]:
        """Yield the patterns that it was made on by its own words; not a refinement's own result."""
        beside, *asked = self.repeated
        shown = asked if stage is Stage.REFINEMENT else (beside, self._result, *asked)
        yield from (name for each in shown if (name := named_result(each, Stage.PATTERN)) is not None)

    @property
    def made(self) -> frozenset[Stage]:
        return frozenset(stage for stage in Stage if self.result_id(stage) is not None)

    def has_another_kind(self, stage: Stage) -> bool:
        """The interface names the kind of pattern jobs alone: any other may be a product's, but no pattern's."""
        kind = self.kind.strip().casefold()
        if stage is Stage.PATTERN:
            return bool(kind) and Stage.PATTERN not in kind
        return stage is Stage.PRODUCT and kind == Stage.PATTERN

    @property
    def _result(self) -> dict[str, Any]:
        result = self.raw.get("result")
        return result if isinstance(result, dict) else {}


def read_job(body: Any) -> Job | None:
    """The job in an answer's body; None when it names no usable job ID. A missing status reads ""."""
    job_id = _identifier(body.get("jobId")) if isinstance(body, dict) else None
    if job_id is None:
        return None
    kind, status = body.get("kind"), body.get("status")
    return Job(
        job_id=job_id,
        kind=kind if isinstance(kind, str) else "",
        status=status if isinstance(status, str) else "",
        error=_reason(body.get("error")) if status == FAILED else None,
        raw=body,
    )


def read_created(body: Any, stage: Stage) -> Job | None:
    """What the answer to a create names: its job, or what was made where no job makes it; None when neither."""
    made = named_result(body, stage) if stage in _IMMEDIATE else None
    if made is None:
        return read_job(body)
    return Job(made, kind=stage.value, status=SUCCEEDED, error=None, raw=body, is_immediate=True)


def named_result(body: Any, stage: Stage) -> str | None:
    """The ID of what was made, where the answer to a create, or the result of a job, names it."""
    return _identifier(body.get(RESULT_FIELDS[stage])) if isinstance(body, dict) else None


def _identifier(value: Any) -> str | None:
    """An ID as it came, if it is text that can be printed on one line."""
    if isinstance(value, str) and value.strip() and len(value) <= LONGEST_ID and value.isprintable():
        return value
    return None


def _picture(fields: dict[str, Any], names: tuple[str, ...]) -> str | None:
    """The first plausible address of a picture; only http and https, for it goes into a page."""
    for name in names:
        value = fields.get(name)
        if isinstance(value, str) and value.startswith(("https://", "http://")) and _printable(value):
            return value
    return None


def _printable(url: str) -> bool:
    return len(url) <= 2000 and url.isprintable() and not any(mark in url for mark in " \"'<>\\")


def _reason(error: Any) -> str:
    if isinstance(error, dict):
        error = error.get("message") or error.get("code") or ""
    return clean(error) if isinstance(error, str) and error.strip() else "the service gave no reason"
