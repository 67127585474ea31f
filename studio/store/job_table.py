"""Jobs, and the patterns and products that came of them."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal, NewType

from studio.store.database import Account, Database, Row, instant, row_of

JobId = NewType("JobId", str)
#: What a job makes.
Kind = Literal["pattern", "product"]
COLUMNS = (
    "job_id, account, operation, kind, request_id, subject, result_id, picture_id, failure,"
    " started_at, ends_at"
)
SELECT = f"SELECT {COLUMNS} FROM job WHERE "  # noqa: S608


@dataclass(frozen=True)
class Job:
    """One piece of work, whose end was settled when it was accepted."""

    job_id: JobId
    account: Account
    operation: str
    kind: Kind
    request_id: str
    subject: dict[str, object]
    result_id: str
    picture_id: str
    failure: str | None
    started_at: datetime
    ends_at: datetime

    def is_running(self, now: datetime) -> bool:
        return now < self.ends_at

    def has_succeeded(self, now: datetime) -> bool:
        return self.failure is None and self.ends_at <= now


class JobTable:
    """Reads and writes of the table `job`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, job: Job) -> None:
        self._database.insert("job", COLUMNS, row_of(job))

    def get(self, account: Account, job_id: str) -> Job | None:
        return self._one("job_id = ? AND account = ?", job_id, account)

    def of_result(self, account: Account, kind: Kind, result_id: str) -> Job | None:
        """The job that makes this pattern or product."""
        return self._one("result_id = ? AND account = ? AND kind = ?", result_id, account, kind)

    def of_picture(self, picture_id: str) -> Job | None:
        return self._one("picture_id = ?", picture_id)

    def page(self, account: Account, before: int | None, limit: int) -> list[tuple[int, Job]]:
        """The newest jobs older than `before`, each with its place."""
        return self._page("account = ?", (account,), before, limit)

    def results(
        self, account: Account, kind: Kind, now: datetime, before: int | None, limit: int
    ) -> list[tuple[int, Job]]:
        """The newest jobs of a kind that have succeeded, older than `before`, each with its place."""
        condition = "account = ? AND kind = ? AND failure IS NULL AND ends_at <= ?"
        return self._page(condition, (account, kind, now.timestamp()), before, limit)

    def next_end(self, now: datetime, latest: datetime) -> datetime | None:
        """The first end of a running job that is not later than `latest`."""
        query = "SELECT min(ends_at) FROM job WHERE ends_at > ? AND ends_at <= ?"
        row = self._database.one(query, (now.timestamp(), latest.timestamp()))
        return None if row is None or row[0] is None else instant(row[0])

    def times_asked(self, prompt: str) -> int:
        """How many patterns of this prompt were asked for, refined ones included."""
        query = "SELECT count(*) FROM job WHERE kind = 'pattern' AND json_extract(subject, '$.prompt') = ?"
        row = self._database.one(query, (prompt,))
        assert row is not None, "a count is always there"
        return int(row[0])

    def prompt_was_asked(self, prompt: str) -> bool:
        return self.times_asked(prompt) > 0

    def _one(self, condition: str, *values: str) -> Job | None:
        row = self._database.one(SELECT + condition, values)
        return None if row is None else _job(row)

    def _page(self, condition: str, values: Row, before: int | None, limit: int) -> list[tuple[int, Job]]:
        query = f"SELECT seq, {COLUMNS} FROM job WHERE {condition} AND seq < ? ORDER BY seq DESC LIMIT ?"  # noqa: S608
        rows = self._database.all(query, (*values, LAST if before is None else before, limit))
        return [(row[0], _job(row[1:])) for row in rows]


#: Larger than every place.
LAST = 2**63 - 1


def _job(row: Row) -> Job:
    job = Job(*row)
    return replace(job, subject=json.loads(row[5]), started_at=instant(row[-2]), ends_at=instant(row[-1]))
