"""The studio's memory: everything that was created, and an append-only record of every create, in one SQLite file."""

from __future__ import annotations

from contextlib import closing
from datetime import datetime
from pathlib import Path

from studio.store.database import Database, Table
from studio.store.records import (
    Account,
    ApiKey,
    Checkout,
    CreateRequest,
    Feedback,
    Job,
    Kind,
    Order,
    RecordLine,
    Reference,
    SessionRecord,
)

#: The name of the database file in a studio's home.
DATABASE = "studio.db"
#: The records that people look at first: lines of the newest checkouts, the newest patterns and products.
NEWEST_PICTURES = """
SELECT picture_id FROM (SELECT picture_id FROM checkout, json_each(checkout.lines) AS line
    JOIN job ON result_id = line.value ->> '$.productId' ORDER BY checkout.seq DESC LIMIT :limit)
UNION ALL SELECT picture_id FROM (SELECT picture_id FROM job WHERE kind = 'pattern' AND failure IS NULL
    AND ends_at <= :now ORDER BY seq DESC LIMIT :limit)
UNION ALL SELECT picture_id FROM (SELECT picture_id FROM job WHERE kind = 'product' AND failure IS NULL
    AND ends_at <= :now ORDER BY seq DESC LIMIT :limit)
"""


class Store:
    """The tables of the studio's file."""

    def __init__(self, path: Path) -> None:
        """Open the store. Raises OtherSchema."""
        self._database = database = Database(path)
        self.transaction = database.transaction
        self.close = database.close
        self.requests = Table(database, "request", CreateRequest)
        self.record = Table(database, "record", RecordLine)
        self.jobs = JobTable(database, "job", Job)
        self.checkouts = Table(database, "checkout", Checkout)
        self.orders = Table(database, "orders", Order)
        self.references = Table(database, "reference", Reference)
        self.keys = Table(database, "api_key", ApiKey)
        self.sessions = Table(database, "session", SessionRecord)
        self.feedback = Table(database, "feedback", Feedback)
        self.settings = Settings(database)

    def reset(self) -> None:
        """Empty all tables but the API keys and the console's sessions, all at once."""
        with closing(Store(Path(":memory:"))) as empty:
            for key in self.keys.all():
                empty.keys.add(key)
            for session in self.sessions.all():
                empty.sessions.add(session)
            self._database.replace_with(empty._database)


class JobTable(Table[Job]):
    """The jobs, and the patterns and products that came of them."""

    def results(
        self, account: Account, kind: Kind, now: datetime, before: int | None, limit: int
    ) -> list[tuple[int, Job]]:
        """Return the newest jobs of a kind that have succeeded, as `page` does."""
        condition = "account = ? AND kind = ? AND failure IS NULL AND ends_at <= ?"
        return self._page(before, limit, condition, (account, kind, now.timestamp()))

    def next_end(self, now: datetime, latest: datetime) -> datetime | None:
        """Return the first end of a running job that is not later than `latest`."""
        query = f"{self._select()} WHERE ends_at > ? AND ends_at <= ? ORDER BY ends_at LIMIT 1"
        rows = self._database.all(query, (now.timestamp(), latest.timestamp()))
        return self._read(rows[0]).ends_at if rows else None

    def newest_pictures(self, now: datetime, limit: int) -> list[str]:
        """Return the picture IDs of what people look at first, so many of each kind."""
        values = {"now": now.timestamp(), "limit": limit}
        return [str(row[0]) for row in self._database.all(NEWEST_PICTURES, values)]

    def times_asked(self, prompt: str) -> int:
        """Return how many patterns of this prompt were asked for, refined ones included."""
        condition = "kind = 'pattern' AND json_extract(subject, '$.design.prompt') = ?"
        return int(self._database.all(f"SELECT count(*) FROM job WHERE {condition}", (prompt,))[0][0])  # noqa: S608


class Settings:
    """Values that are changed while the studio runs, by name."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, name: str) -> str | None:
        rows = self._database.all("SELECT value FROM setting WHERE name = ?", (name,))
        return str(rows[0][0]) if rows else None

    def set(self, name: str, value: str) -> None:
        self._database.execute("INSERT OR REPLACE INTO setting (name, value) VALUES (?, ?)", (name, value))

    def delete(self, name: str) -> None:
        self._database.execute("DELETE FROM setting WHERE name = ?", (name,))


def read_record(path: Path) -> list[RecordLine]:
    """Return the whole record of a studio's file in order, for audits; the studio may be running."""
    with closing(Database(path, read_only=True)) as database:
        return Table(database, "record", RecordLine).all()
