"""What creates answer with, read tolerantly: unknown fields are carried, unknown shapes are not guessed at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from patternmill.service.redaction import clean
from patternmill.states import Stage

RUNNING = "running"
SUCCEEDED = "succeeded"
FAILED = "failed"


@dataclass(frozen=True)
class StageOnWire:
    """What the interface calls the parts of one stage."""

    #: The operation that creates it; of refinements the group, since each kind has an operation of its own.
    create: str
    #: The field that has its ID: of a job's result, or of the answer itself.
    result_field: str
    #: Fields that name a picture of it, before those that may name one of anything.
    pictures: tuple[str, ...] = ()
    #: The answer names what was made, and no job.
    is_immediate: bool = False


ON_WIRE = {
    Stage.REFERENCE: StageOnWire("references/create", "referenceId", is_immediate=True),
    Stage.PATTERN: StageOnWire("patterns/create", "patternId", ("patternImageUrl", "patternUrl")),
    Stage.REFINEMENT: StageOnWire("refine", "patternId", ("patternImageUrl", "patternUrl")),
    Stage.PRODUCT: StageOnWire(
        "products/create", "productId", ("productImageUrl", "productUrl", "mockupUrl")
    ),
    Stage.CHECKOUT: StageOnWire("checkouts/create", "checkoutId", is_immediate=True),
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
        return (
            self.job_id if self.is_immediate else _identifier(self._result.get(ON_WIRE[stage].result_field))
        )

    def picture_url(self, stage: Stage) -> str | None:
        """The address of a picture of what was asked for, when the service names one."""
        names = (*ON_WIRE[stage].pictures, *_PICTURES)
        return _picture(self._result, names) or _picture(self.raw, names)

    def is_of_another_kind(self, stage: Stage) -> bool:
        """Whether this job makes something else than `stage` does, by its result, or else by its kind."""
        if self.result_id(stage) is not None:
            return False
        return bool(self.made) or self.has_another_kind(stage)

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
    made = named_result(body, stage) if ON_WIRE[stage].is_immediate else None
    if made is None:
        return read_job(body)
    return Job(made, kind=stage.value, status=SUCCEEDED, error=None, raw=body, is_immediate=True)


def named_result(body: Any, stage: Stage) -> str | None:
    """The ID of what was made, where the answer to a create names it by itself."""
    return _identifier(body.get(ON_WIRE[stage].result_field)) if isinstance(body, dict) else None


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
