"""Runs: their records, their input files, and their rows."""

from __future__ import annotations

import json
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any

from patternmill.catalog.catalog_file import Texts
from patternmill.catalog.changes import Content
from patternmill.catalog.row_checks import Entry
from patternmill.catalog.rows import sku_key
from patternmill.errors import LedgerError
from patternmill.identifiers import ItemKey, RequestId, RunId
from patternmill.ledger.attempts import ATTEMPT_COLUMNS, ItemTable, attempt_from
from patternmill.ledger.database import Tables
from patternmill.ledger.records import Attempt, RunRecord, RunRow
from patternmill.states import (
    PASSING_REFUSALS,
    UNDECIDED,
    UNFINISHED_ROWS,
    AttemptState,
    Outcome,
    RowStatus,
    Stage,
)


class RunTables(Tables):
    """What was requested in each run, and how it ended."""

    def add_run(self, record: RunRecord, raw: bytes, *, number: int | None = None) -> None:
        """`raw` is the bytes of its input, `number` its lease's fence; None: it never had one."""
        self.keep_document(record.input_sha256, raw)
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

    def runs_without_end(self, environment: str, catalog: str) -> list[RunRecord]:
        """The runs of a catalog that go on, or crashed."""
        rows = self.database.rows(
            "SELECT record FROM runs WHERE environment = :environment AND catalog = :catalog AND outcome IS NULL "
            "ORDER BY number DESC",
            {"environment": environment, "catalog": catalog},
        )
        return [_load_run(text) for (text,) in rows]

    def has_runs(self) -> bool:
        return self._row("SELECT 1 FROM runs LIMIT 1") is not None

    def last_activity(self, run_id: RunId) -> datetime | None:
        """When the last event of a run was recorded; None before its first."""
        found = self._row("SELECT max(at) FROM events WHERE run_id = :run_id", run_id=run_id)
        return datetime.fromtimestamp(found[0], UTC) if found and found[0] is not None else None

    def runs(self, *, environment: str | None = None, catalog: str | None = None) -> list[RunRecord]:
        """The runs, the newest first: those of one catalog in the order of their leases.

        Between catalogs their times order them, as far as the clocks agreed. Runs that never had a lease
        come after the numbered ones of their catalog.
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
        raw = self.document(record.input_sha256)
        if raw is None:
            raise LedgerError(f"The input of run {record.run_id} is not in the ledger.")
        return raw


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
#: `json.dumps` makes one for each call that is not of its default.
_ENCODER = json.JSONEncoder(ensure_ascii=False)
#: Fields of a row that are not written with it.
_READ_ONLY = frozenset({"outcome", "before", "stages"})
#: In the order of RunRow's fields.
_SELECT = (
    "SELECT position, line, sku, pattern_key, product_key, row, said, corrected, outcome FROM run_rows "
    "WHERE run_id = :run_id "
)
#: What the patterns of some rows are built on: each with the pattern's key, the first one made first.
_CHAINS = """
WITH RECURSIVE chain (last, key, stage, parent, depth) AS (
    SELECT i.key, i.key, i.stage, i.pattern_key, 0 FROM items i WHERE i.pattern_key IS NOT NULL AND i.key IN
        (SELECT r.pattern_key FROM run_rows r WHERE r.run_id = :run_id AND r.position BETWEEN :first AND :last)
    UNION ALL
    SELECT c.last, p.key, p.stage, p.pattern_key, c.depth + 1 FROM chain c JOIN items p ON p.key = c.parent
)
SELECT last, key, stage FROM chain ORDER BY last, depth DESC
"""


class RunRowTable(ItemTable):
    """One record for each row of a run, by its position in the input."""

    def add_rows(self, run_id: RunId, rows: Iterable[RunRow]) -> None:
        self.database.execute_many(
            "INSERT INTO run_rows (run_id, position, line, sku, pattern_key, product_key, row, said, corrected) "
            "VALUES (:run_id, :position, :line, :sku, :pattern_key, :product_key, :row, :said, :corrected)",
            (
                {name: value for name, value in vars(row).items() if name not in _READ_ONLY}
                | {"run_id": run_id}
                for row in rows
            ),
        )

    def close_rows(self, record: RunRecord) -> dict[RowStatus, int]:
        """Write the outcome of every row, as the run ends with `record.outcome`; returns the rows by status."""
        counts: Counter[RowStatus] = Counter()
        for chunk in self._rows_with_outcomes(record, now=True):
            counts.update(outcome.status for _, outcome in chunk)
            self.set_row_outcomes(
                record.run_id, ((row.position, outcome.as_json()) for row, outcome in chunk)
            )
        return dict(counts)

    def write_decided_rows(self, record: RunRecord) -> None:
        """Write the rows of a run anew that did not come to an end in it, once a person decided about some.

        To be called for a catalog's latest run, with the catalog's lease: nothing else has changed them since.
        """
        for first in range(0, self.row_count(record.run_id), _CHUNK):
            last = first + _CHUNK - 1
            rows = self.rows_of(record.run_id, first, last)
            if without_end := [row for row in rows if RowOutcome.of_row(row).status in _WITHOUT_END]:
                attempts = self.attempts_of_rows(record.run_id, first, last)
                found = ((row.position, outcome_of_row(row, attempts, record.outcome)) for row in without_end)
                self.set_row_outcomes(record.run_id, ((place, now.as_json()) for place, now in found))

    def set_row_outcomes(self, run_id: RunId, outcomes: Iterable[tuple[int, str]]) -> None:
        self.database.execute_many(
            "UPDATE run_rows SET outcome = :outcome WHERE run_id = :run_id AND position = :position",
            ({"run_id": run_id, "position": position, "outcome": outcome} for position, outcome in outcomes),
        )

    def rows_of(self, run_id: RunId, first: int, last: int) -> list[RunRow]:
        """The rows of a run by position, both ends included."""
        where = {"run_id": run_id, "first": first, "last": last}
        chains = self._chains(where)
        rows = self.database.rows(f"{_SELECT}AND position BETWEEN :first AND :last ORDER BY position", where)
        return [_with_chain(RunRow(*values), chains.get(values[3])) for values in rows]

    def _chains(self, where: Mapping[str, Any]) -> dict[str, dict[ItemKey, Stage]]:
        """By the key of a pattern that is built on something: itself and what it is built on, the first one first."""
        found: dict[str, dict[ItemKey, Stage]] = defaultdict(dict)
        for last, key, stage in self.database.rows(_CHAINS, where):
            found[last][ItemKey(key)] = Stage(stage)
        return found

    def skus_of(self, run_id: RunId) -> list[tuple[int, str, str | None]]:
        """Of each row of a run: its position, its sku, and why it was refused first."""
        rows = self.database.rows(
            "SELECT position, sku, CASE WHEN product_key IS NULL THEN row END FROM run_rows "
            "WHERE run_id = :run_id ORDER BY position",
            {"run_id": run_id},
        )
        return [(position, sku, _first_problem(row)) for position, sku, row in rows]

    def texts_of_run(self, run_id: RunId, *, corrected: bool = False) -> dict[int, tuple[str, Texts]]:
        """By line, of the rows that have a sku of their own: its key, and the texts that counted.

        `corrected`: of those alone in which a person had others than the run's file.
        """
        rows = self.database.rows(
            "SELECT line, sku, said, corrected FROM run_rows WHERE run_id = :run_id "  # noqa: S608
            f"AND {'corrected' if corrected else 'said'} IS NOT NULL",
            {"run_id": run_id},
        )
        return {
            line: (sku_key(sku), {**json.loads(said), **json.loads(change or "{}")})
            for line, sku, said, change in rows
        }

    def row_count(self, run_id: RunId) -> int:
        found = self._row("SELECT count(*) FROM run_rows WHERE run_id = :run_id", run_id=run_id)
        return int(found[0]) if found else 0

    def attempts_of_rows(self, run_id: RunId, first: int, last: int) -> dict[ItemKey, tuple[Attempt, ...]]:
        """Every attempt at the items of some rows of a run (by position, both ends included), by item."""
        found: dict[ItemKey, dict[int, Attempt]] = {}
        where = {"run_id": run_id, "first": first, "last": last}
        columns = ", ".join(f"a.{name}" for name in ATTEMPT_COLUMNS.split(", "))
        for key in ("pattern_key", "product_key"):
            for values in self.database.rows(
                f"SELECT {columns} FROM run_rows r JOIN attempts a ON a.item_key = r.{key} "  # noqa: S608
                "WHERE r.run_id = :run_id AND r.position BETWEEN :first AND :last ORDER BY a.attempt",
                where,
            ):
                attempt = attempt_from(values)
                found.setdefault(attempt.item_key, {})[attempt.attempt] = attempt
        attempts = {key: tuple(by_number.values()) for key, by_number in found.items()}
        before = {key for chain in self._chains(where).values() for key in chain} - attempts.keys()
        # Without their bodies, which of a reference are as large as its picture.
        return attempts | {key: those for key in before if (those := self.attempts_of(key, bodies=False))}

    def rows_with_outcomes(
        self, record: RunRecord, *, now: bool = False
    ) -> Iterator[tuple[RunRow, RowOutcome]]:
        """All rows of a run in their order, each with its outcome: as its run ended, where it has.

        `now`: as it is by now, whatever came later.
        """
        for chunk in self._rows_with_outcomes(record, now=now):
            yield from chunk

    def _rows_with_outcomes(
        self, record: RunRecord, *, now: bool
    ) -> Iterator[list[tuple[RunRow, RowOutcome]]]:
        for first in range(0, self.row_count(record.run_id), _CHUNK):
            last = first + _CHUNK - 1
            rows = self.rows_of(record.run_id, first, last)
            if not now and all(row.outcome for row in rows):
                yield [(row, RowOutcome.of_row(row)) for row in rows]
            else:
                attempts = self.attempts_of_rows(record.run_id, first, last)
                yield [(row, outcome_of_row(row, attempts, record.outcome)) for row in rows]


def _with_chain(row: RunRow, chain: Mapping[ItemKey, Stage] | None) -> RunRow:
    return replace(row, before=tuple(chain)[:-1], stages=tuple(chain.values())) if chain else row


def _first_problem(row: str | None) -> str | None:
    problems = json.loads(row).get("problems") if row else None
    return str(problems[0]["code"]) if problems else None


def last_attempt(attempts: Attempts, key: ItemKey | None) -> Attempt | None:
    return attempts[key][-1] if key is not None and key in attempts else None


def entry_text(entry: Entry, *, undecided: bool = False) -> str:
    """What was understood of a row, or why it was refused; as JSON. `undecided`: it waits for a person's choice."""
    if entry.row is not None:
        content = Content.of(entry.row).as_json()
        return json.dumps(content | {UNDECIDED: True} if undecided else content, ensure_ascii=False)
    problems = [
        {"code": problem.code.value, "message": problem.message, "remedy": problem.remedy}
        for problem in entry.problems
    ]
    return json.dumps({"problems": problems}, ensure_ascii=False)


def outcome_of_row(row: RunRow, attempts: Attempts, outcome: Outcome | None) -> RowOutcome:
    """The outcome of a row by what is known now; `outcome` is the run's, None when it crashed."""
    kept = json.loads(row.row)
    problems = kept.get("problems")
    if problems is not None:
        return RowOutcome(
            RowStatus.REFUSED,
            problems[0]["code"],
            "; ".join(problem["message"] for problem in problems),
            "; ".join(dict.fromkeys(problem["remedy"] for problem in problems if problem["remedy"])),
        )
    needed, product = furthest_attempt(attempts, row.needed), last_attempt(attempts, row.product_key)
    found = row_outcome(needed, product, outcome)
    if (
        UNDECIDED in kept
        and product is None
        and needed is not None
        and needed.state is AttemptState.SUCCEEDED
    ):
        found = _UNDECIDED
    remedy = found.remedy
    if product is None and needed is not None and _may_miss_its_reference(row, needed):
        remedy = _SAVE_ANEW
    items = tuple([ItemOutcome.of(stage, key, last_attempt(attempts, key)) for stage, key in row.chain])
    return RowOutcome(found.status, found.error_code, found.error, remedy, items)


_SAVE_ANEW = (
    "Correct the row as the service says and import the file again. If the service no longer has the reference, "
    "save the picture anew: with other bytes it is uploaded again."
)


def _may_miss_its_reference(row: RunRow, needed: Attempt) -> bool:
    """Whether the service refused a pattern that a reference guides."""
    guided = dict(zip(row.needed[1:], row.stages, strict=False)).get(needed.item_key) is Stage.REFERENCE
    return guided and needed.state is AttemptState.REJECTED


def furthest_attempt(attempts: Attempts, needed: Iterable[ItemKey]) -> Attempt | None:
    """How far a row has come before its product: the last attempt at the last item that was begun.

    `needed`: what its product is built on, in the order in which it is made.
    """
    found = None
    for attempt in (last_attempt(attempts, key) for key in needed):
        begun = attempt is not None and attempt.state is not AttemptState.WITHDRAWN
        found = attempt if begun or found is None else found
    return found


@dataclass(frozen=True, slots=True)
class ItemOutcome:
    """How far one item of a row is, by the last attempt at it."""

    stage: Stage
    key: ItemKey
    #: None, and all that follows: nothing was requested.
    state: AttemptState | None = None
    #: How many there were.
    attempts: int = 0
    request_id: RequestId | None = None
    job_id: str | None = None
    #: The ID of what was made.
    result_id: str | None = None
    picture_url: str | None = None
    #: When it came into this state, in Unix seconds.
    since: float | None = None

    @property
    def kept(self) -> tuple[Any, ...]:
        """The fields after the key, in their order."""
        ids = (self.request_id, self.job_id, self.result_id, self.picture_url)
        return (self.state, self.attempts, *ids, self.since)

    @classmethod
    def of(cls, stage: Stage, key: ItemKey, last: Attempt | None) -> ItemOutcome:
        if last is None:
            return cls(stage, key)
        since = last.ended_at or last.accepted_at or last.intended_at
        made = (last.result_id, last.picture_url)
        return cls(stage, key, last.state, last.attempt, last.request_id, last.job_id, *made, since)


@dataclass(frozen=True, slots=True)
class RowOutcome:
    """What became of a row: its status with the reason and the remedy, and how far its items are."""

    status: RowStatus
    error_code: str | None = None
    error: str | None = None
    remedy: str | None = None
    #: In the order in which they are made; none where the row was refused.
    items: tuple[ItemOutcome, ...] = ()

    def as_json(self) -> str:
        """Its status first, which is counted without the rest; its items as RunRow.chain has them."""
        return _ENCODER.encode(
            {
                "status": self.status,
                "error_code": self.error_code,
                "error": self.error,
                "remedy": self.remedy,
                "items": [item.kept for item in self.items],
            }
        )

    @classmethod
    def of_row(cls, row: RunRow) -> RowOutcome:
        """As it was written when the row's run ended."""
        assert row.outcome is not None, "its run has ended"
        return cls.from_json(row.outcome, row.chain)

    @classmethod
    def from_json(cls, text: str, chain: Sequence[tuple[Stage, ItemKey]] = ()) -> RowOutcome:
        kept = json.loads(text)
        items = tuple(
            ItemOutcome(stage, key, AttemptState(state) if state else None, *rest)
            for (stage, key), (state, *rest) in zip(chain, kept["items"], strict=False)
        )
        return cls(RowStatus(kept["status"]), kept["error_code"], kept["error"], kept["remedy"], items)


#: Of rows that a person's decision may change: those that no run brought to an end.
_WITHOUT_END = UNFINISHED_ROWS | {RowStatus.HELD}
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
        "The run did not wait longer for the service's job, or failed before it ended; the job's ID is kept.",
        "Run the same command again: it asks for the same job.",
    ),
    RowStatus.IN_DOUBT: RowOutcome(
        RowStatus.IN_DOUBT,
        "in_doubt",
        "A request was sent and not clearly answered, so that it is unknown whether the service carried it out.",
        "Run the same command again: it sends the same request, which is not bought twice. "
        "Once it is too old for that, decide with `patternmill settle`.",
    ),
}


_UNDECIDED = RowOutcome(
    RowStatus.WAITING,
    UNDECIDED,
    "A person decides first: its pattern has several takes and none is picked, or it was decided against.",
    "Look at them with `patternmill look`; import again after a pick, or make another take with `patternmill remake`.",
)


def row_outcome(pattern: Attempt | None, product: Attempt | None, outcome: Outcome | None) -> RowOutcome:
    """The outcome of a row that was not refused; `outcome` is the run's, None when it crashed.

    `pattern` is the last attempt at what the product is built on, as far as that has come.
    """
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
