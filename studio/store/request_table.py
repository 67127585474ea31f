"""Request IDs, each for one operation and one body of its account for ever, and the record of every create."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal, NewType

from studio.store.database import DEFAULT_ACCOUNT, Account, Database, instant

RequestId = NewType("RequestId", str)
#: How a create request was answered: with a new object, the object it already had, or an error.
Verdict = Literal["accepted", "repeated", "conflict"]


@dataclass(frozen=True)
class CreateRequest:
    """A create that was accepted, and what was created by it."""

    account: Account
    request_id: RequestId
    operation: str
    digest: str
    object_id: str


@dataclass(frozen=True)
class RecordLine:
    """One create request that was understood, as it came in. `job_id` is the ID of what was created."""

    at: datetime
    operation: str
    verdict: Verdict
    request_id: RequestId
    job_id: str
    body: dict[str, object]
    account: Account = DEFAULT_ACCOUNT


class RequestTable:
    """Reads and writes of the tables `request` and `record`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def find(self, account: Account, request_id: str) -> CreateRequest | None:
        row = self._database.one(
            "SELECT operation, digest, object_id FROM request WHERE account = ? AND request_id = ?",
            (account, request_id),
        )
        if row is None:
            return None
        operation, digest, object_id = row
        return CreateRequest(account, RequestId(request_id), str(operation), str(digest), str(object_id))

    def add(self, request: CreateRequest, line: RecordLine) -> None:
        """Keep an accepted request and its line; call it in the transaction that keeps what was created."""
        self._database.execute(
            "INSERT INTO request (account, request_id, operation, digest, object_id) VALUES (?, ?, ?, ?, ?)",
            (request.account, request.request_id, request.operation, request.digest, request.object_id),
        )
        self.note(line)

    def note(self, line: RecordLine) -> None:
        """Keep a line of the record."""
        self._database.execute(
            "INSERT INTO record (at, operation, verdict, request_id, job_id, body, account)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                line.at.timestamp(),
                line.operation,
                line.verdict,
                line.request_id,
                line.job_id,
                json.dumps(line.body),
                line.account,
            ),
        )


def read_record(path: Path) -> list[RecordLine]:
    """The whole record of a studio's file in order, for audits; the studio may be running."""
    connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
    try:
        rows = connection.execute(
            "SELECT at, operation, verdict, request_id, job_id, body, account FROM record ORDER BY seq"
        ).fetchall()
    finally:
        connection.close()
    return [
        RecordLine(
            instant(at),
            operation,
            verdict,
            RequestId(request_id),
            job_id,
            json.loads(body),
            Account(account),
        )
        for at, operation, verdict, request_id, job_id, body, account in rows
    ]
