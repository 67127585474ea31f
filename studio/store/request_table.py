"""Request IDs, each for one operation and one body of its account for ever, and the record of every create."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal, NewType

from studio.store.database import DEFAULT_ACCOUNT, Account, Database, instant, row_of

RequestId = NewType("RequestId", str)
#: How a create request was answered: with a new object, the object it already had, or an error.
Verdict = Literal["accepted", "repeated", "conflict"]


RECORD = "at, operation, verdict, request_id, job_id, body, account"


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
        return None if row is None else CreateRequest(account, RequestId(request_id), *row)

    def add(self, request: CreateRequest, line: RecordLine) -> None:
        """Keep an accepted request and its line; call it in the transaction that keeps what was created."""
        columns = "account, request_id, operation, digest, object_id"
        self._database.insert("request", columns, row_of(request))
        self.note(line)

    def note(self, line: RecordLine) -> None:
        """Keep a line of the record."""
        self._database.insert("record", RECORD, row_of(line))


def read_record(path: Path) -> list[RecordLine]:
    """The whole record of a studio's file in order, for audits; the studio may be running."""
    connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
    try:
        rows = connection.execute(f"SELECT {RECORD} FROM record ORDER BY seq").fetchall()  # noqa: S608
    finally:
        connection.close()
    return [
        RecordLine(instant(at), operation, verdict, request_id, job_id, json.loads(body), account)
        for at, operation, verdict, request_id, job_id, body, account in rows
    ]
