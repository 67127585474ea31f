"""Runs and their input files."""

from __future__ import annotations

import json
import zlib
from collections import defaultdict, deque
from dataclasses import asdict
from datetime import datetime

from patternmill.errors import LedgerError
from patternmill.identifiers import RunId
from patternmill.ledger.database import Tables
from patternmill.ledger.records import RunRecord
from patternmill.states import Outcome


class RunTables(Tables):
    """What was requested in each run, and how it ended."""

    def add_run(self, record: RunRecord, raw: bytes, *, number: int | None = None) -> None:
        """`raw` is the bytes of its input, `number` its lease's fence; None: it never had one."""
        self.database.execute(
            "INSERT INTO inputs (sha256, raw) VALUES (:sha256, :raw) ON CONFLICT (sha256) DO NOTHING",
            {"sha256": record.input_sha256, "raw": zlib.compress(raw, 6)},
        )
        self._insert(
            "runs",
            run_id=record.run_id,
            environment=record.environment,
            catalog=record.catalog,
            record=_dump_run(record),
            started_at=record.started_at.timestamp(),
            number=number,
        )

    def update_run(self, record: RunRecord) -> None:
        """Write a run's record anew: its end, outcome and reason, once they are known."""
        self._update(
            "runs",
            {"run_id": record.run_id},
            record=_dump_run(record),
            ended_at=record.ended_at.timestamp() if record.ended_at else None,
            outcome=record.outcome.value if record.outcome else None,
        )

    def run(self, run_id: RunId) -> RunRecord | None:
        found = self._row("SELECT record FROM runs WHERE run_id = :run_id", run_id=run_id)
        return _load_run(found[0]) if found else None

    def runs(self, *, environment: str | None = None, catalog: str | None = None) -> list[RunRecord]:
        """The runs, the newest first: those of one catalog in the order of their leases.

        Between catalogs their times order them, as far as the clocks agreed. Runs that never had a lease, and
        those of ledgers that did not number them, come after the numbered ones of their catalog.
        """
        rows = [
            ((its_environment, its_catalog), number, text)
            for its_environment, its_catalog, number, text in self.database.rows(
                "SELECT environment, catalog, coalesce(number, 0), record FROM runs ORDER BY started_at DESC, run_id"
            )
            if environment in (None, its_environment) and catalog in (None, its_catalog)
        ]
        of_scope: dict[tuple[str, str], deque[str]] = defaultdict(deque)
        for scope, _, text in sorted(rows, key=lambda row: row[1], reverse=True):
            of_scope[scope].append(text)
        return [_load_run(of_scope[scope].popleft()) for scope, _, _ in rows]

    def input_of(self, record: RunRecord) -> bytes:
        found = self._row("SELECT raw FROM inputs WHERE sha256 = :sha256", sha256=record.input_sha256)
        if found is None:
            raise LedgerError(f"The input of run {record.run_id} is not in the ledger.")
        return zlib.decompress(found[0])


def _dump_run(record: RunRecord) -> str:
    return json.dumps(asdict(record), ensure_ascii=False, default=datetime.isoformat)


def _load_run(text: str) -> RunRecord:
    values = json.loads(text)
    values["started_at"] = datetime.fromisoformat(values["started_at"])
    if values["ended_at"]:
        values["ended_at"] = datetime.fromisoformat(values["ended_at"])
    if values["outcome"]:
        values["outcome"] = Outcome(values["outcome"])
    return RunRecord(**values)
