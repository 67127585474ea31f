"""One SQLite file: its connection, its transactions and its schema.

`synchronous=NORMAL` in WAL mode: what was acknowledged survives any death of the process (the operating
system has it), and a power cut may cost the last moments. One connection, used from one thread.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NewType

#: Whose an object is: each key belongs to one account.
Account = NewType("Account", str)
DEFAULT_ACCOUNT = Account("default")
Row = tuple[Any, ...]
SCHEMA = (Path(__file__).parent / "schema.sql").read_text("utf-8")
#: A file's `user_version`: a digest of the schema, of 31 bits.
VERSION = int.from_bytes(hashlib.sha256(SCHEMA.encode()).digest()[:4]) >> 1
PRAGMAS = ("journal_mode=WAL", "synchronous=NORMAL", "busy_timeout=30000")


class OtherSchema(sqlite3.DatabaseError):
    """The file is of another studio: its tables are other ones."""


class Database:
    """The open file."""

    def __init__(self, path: Path) -> None:
        """Raises OtherSchema, and leaves the file as it is."""
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        if self._version() not in (0, VERSION):
            self._connection.close()
            raise OtherSchema(f"{path} was made by another version of the studio, which it needs.")
        for pragma in PRAGMAS:
            self._connection.execute(f"PRAGMA {pragma}")
        if self._version() != VERSION:
            with self.transaction():
                self._make()

    def close(self) -> None:
        self._connection.close()

    def execute(self, statement: str, values: Row = ()) -> int:
        """Run one statement; the number of rows it changed."""
        return self._connection.execute(statement, values).rowcount

    def one(self, query: str, values: Row = ()) -> Row | None:
        row: Row | None = self._connection.execute(query, values).fetchone()
        return row

    def all(self, query: str, values: Row = ()) -> list[Row]:
        return self._connection.execute(query, values).fetchall()

    def insert(self, table: str, columns: str, values: Row) -> None:
        marks = ", ".join("?" * len(values))
        self.execute(f"INSERT INTO {table} ({columns}) VALUES ({marks})", values)  # noqa: S608

    def add_rows(self, table: str, rows: list[Row]) -> None:
        """Rows of the same table of another file, each with all its columns."""
        for row in rows:
            self.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)  # noqa: S608

    def replace_with(self, other: Database) -> None:
        """Become a copy of the other one: all at once, also for a process that is killed meanwhile."""
        other._connection.backup(self._connection)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All of it or nothing; durable when it ends."""
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")

    def _make(self) -> None:
        """Within a transaction: of two processes that open a new file at once, one finds something to do."""
        if self._version() == VERSION:
            return
        statement = ""
        for line in SCHEMA.splitlines(keepends=True):
            statement += line
            if sqlite3.complete_statement(statement):
                self._connection.execute(statement)
                statement = ""
        self._connection.execute(f"PRAGMA user_version = {VERSION}")

    def _version(self) -> int:
        return int(self._connection.execute("PRAGMA user_version").fetchone()[0])


def row_of(record: object) -> Row:
    """The fields of a dataclass in their order: instants as seconds, and what is no scalar as JSON."""
    return tuple(map(_kept, vars(record).values()))


def _kept(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.timestamp()
    if isinstance(value, dict | tuple):
        return json.dumps(value, ensure_ascii=False, default=vars)
    return value


def instant(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def optional_instant(seconds: float | None) -> datetime | None:
    return None if seconds is None else instant(seconds)
