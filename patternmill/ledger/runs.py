"""Runs, their input files and their rows."""

from __future__ import annotations

import json
import zlib
from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import datetime

from patternmill.errors import LedgerError
from patternmill.identifiers import ItemKey, RunId
from patternmill.ledger.attempts import ATTEMPT_COLUMNS, attempt_from
from patternmill.ledger.book import Book
from patternmill.ledger.records import Attempt, RunRecord, RunRow
from patternmill.states import Outcome

_CHUNK = 500


class RunBook(Book):
    """What was asked for in each run, and how its rows stood at its end."""

    def add_run(self, record: RunRecord, raw: bytes, *, number: int | None = None) -> None:
        """Remember a run with the bytes of its input.

        `number` is the fence under which it holds its catalog; None: it never held it.
        """
        self.database.execute(
            "INSERT INTO inputs (sha256, raw) VALUES (:sha256, :raw) ON CONFLICT (sha256) DO NOTHING",
            {"sha256": record.input_sha256, "raw": zlib.compress(raw, 6)},
        )
        self.database.execute(
            "INSERT INTO runs (run_id, environment, catalog, record, started_at, number) "
            "VALUES (:run_id, :environment, :catalog, :record, :started_at, :number)",
            {
                "run_id": record.run_id,
                "environment": record.environment,
                "catalog": record.catalog,
                "record": _dump_run(record),
                "started_at": record.started_at.timestamp(),
                "number": number,
            },
        )

    def update_run(self, record: RunRecord) -> None:
        """Write a run's record anew: its end, outcome and reason, once they are known."""
        self.database.execute(
            "UPDATE runs SET record = :record, ended_at = :ended_at, outcome = :outcome WHERE run_id = :run_id",
            {
                "record": _dump_run(record),
                "ended_at": record.ended_at.timestamp() if record.ended_at else None,
                "outcome": record.outcome.value if record.outcome else None,
                "run_id": record.run_id,
            },
        )

    def run(self, run_id: RunId) -> RunRecord | None:
        rows = self.database.rows("SELECT record FROM runs WHERE run_id = :run_id", {"run_id": run_id})
        return _load_run(rows[0][0]) if rows else None

    def runs(self, *, environment: str | None = None, catalog: str | None = None) -> list[RunRecord]:
        """The runs, the newest first: those of one catalog in the order in which they held it.

        Between catalogs their times order them, as far as the clocks agreed. Runs that never held their catalog, and
        those of ledgers that did not number them, stand behind the numbered ones of it.
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
        """The bytes of a run's input file."""
        rows = self.database.rows(
            "SELECT raw FROM inputs WHERE sha256 = :sha256", {"sha256": record.input_sha256}
        )
        if not rows:
            raise LedgerError(f"The input of run {record.run_id} is not in the ledger.")
        return zlib.decompress(rows[0][0])

    def add_rows(self, run_id: RunId, rows: Iterable[RunRow]) -> None:
        """Remember the rows of a run."""
        self.database.execute_many(
            "INSERT INTO run_rows (run_id, position, line, sku, pattern_key, product_key, row) "
            "VALUES (:run_id, :position, :line, :sku, :pattern_key, :product_key, :row)",
            (
                {
                    "run_id": run_id,
                    "position": row.position,
                    "line": row.line,
                    "sku": row.sku,
                    "pattern_key": row.pattern_key,
                    "product_key": row.product_key,
                    "row": row.row,
                }
                for row in rows
            ),
        )

    def set_standings(self, run_id: RunId, standings: Iterable[tuple[int, str]]) -> None:
        """Fix how each row (by position) stood when the run ended."""
        self.database.execute_many(
            "UPDATE run_rows SET standing = :standing WHERE run_id = :run_id AND position = :position",
            (
                {"run_id": run_id, "position": position, "standing": standing}
                for position, standing in standings
            ),
        )

    def rows_of(self, run_id: RunId, first: int, last: int) -> list[RunRow]:
        """The rows of a run by position, both ends included."""
        return [
            RunRow(
                position,
                line,
                sku,
                pattern_key and ItemKey(pattern_key),
                product_key and ItemKey(product_key),
                row,
                standing,
            )
            for position, line, sku, pattern_key, product_key, row, standing in self.database.rows(
                "SELECT position, line, sku, pattern_key, product_key, row, standing FROM run_rows "
                "WHERE run_id = :run_id AND position BETWEEN :first AND :last ORDER BY position",
                {"run_id": run_id, "first": first, "last": last},
            )
        ]

    def rows_at(self, run_id: RunId, positions: Sequence[int]) -> list[RunRow]:
        """The rows of a run at these positions, which are in order."""
        found: list[RunRow] = []
        for first in range(0, len(positions), _CHUNK):
            chunk = positions[first : first + _CHUNK]
            wanted = frozenset(chunk)
            found += [row for row in self.rows_of(run_id, chunk[0], chunk[-1]) if row.position in wanted]
        return found

    def row_count(self, run_id: RunId) -> int:
        return int(
            self.database.rows("SELECT count(*) FROM run_rows WHERE run_id = :run_id", {"run_id": run_id})[0][
                0
            ]
        )

    def attempts_of_rows(self, run_id: RunId, first: int, last: int) -> dict[ItemKey, tuple[Attempt, ...]]:
        """Every attempt at the items of some rows of a run (by position, both ends included), by item."""
        found: dict[ItemKey, dict[int, Attempt]] = {}
        columns = ", ".join(f"a.{name}" for name in ATTEMPT_COLUMNS.split(", "))
        for key in ("pattern_key", "product_key"):
            for values in self.database.rows(
                f"SELECT {columns} FROM run_rows r JOIN attempts a ON a.item_key = r.{key} "  # noqa: S608
                "WHERE r.run_id = :run_id AND r.position BETWEEN :first AND :last ORDER BY a.attempt",
                {"run_id": run_id, "first": first, "last": last},
            ):
                attempt = attempt_from(values)
                found.setdefault(attempt.item_key, {})[attempt.attempt] = attempt
        return {key: tuple(by_number.values()) for key, by_number in found.items()}


def _key(text: str | None) -> ItemKey | None:
    return ItemKey(text) if text is not None else None


def _dump_run(record: RunRecord) -> str:
    values = asdict(record)
    for name in ("started_at", "ended_at"):
        values[name] = values[name].isoformat() if values[name] else None
    return json.dumps(values, ensure_ascii=False)


def _load_run(text: str) -> RunRecord:
    values = json.loads(text)
    values["started_at"] = datetime.fromisoformat(values["started_at"])
    if values["ended_at"]:
        values["ended_at"] = datetime.fromisoformat(values["ended_at"])
    if values["outcome"]:
        values["outcome"] = Outcome(values["outcome"])
    return RunRecord(**values)
