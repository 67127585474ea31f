"""The studio's file: each record as JSON, in a table of its kind. One process uses it, from one thread.

`synchronous=NORMAL` with WAL: what was acknowledged survives any death of the process; a power cut may cost the last
moments.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Annotated, ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict, PlainSerializer
from pydantic_core import to_json

#: Larger than every place in a table.
LAST = 2**63 - 1
#: A file's `user_version`. Raise it when a record changes: files of other versions are refused.
VERSION = 300
PRAGMAS = f"""
    PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA user_version={VERSION};
"""
#: Kept as seconds since 1970, so that its order is that of time.
Instant = Annotated[datetime, PlainSerializer(datetime.timestamp, when_used="json")]


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
        """Open the file for this process alone. Raises sqlite3.Error, and leaves a file of another version as it is."""
        self._connection = connection = sqlite3.connect(path, timeout=0, check_same_thread=False)
        self.close = connection.close
        if connection.execute("PRAGMA user_version").fetchone()[0] not in (0, VERSION):
            raise sqlite3.DatabaseError(
                "its file is of another version of the studio: use that one, or another home"
            )
        connection.executescript(PRAGMAS + "".join(map(_schema, Record.__subclasses__())))

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
            connection.execute(statement, (changed.model_dump_json(), _json(getattr(record, key))))
            self.add(*added)
        return changed

    def find(self, kind: type[AnyRecord], /, **where: object) -> AnyRecord | None:
        """Return the newest record that has these values."""
        return next((record for _, record in self.newest(kind, **where)), None)

    def newest(
        self, kind: type[AnyRecord], before: int = LAST, /, **where: object
    ) -> Iterator[tuple[int, AnyRecord]]:
        """Yield the records that have these values, newest first, each with its place; `before` is a place."""
        conditions = " AND ".join(["seq < ?", *(f"{_value(name)} IS ?" for name in where)])
        query = f"SELECT seq, data FROM {_table(kind)} WHERE {conditions} ORDER BY seq DESC"  # noqa: S608
        for place, data in self._connection.execute(query, (before, *map(_json, where.values()))):
            yield place, kind.model_validate_json(data)


def _table(kind: type[Record]) -> str:
    return f'"{kind.__name__.lower()}"'


def _value(field: str) -> str:
    """Return the JSON of a field: the text itself would end at a NUL."""
    return f"data -> '$.{field}'"


def _json(value: object) -> str:
    return to_json(value).decode()


def _schema(kind: type[Record]) -> str:
    table = _table(kind)
    indexes = [("UNIQUE INDEX", key) for key in kind.KEYS] + [("INDEX", field) for field in kind.FOUND_BY]
    return f"CREATE TABLE IF NOT EXISTS {table} (seq INTEGER PRIMARY KEY, data TEXT NOT NULL);" + "".join(
        f'CREATE {index} IF NOT EXISTS "{table[1:-1]}.{field}" ON {table} ({_value(field)});'
        for index, field in indexes
    )
