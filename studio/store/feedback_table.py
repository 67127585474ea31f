"""Feedback reports, and the settings that are changed while the studio runs."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime

from studio.store.database import Account, Database, instant


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
        self._database.execute(
            "INSERT INTO feedback (account, received_at, report) VALUES (?, ?, ?)",
            (
                feedback.account,
                feedback.received_at.timestamp(),
                json.dumps(feedback.report, ensure_ascii=False),
            ),
        )

    def all(self) -> list[Feedback]:
        """Oldest first."""
        rows = self._database.all("SELECT account, received_at, report FROM feedback ORDER BY seq")
        return [
            Feedback(Account(str(account)), instant(received_at), json.loads(str(report)))
            for account, received_at, report in rows
        ]


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
