"""Sessions of the console, of which only the SHA-256 of their token is kept."""

from __future__ import annotations

from datetime import datetime

from studio.store.database import Database


class SessionTable:
    """Reads and writes of the table `session`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, sha256: str, key_sha256: str, now: datetime, expires_at: datetime) -> None:
        """Keep a session of this key; expired ones are dropped."""
        with self._database.transaction():
            self._database.execute("DELETE FROM session WHERE expires_at <= ?", (now.timestamp(),))
            self._database.execute(
                "INSERT INTO session (sha256, key_sha256, expires_at) VALUES (?, ?, ?)",
                (sha256, key_sha256, expires_at.timestamp()),
            )

    def key_of(self, sha256: str, now: datetime) -> str | None:
        """The SHA-256 of the key with which this session was opened, unless it has expired."""
        query = "SELECT key_sha256 FROM session WHERE sha256 = ? AND expires_at > ?"
        row = self._database.one(query, (sha256, now.timestamp()))
        return None if row is None else str(row[0])

    def delete(self, sha256: str) -> None:
        self._database.execute("DELETE FROM session WHERE sha256 = ?", (sha256,))
