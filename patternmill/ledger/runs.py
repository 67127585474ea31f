"""Runs: their records, their input files, and their rows."""

from __future__ import annotations

import json
import zlib
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from patternmill.catalog.row_checks import Entry
from patternmill.catalog.rows import Row
from patternmill.errors import LedgerError
from patternmill.identifiers import ItemKey, RunId
from patternmill.ledger.attempts import ATTEMPT_COLUMNS, attempt_from
from patternmill.ledger.database import Tables
from patternmill.ledger.records import Attempt, RunRecord, RunRow
from patternmill.states import FINAL_ATTEMPTS, PASSING_REFUSALS, AttemptState, Outcome, RowStatus, Stage


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

    def last_activity(self, run_id: RunId) -> datetime | None:
        """When the last event of a run was recorded; None before its first."""
        found = self._row("SELECT max(at) FROM events WHERE run_id = :run_id", run_id=run_id)
        return datetime.fromtimestamp(found[0], UTC) if found and found[0] is not None else None

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


Attempts = Mapping[ItemKey, tuple[Attempt, ...]]
_CHUNK = 500
#: In the order of RunRow's fields.
_SELECT = "SELECT position, line, sku, pattern_key, product_key, row, standing FROM run_rows WHERE run_id = :run_id "


class RunRowTable(Tables):
    """One record for each row of a run, by its position in the input."""

    def add_rows(self, run_id: RunId, rows: Iterable[RunRow]) -> None:
        self.database.execute_many(
            "INSERT INTO run_rows (run_id, position, line, sku, pattern_key, product_key, row) "
            "VALUES (:run_id, :position, :line, :sku, :pattern_key, :product_key, :row)",
            ({"run_id": run_id, **vars(row)} for row in rows),
        )

    def close_rows(self, record: RunRecord) -> dict[RowStatus, int]:
        """Fix the outcome of every row, as the run ends with `record.outcome`; returns the rows by status."""
        counts: Counter[RowStatus] = Counter()
        for rows, attempts in self.rows_with_attempts(record.run_id):
            ended = []
            for row in rows:
                outcome = outcome_of_row(row, attempts, record.outcome)
                counts[outcome.status] += 1
                ended.append((row.position, _outcome_text(row, outcome, attempts)))
            self.set_row_outcomes(record.run_id, ended)
        return dict(counts)

    def set_row_outcomes(self, run_id: RunId, outcomes: Iterable[tuple[int, str]]) -> None:
        self.database.execute_many(
            "UPDATE run_rows SET standing = :outcome WHERE run_id = :run_id AND position = :position",
            ({"run_id": run_id, "position": position, "outcome": outcome} for position, outcome in outcomes),
        )

    def rows_of(self, run_id: RunId, first: int, last: int) -> list[RunRow]:
        """The rows of a run by position, both ends included."""
        rows = self.database.rows(
            f"{_SELECT}AND position BETWEEN :first AND :last ORDER BY position",
            {"run_id": run_id, "first": first, "last": last},
        )
        return [RunRow(*values) for values in rows]

    def rows_at(self, run_id: RunId, positions: Sequence[int]) -> list[RunRow]:
        """The rows of a run at these positions, which are in order."""
        found: list[RunRow] = []
        for first in range(0, len(positions), _CHUNK):
            chunk = positions[first : first + _CHUNK]
            wanted = frozenset(chunk)
            found += [row for row in self.rows_of(run_id, chunk[0], chunk[-1]) if row.position in wanted]
        return found

    def row_count(self, run_id: RunId) -> int:
        found = self._row("SELECT count(*) FROM run_rows WHERE run_id = :run_id", run_id=run_id)
        return int(found[0]) if found else 0

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

    def rows_with_attempts(self, run_id: RunId) -> Iterator[tuple[list[RunRow], Attempts]]:
        """All rows of a run in their order, some hundred at a time, with the attempts at their items."""
        for first in range(0, self.row_count(run_id), _CHUNK):
            last = first + _CHUNK - 1
            yield self.rows_of(run_id, first, last), self.attempts_of_rows(run_id, first, last)


def last_attempt(attempts: Attempts, key: ItemKey | None) -> Attempt | None:
    return attempts[key][-1] if key is not None and key in attempts else None


def entry_text(entry: Entry) -> str:
    """What was understood of a row, or why it was refused; as JSON."""
    if entry.row is not None:
        return json.dumps(row_content(entry.row), ensure_ascii=False)
    problems = [
        {"code": problem.code.value, "message": problem.message, "remedy": problem.remedy}
        for problem in entry.problems
    ]
    return json.dumps({"problems": problems}, ensure_ascii=False)


def row_content(row: Row) -> dict[str, Any]:
    return {"prompt": row.prompt, "category": row.category_id or row.category, "selections": row.selections}


def outcome_of_row(row: RunRow, attempts: Attempts, outcome: Outcome | None) -> RowOutcome:
    """The outcome of a row by what is known now; `outcome` is the run's, None when it crashed."""
    problems = json.loads(row.row).get("problems")
    if problems is not None:
        return RowOutcome(
            RowStatus.REFUSED,
            problems[0]["code"],
            "; ".join(problem["message"] for problem in problems),
            "; ".join(dict.fromkeys(problem["remedy"] for problem in problems if problem["remedy"])),
        )
    return row_outcome(
        last_attempt(attempts, row.pattern_key), last_attempt(attempts, row.product_key), outcome
    )


def _outcome_text(row: RunRow, outcome: RowOutcome, attempts: Attempts) -> str:
    """The outcome as JSON, with the numbers of attempts, and the open ones as they are."""
    kept: dict[str, Any] = asdict(outcome)
    for stage, key in ((Stage.PATTERN, row.pattern_key), (Stage.PRODUCT, row.product_key)):
        those = attempts.get(key, ()) if key is not None else ()
        kept[stage.value] = len(those)
        if those and those[-1].state not in FINAL_ATTEMPTS:
            kept[f"open_{stage.value}"] = asdict(those[-1]) | {"body": ""}
    return json.dumps(kept, ensure_ascii=False)


@dataclass(frozen=True)
class RowOutcome:
    """A row's status with the reason and the remedy, as results show them."""

    status: RowStatus
    error_code: str | None = None
    error: str | None = None
    remedy: str | None = None

    @classmethod
    def from_json(cls, kept: Mapping[str, Any]) -> RowOutcome:
        """As it was fixed when its run ended."""
        return cls(RowStatus(kept["status"]), kept["error_code"], kept["error"], kept["remedy"])


_UNFINISHED = {
    RowStatus.NOT_STARTED: RowOutcome(
        RowStatus.NOT_STARTED,
        "not_started",
        "The run ended before this row was begun; nothing was bought for it.",
        "Run the same command again.",
    ),
    RowStatus.CANCELLED: RowOutcome(
        RowStatus.CANCELLED,
        "stopped",
        "The run was stopped, or reached a limit, while this row was being made; what was paid for is kept.",
        "Run the same command again, with a higher limit if one was reached: it resumes there.",
    ),
    RowStatus.WAITING: RowOutcome(
        RowStatus.WAITING,
        "gave_up_waiting",
        "The service's job did not end in the time allowed; its job ID is kept.",
        "Run the same command again: it asks for the same job.",
    ),
    RowStatus.IN_DOUBT: RowOutcome(
        RowStatus.IN_DOUBT,
        "in_doubt",
        "A request was sent and its answer was lost, so that it is unknown whether the service has it.",
        "Run the same command again: it sends the same request, which is not bought twice. "
        "Once it is too old for that, decide with `patternmill settle`.",
    ),
}


def row_outcome(pattern: Attempt | None, product: Attempt | None, outcome: Outcome | None) -> RowOutcome:
    """The outcome of a row that was not refused; `outcome` is the run's, None when it crashed."""
    if product is not None and product.state is not AttemptState.WITHDRAWN:
        return _item_outcome(product, Stage.PRODUCT, outcome)
    if pattern is None or pattern.state is AttemptState.WITHDRAWN:
        return _UNFINISHED[RowStatus.NOT_STARTED]
    if pattern.state is AttemptState.SUCCEEDED:
        return _UNFINISHED[RowStatus.CANCELLED]
    return _item_outcome(pattern, Stage.PATTERN, outcome)


def _item_outcome(attempt: Attempt, stage: Stage, outcome: Outcome | None) -> RowOutcome:
    match attempt.state:
        case AttemptState.SUCCEEDED:
            return RowOutcome(RowStatus.SUCCEEDED)
        case AttemptState.FAILED | AttemptState.REJECTED:
            return RowOutcome(
                RowStatus.FAILED,
                attempt.error_code or f"{stage}_failed",
                attempt.error or f"The service could not make the {stage}.",
                _remedy(attempt),
            )
        case AttemptState.HELD:
            return RowOutcome(
                RowStatus.HELD,
                attempt.error_code or "held",
                attempt.error or "The service's answers about this item contradict one another.",
                "Look at it with `patternmill explain`, then decide with `patternmill settle`.",
            )
        case AttemptState.ACCEPTED:
            stopped = outcome in (None, Outcome.CANCELLED)
            return _UNFINISHED[RowStatus.CANCELLED if stopped else RowStatus.WAITING]
        case AttemptState.INTENDED | AttemptState.WITHDRAWN:
            return _UNFINISHED[RowStatus.IN_DOUBT]


def _remedy(attempt: Attempt) -> str:
    if attempt.error_code in PASSING_REFUSALS:
        return (
            "Run the same command again: the same request is sent once more. If it stays, check the address."
        )
    if attempt.state is AttemptState.REJECTED:
        return "Correct the row as the service says and import failures.csv."
    return "Import failures.csv to try again, or change the row first."
