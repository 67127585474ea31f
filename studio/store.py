"""The studio's file: each record as JSON, in a table of its kind. One process uses it, from one thread.

`synchronous=NORMAL` with WAL: what was acknowledged survives any death of the process; a power cut may cost the last
moments.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict, PlainSerializer

#: Larger than every place in a table.
LAST = 2**63 - 1
#: A file's `user_version`. Raise it when a record changes: files of other versions are refused.
VERSION = 300
#: Kept as seconds since 1970, so that its order is that of time.
Instant = Annotated[datetime, PlainSerializer(datetime.timestamp, when_used="json")]


class OtherVersion(Exception):
    """The file belongs to another version of the studio."""


class Record(BaseModel):
    """Something that is kept. `KEYS` are fields that have each value once; the first one names it."""

    model_config = ConfigDict(frozen=True)
    KEYS: ClassVar[tuple[str, ...]] = ()
    #: Other fields by which it is looked for, also inside of others: `subject.design.prompt`.
    FOUND_BY: ClassVar[tuple[str, ...]] = ()


AnyRecord = TypeVar("AnyRecord", bound=Record)


class Store:
    """The open file."""

    def __init__(self, path: Path) -> None:
        """Open the file. Raises OtherVersion and leaves it as it is."""
        self._connection = connection = sqlite3.connect(path, check_same_thread=False)
        self.close = connection.close
        if connection.execute("PRAGMA user_version").fetchone()[0] not in (0, VERSION):
            connection.close()
            raise OtherVersion(f"{path} is of another version of the studio: use that one, or another home.")
        schema = "".join(map(_schema, Record.__subclasses__()))
        pragmas = f"PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA user_version={VERSION};"
        connection.executescript(schema + pragmas)

    def add(self, *records: Record) -> None:
        """Keep all of them or none."""
        with self._connection as connection:
            for record in records:
                statement = f"INSERT INTO {_table(type(record))} (data) VALUES (?)"  # noqa: S608
                connection.execute(statement, (record.model_dump_json(),))

    def change(self, record: AnyRecord, *added: Record, **values: object) -> AnyRecord:
        """Keep the record with other values and what is added, or neither; return it."""
        changed, key = record.model_copy(update=values), record.KEYS[0]
        statement = f"UPDATE {_table(type(record))} SET data = ? WHERE {_value(key)} = ?"  # noqa: S608
        with self._connection as connection:
            connection.execute(statement, (changed.model_dump_json(), getattr(record, key)))
            self.add(*added)
        return changed

    def find(self, kind: type[AnyRecord], /, **where: object) -> AnyRecord | None:
        """Return the newest record that has these values."""
        return next((record for _, record in self.newest(kind, LAST, **where)), None)

    def newest(
        self, kind: type[AnyRecord], before: int = LAST, /, **where: object
    ) -> Iterator[tuple[int, AnyRecord]]:
        """Yield the records that have these values, newest first, each with its place; `before` is a place."""
        for place, data in self._rows(kind, "seq, data", "AND seq < ? ORDER BY seq DESC", before, where):
            yield place, kind.model_validate_json(data)

    def count(self, kind: type[Record], /, **where: object) -> int:
        return int(next(self._rows(kind, "count(*)", "AND ?", 1, where))[0])

    def _rows(
        self, kind: type[Record], what: str, more: str, value: int, where: dict[str, Any]
    ) -> sqlite3.Cursor:
        conditions = " AND ".join([f"{_value(name)} IS ?" for name in where] or ["1"])
        query = f"SELECT {what} FROM {_table(kind)} WHERE {conditions} {more}"  # noqa: S608
        return self._connection.execute(query, (*where.values(), value))


def _table(kind: type[Record]) -> str:
    return f'"{kind.__name__.lower()}"'


def _value(field: str) -> str:
    return f"data ->> '$.{field}'"


def _schema(kind: type[Record]) -> str:
    table = _table(kind)
    indexes = [("UNIQUE INDEX", key) for key in kind.KEYS] + [("INDEX", field) for field in kind.FOUND_BY]
    return f"CREATE TABLE IF NOT EXISTS {table} (seq INTEGER PRIMARY KEY, data TEXT NOT NULL);" + "".join(
        f'CREATE {index} IF NOT EXISTS "{table[1:-1]}.{field}" ON {table} ({_value(field)});'
        for index, field in indexes
    )
