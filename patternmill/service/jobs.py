"""The job on the wire, read tolerantly: unknown fields are carried, unknown shapes are not guessed at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from patternmill.service.text import clean

RUNNING = "running"
SUCCEEDED = "succeeded"
FAILED = "failed"
KNOWN_STATUSES = frozenset({RUNNING, SUCCEEDED, FAILED})

RESULT_FIELDS = ("patternId", "productId")
PICTURE_FIELDS = (
    "imageUrl",
    "patternUrl",
    "previewUrl",
    "pictureUrl",
    "productUrl",
    "mockupUrl",
    "thumbnailUrl",
    "url",
    "image",
    "preview",
    "picture",
)
LONGEST_ID = 500


@dataclass(frozen=True, slots=True)
class Job:
    """One job. `result_id` is the pattern ID or product ID, and `error` the reason of a failure, cleaned."""

    job_id: str
    kind: str
    status: str
    result_id: str | None
    picture_url: str | None
    error: str | None
    raw: dict[str, Any]

    @property
    def ended(self) -> bool:
        return self.status == FAILED or (self.status == SUCCEEDED and self.result_id is not None)


def read_job(body: Any) -> Job | None:
    """The job in an answer's body; None when it names no usable job ID. A missing status word reads ""."""
    job_id = _identifier(body.get("jobId")) if isinstance(body, dict) else None
    if job_id is None:
        return None
    kind, status, result = body.get("kind"), body.get("status"), body.get("result")
    result = result if isinstance(result, dict) else {}
    return Job(
        job_id=job_id,
        kind=kind if isinstance(kind, str) else "",
        status=status if isinstance(status, str) else "",
        result_id=_first_identifier(result),
        picture_url=_picture(result) or _picture(body),
        error=_reason(body.get("error")) if status == FAILED else None,
        raw=body,
    )


def _identifier(value: Any) -> str | None:
    """An ID as it came, if it is text that can be printed on one line."""
    if isinstance(value, str) and value.strip() and len(value) <= LONGEST_ID and value.isprintable():
        return value
    return None


def _first_identifier(result: dict[str, Any]) -> str | None:
    return next((found for name in RESULT_FIELDS if (found := _identifier(result.get(name)))), None)


def _picture(fields: dict[str, Any]) -> str | None:
    """The first plausible address of a picture; only http and https, for it goes into a page."""
    for name in PICTURE_FIELDS:
        value = fields.get(name)
        if isinstance(value, str) and value.startswith(("https://", "http://")) and _printable(value):
            return value
    return None


def _printable(url: str) -> bool:
    return len(url) <= 2000 and url.isprintable() and not any(mark in url for mark in " \"'<>\\")


def _reason(error: Any) -> str:
    """The text of a failure, wherever the service put it."""
    if isinstance(error, dict):
        error = error.get("message") or error.get("code") or ""
    return clean(error) if isinstance(error, str) and error.strip() else "the service gave no reason"
