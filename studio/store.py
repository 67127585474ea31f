"""The studio's memory: jobs, and an append-only record of every create request, in one SQLite file.

`synchronous=NORMAL` in WAL mode: what was acknowledged survives any death of the process (the operating
system has it), and a power cut may cost the last moments. One connection, used from one thread.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, NewType

JobId = NewType("JobId", str)
RequestId = NewType("RequestId", str)
Kind = Literal["pattern", "product"]
#: What was answered to a create request: a new job, the job it already had, or an error.
Verdict = Literal["accepted", "repeated", "conflict"]

SCHEMA = """
CREATE TABLE IF NOT EXISTS job (
    job_id      TEXT PRIMARY KEY,
    kind        TEXT NOT NULL CHECK (kind IN ('pattern', 'product')),
    request_id  TEXT NOT NULL UNIQUE,
    digest      TEXT NOT NULL,            -- of the operation and the whole request body
    subject     TEXT NOT NULL,            -- JSON: what is made
    result_id   TEXT NOT NULL UNIQUE,     -- patternId or productId; nobody is told before ends_at
    picture_id  TEXT NOT NULL UNIQUE,
    failure     TEXT,                     -- the reason, when the job is going to fail
    started_at  REAL NOT NULL,            -- seconds since 1970, as ends_at
    ends_at     REAL NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS job_prompt ON job (json_extract(subject, '$.prompt')) WHERE kind = 'pattern';
CREATE TABLE IF NOT EXISTS record (
    seq         INTEGER PRIMARY KEY AUTOINCREMENT,
    at          REAL NOT NULL,
    operation   TEXT NOT NULL,
    verdict     TEXT NOT NULL CHECK (verdict IN ('accepted', 'repeated', 'conflict')),
    request_id  TEXT NOT NULL,
    job_id      TEXT NOT NULL,
    body        TEXT NOT NULL
) STRICT;
CREATE TRIGGER IF NOT EXISTS record_is_kept BEFORE DELETE ON record
    BEGIN SELECT RAISE(ABORT, 'the record is append-only'); END;
CREATE TRIGGER IF NOT EXISTS record_is_unchanged BEFORE UPDATE ON record
    BEGIN SELECT RAISE(ABORT, 'the record is append-only'); END;
"""
SELECT_JOB = (
    "SELECT job_id, kind, request_id, digest, subject, result_id, picture_id, failure, started_at, ends_at"
    " FROM job WHERE "
)


@dataclass(frozen=True)
class Job:
    """One piece of work, whose end was settled when it was accepted."""

    job_id: JobId
    kind: Kind
    request_id: RequestId
    digest: str
    subject: dict[str, object]
    result_id: str
    picture_id: str
    failure: str | None
    started_at: datetime
    ends_at: datetime


@dataclass(frozen=True)
class RecordLine:
    """One create request that was understood, as it came in."""

    at: datetime
    operation: str
    verdict: Verdict
    request_id: RequestId
    job_id: JobId
    body: dict[str, object]


class Store:
    """Reads and writes the studio's file."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "busy_timeout=30000"):
            self._connection.execute(f"PRAGMA {pragma}")
        self._connection.executescript(SCHEMA)

    def close(self) -> None:
        self._connection.close()

    def add(self, job: Job, line: RecordLine) -> None:
        """Keep a new job and its line of the record; both are durable when this returns."""
        with self._transaction():
            self._connection.execute(
                "INSERT INTO job (job_id, kind, request_id, digest, subject, result_id, picture_id, failure,"
                " started_at, ends_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                _job_row(job),
            )
            self._append(line)

    def note(self, line: RecordLine) -> None:
        """Keep a line about a request that made no new job."""
        with self._transaction():
            self._append(line)

    def job(self, job_id: str) -> Job | None:
        return self._one(SELECT_JOB + "job_id = ?", job_id)

    def job_of_request(self, request_id: str) -> Job | None:
        return self._one(SELECT_JOB + "request_id = ?", request_id)

    def job_of_result(self, result_id: str) -> Job | None:
        return self._one(SELECT_JOB + "result_id = ?", result_id)

    def job_of_picture(self, picture_id: str) -> Job | None:
        return self._one(SELECT_JOB + "picture_id = ?", picture_id)

    def prompt_was_asked(self, prompt: str) -> bool:
        query = "SELECT 1 FROM job WHERE kind = 'pattern' AND json_extract(subject, '$.prompt') = ? LIMIT 1"
        return self._connection.execute(query, (prompt,)).fetchone() is not None

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")

    def _append(self, line: RecordLine) -> None:
        self._connection.execute(
            "INSERT INTO record (at, operation, verdict, request_id, job_id, body) VALUES (?, ?, ?, ?, ?, ?)",
            (
                line.at.timestamp(),
                line.operation,
                line.verdict,
                line.request_id,
                line.job_id,
                json.dumps(line.body),
            ),
        )

    def _one(self, query: str, value: str) -> Job | None:
        row = self._connection.execute(query, (value,)).fetchone()
        return None if row is None else _job(row)


def read_record(path: Path) -> list[RecordLine]:
    """The whole record of a studio's file in order, for audits; the studio may be running."""
    connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
    try:
        rows = connection.execute(
            "SELECT at, operation, verdict, request_id, job_id, body FROM record ORDER BY seq"
        ).fetchall()
    finally:
        connection.close()
    return [
        RecordLine(
            datetime.fromtimestamp(at, UTC),
            operation,
            verdict,
            RequestId(request_id),
            JobId(job_id),
            json.loads(body),
        )
        for at, operation, verdict, request_id, job_id, body in rows
    ]


def _job_row(job: Job) -> tuple[object, ...]:
    return (
        job.job_id,
        job.kind,
        job.request_id,
        job.digest,
        json.dumps(job.subject, ensure_ascii=False),
        job.result_id,
        job.picture_id,
        job.failure,
        job.started_at.timestamp(),
        job.ends_at.timestamp(),
    )


def _job(row: tuple[object, ...]) -> Job:
    job_id, kind, request_id, digest, subject, result_id, picture_id, failure, started_at, ends_at = row
    assert kind in ("pattern", "product")
    return Job(
        job_id=JobId(str(job_id)),
        kind="pattern" if kind == "pattern" else "product",
        request_id=RequestId(str(request_id)),
        digest=str(digest),
        subject=json.loads(str(subject)),
        result_id=str(result_id),
        picture_id=str(picture_id),
        failure=None if failure is None else str(failure),
        started_at=datetime.fromtimestamp(float(str(started_at)), UTC),
        ends_at=datetime.fromtimestamp(float(str(ends_at)), UTC),
    )
