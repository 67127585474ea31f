"""The manifest: what a run was, what it came to in numbers, and the marks by which its files can be checked.

Schema version 1. A field may be added within a version; one that changes its meaning or goes away makes the
next.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path, PureWindowsPath
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    PlainSerializer,
    ValidationError,
    model_validator,
)

from patternmill.errors import PatternmillError
from patternmill.ledger.records import RowResult, RunRecord
from patternmill.results.atomic_files import FileMark, mark_of
from patternmill.results.row_files import iso_time, json_bytes
from patternmill.results.summary import counts
from patternmill.states import Outcome, RowStatus

MANIFEST = "manifest.json"

Moment = Annotated[AwareDatetime, PlainSerializer(iso_time)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class InputMark(_Part):
    """The file that went in. Its folder is left out: that is about a machine, not about a run."""

    name: str
    sha256: str
    encoding: str | None


class Counts(_Part):
    """`rows` is the sum of `by_status`; items are counted once, however many rows share them."""

    rows: int
    by_status: dict[RowStatus, int]
    #: Distinct products and patterns that exist for these rows.
    products: int
    patterns: int
    #: Distinct requests behind them, first tries and further attempts alike.
    product_attempts: int
    pattern_attempts: int

    @model_validator(mode="after")
    def _adds_up(self) -> Self:
        if self.rows != sum(self.by_status.values()):
            raise ValueError("the rows are not the sum of their statuses")
        return self


class FileEntry(_Part):
    sha256: str
    bytes: int


class Manifest(_Part):
    """manifest.json, as it is written and read."""

    #: Not `schema`, which is pydantic's own.
    schema_version: Literal[1] = 1
    run_id: str
    catalog: str
    environment: str
    studio_url: str
    outcome: Outcome | None
    reason: str | None
    started_at: Moment
    ended_at: Moment | None
    input: InputMark
    counts: Counts
    files: dict[str, FileEntry]
    options: dict[str, Any] = Field(default_factory=dict)
    versions: dict[str, str] = Field(default_factory=dict)
    prefect_flow_run_id: str | None = None


class ManifestUnreadable(PatternmillError, code="manifest_unreadable"):
    """manifest.json is missing, or is not one."""


def build_manifest(run: RunRecord, rows: Sequence[RowResult], files: Sequence[FileMark]) -> Manifest:
    return Manifest(
        run_id=run.run_id,
        catalog=run.catalog,
        environment=run.environment,
        studio_url=run.studio_url,
        outcome=run.outcome,
        reason=run.reason,
        started_at=run.started_at,
        ended_at=run.ended_at,
        input=InputMark(
            name=PureWindowsPath(run.source).name, sha256=run.input_sha256, encoding=run.input_encoding
        ),
        counts=count_everything(rows),
        files={file.name: FileEntry(sha256=file.sha256, bytes=file.bytes) for file in files},
        options=_in_order(run.options),
        versions=dict(sorted(run.versions.items())),
        prefect_flow_run_id=run.prefect_flow_run_id,
    )


def count_everything(rows: Sequence[RowResult]) -> Counts:
    return Counts(
        rows=len(rows),
        by_status=counts(rows),
        products=len({row.product_id for row in rows if row.product_id}),
        patterns=len({row.pattern_id for row in rows if row.pattern_id}),
        product_attempts=len({a.request_id for row in rows if row.product for a in row.product.attempts}),
        pattern_attempts=len({a.request_id for row in rows if row.pattern for a in row.pattern.attempts}),
    )


def manifest_bytes(manifest: Manifest) -> bytes:
    return json_bytes(manifest.model_dump(mode="json"), indent=2) + b"\n"


def read_manifest(path: Path) -> Manifest:
    """Read `path`, a manifest or the directory that holds one. Raises ManifestUnreadable."""
    path = path / MANIFEST if path.is_dir() else path
    try:
        return Manifest.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        raise ManifestUnreadable(
            f"{path} cannot be read as a manifest ({type(error).__name__}).",
            remedy="Rebuild the results of the run.",
        ) from error


def verify(out: Path) -> list[str]:
    """The names of the files in `out` that are missing or differ from its manifest. Raises ManifestUnreadable."""
    files = read_manifest(out / MANIFEST).files
    return [name for name, entry in files.items() if not _is_as_written(out / name, entry)]


def _is_as_written(path: Path, entry: FileEntry) -> bool:
    try:
        mark = mark_of(path)
    except OSError:
        return False
    return (mark.sha256, mark.bytes) == (entry.sha256, entry.bytes)


def _in_order(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options as plain JSON with sorted names, whichever order a database kept them in."""
    plain: dict[str, Any] = json.loads(json.dumps(dict(options), sort_keys=True, default=_plain))
    return plain


def _plain(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)
