"""One SQLite file: its connection, its transactions, its schema, and its tables as rows of models.

`synchronous=NORMAL` in WAL mode: what was acknowledged survives any death of the process (the operating
system has it), and a power cut may cost the last moments. One connection, used from one thread.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict

SCHEMA = (Path(__file__).parent / "schema.sql").read_text("utf-8")
#: A file's `user_version`: a digest of the schema, of 31 bits.
VERSION = int.from_bytes(hashlib.sha256(SCHEMA.encode()).digest()[:4]) >> 1
PRAGMAS = ("journal_mode=WAL", "synchronous=NORMAL", "busy_timeout=30000")
#: Larger than every place in a table.
LAST = 2**63 - 1
Row = tuple[Any, ...]


class OtherSchema(sqlite3.DatabaseError):
    """The file belongs to another version of the studio, which has other tables."""


class Database:
    """The open file."""

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        """Open the file. Raises OtherSchema and leaves it as it is; with `read_only`, of whatever version it is."""
        if read_only:
            self._connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
            return
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        if self._version() not in (0, VERSION):
            self._connection.close()
            raise OtherSchema(f"{path} is of another version of the studio: use that one, or another home.")
        for pragma in PRAGMAS:
            self._connection.execute(f"PRAGMA {pragma}")
        if self._version() != VERSION:
            # If two processes open a new file at once, the second one finds the tables there.
            version = f"PRAGMA user_version = {VERSION}"
            self._connection.executescript(f"BEGIN IMMEDIATE; {SCHEMA} {version}; COMMIT;")

    def close(self) -> None:
        self._connection.close()

    def execute(self, statement: str, values: Row = ()) -> int:
        """Run one statement; return the number of rows that it changed."""
        return self._connection.execute(statement, values).rowcount

    def all(self, query: str, values: Row | Mapping[str, object] = ()) -> list[Row]:
        return self._connection.execute(query, values).fetchall()

    def replace_with(self, other: Database) -> None:
        """Become a copy of the other one, all at once, even if the process is killed meanwhile."""
        other._connection.backup(self._connection)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Do all of it or nothing; it is durable when it ends."""
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")

    def _version(self) -> int:
        return int(self._connection.execute("PRAGMA user_version").fetchone()[0])


class Record(BaseModel):
    """A row: its fields are the columns of its table."""

    model_config = ConfigDict(frozen=True)


AnyRecord = TypeVar("AnyRecord", bound=Record)


class Table(Generic[AnyRecord]):
    """Reads and writes of one table. Conditions are columns and their values; None is NULL."""

    def __init__(self, database: Database, name: str, record: type[AnyRecord]) -> None:
        self._database = database
        self._name = name
        self._record = record
        self._columns = ", ".join(record.model_fields)

    def add(self, record: AnyRecord) -> None:
        values = tuple(_stored(value) for _, value in record)
        marks = ", ".join("?" * len(values))
        self._database.execute(f"INSERT INTO {self._name} ({self._columns}) VALUES ({marks})", values)  # noqa: S608

    def one(self, **where: object) -> AnyRecord | None:
        """Return a row that has these values."""
        condition, values = _condition(where)
        rows = self._database.all(f"{self._select()} WHERE {condition} LIMIT 1", values)
        return self._read(rows[0]) if rows else None

    def all(self) -> list[AnyRecord]:
        """Return all rows, oldest first."""
        return [self._read(row) for row in self._database.all(f"{self._select()} ORDER BY rowid")]

    def update(self, changes: Mapping[str, object], **where: object) -> int:
        """Write these values into the rows that have those; return how many rows there were."""
        condition, values = _condition(where)
        settings = ", ".join(f"{column} = ?" for column in changes)
        statement = f"UPDATE {self._name} SET {settings} WHERE {condition}"  # noqa: S608
        return self._database.execute(statement, (*map(_stored, changes.values()), *values))

    def delete(self, **where: object) -> None:
        condition, values = _condition(where)
        self._database.execute(f"DELETE FROM {self._name} WHERE {condition}", values)  # noqa: S608

    def page(self, before: int | None, limit: int, **where: object) -> list[tuple[int, AnyRecord]]:
        """Return the newest rows older than the place `before`, each with its place."""
        return self._page(before, limit, *_condition(where))

    def _page(
        self, before: int | None, limit: int, condition: str, values: Row
    ) -> list[tuple[int, AnyRecord]]:
        query = f"{self._select('seq, ')} WHERE {condition} AND seq < ? ORDER BY seq DESC LIMIT ?"
        rows = self._database.all(query, (*values, LAST if before is None else before, limit))
        return [(row[0], self._read(row[1:])) for row in rows]

    def _select(self, more: str = "") -> str:
        return f"SELECT {more}{self._columns} FROM {self._name}"  # noqa: S608

    def _read(self, row: Row) -> AnyRecord:
        return self._record.model_validate(dict(zip(self._record.model_fields, row, strict=True)))


def _condition(where: Mapping[str, object]) -> tuple[str, Row]:
    parts = (f"{column} IS NULL" if value is None else f"{column} = ?" for column, value in where.items())
    return " AND ".join(parts), tuple(_stored(value) for value in where.values() if value is not None)


def _stored(value: object) -> object:
    """Return what a column keeps: instants as seconds, and what is no scalar as JSON."""
    if isinstance(value, datetime):
        return value.timestamp()
    if isinstance(value, BaseModel):
        return value.model_dump_json()
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else value


def read_instant(stored: object) -> object:
    """Return the instant of these seconds since 1970; another value as it is."""
    return datetime.fromtimestamp(stored, UTC) if isinstance(stored, int | float) else stored


def read_json(stored: object) -> object:
    """Return the value of this JSON text; another value as it is."""
    return json.loads(stored) if isinstance(stored, str) else stored
