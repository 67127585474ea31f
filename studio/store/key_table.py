"""API keys, of which only the SHA-256 is kept."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from studio.store.database import Account, Database, Row, instant, optional_instant, row_of

COLUMNS = "key_id, account, name, sha256, created_at, used_at, revoked_at"


@dataclass(frozen=True)
class ApiKey:
    """What is known of a key; the key itself is not."""

    key_id: str
    account: Account
    name: str
    sha256: str
    created_at: datetime
    used_at: datetime | None = None
    revoked_at: datetime | None = None


class KeyTable:
    """Reads and writes of the table `api_key`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, key: ApiKey) -> None:
        self._database.insert("api_key", COLUMNS, row_of(key))

    def find(self, sha256: str) -> ApiKey | None:
        """The key of this digest, revoked or not."""
        row = self._database.one(f"SELECT {COLUMNS} FROM api_key WHERE sha256 = ?", (sha256,))  # noqa: S608
        return None if row is None else _key(row)

    def all(self) -> list[ApiKey]:
        """Oldest first."""
        return [_key(row) for row in self._database.all(f"SELECT {COLUMNS} FROM api_key ORDER BY rowid")]  # noqa: S608

    def mark_used(self, key_id: str, at: datetime) -> None:
        self._database.execute("UPDATE api_key SET used_at = ? WHERE key_id = ?", (at.timestamp(), key_id))

    def revoke(self, key_id: str, at: datetime) -> bool:
        """Whether there was such a key that was not revoked before."""
        statement = "UPDATE api_key SET revoked_at = ? WHERE key_id = ? AND revoked_at IS NULL"
        return self._database.execute(statement, (at.timestamp(), key_id)) == 1


def _key(row: Row) -> ApiKey:
    key_id, account, name, sha256, created_at, *times = row
    used_at, revoked_at = map(optional_instant, times)
    return ApiKey(key_id, account, name, sha256, instant(created_at), used_at, revoked_at)
