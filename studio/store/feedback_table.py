"""Feedback reports, and the settings that are changed while the studio runs."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime

from studio.store.database import Account, Database, instant, row_of


@dataclass(frozen=True)
class Feedback:
    """One report, after redaction."""

    account: Account
    received_at: datetime
    report: dict[str, object]


class FeedbackTable:
    """Reads and writes of the table `feedback`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, feedback: Feedback) -> None:
        self._database.insert("feedback", "account, received_at, report", row_of(feedback))

    def all(self) -> list[Feedback]:
        """Oldest first."""
        rows = self._database.all("SELECT account, received_at, report FROM feedback ORDER BY seq")
        return [Feedback(account, instant(at), json.loads(report)) for account, at, report in rows]


class SettingTable:
    """Reads and writes of the table `setting`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, name: str) -> str | None:
        row = self._database.one("SELECT value FROM setting WHERE name = ?", (name,))
        return None if row is None else str(row[0])

    def set(self, name: str, value: str) -> None:
        self._database.execute("INSERT OR REPLACE INTO setting (name, value) VALUES (?, ?)", (name, value))

    def delete(self, name: str) -> None:
        self._database.execute("DELETE FROM setting WHERE name = ?", (name,))
