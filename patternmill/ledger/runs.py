"""Runs: their records, their rows with their outcomes, and the groups of rows that several machines drive."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import orjson
from pydantic import TypeAdapter

from patternmill.errors import ConfigurationError, LeaseLost, LedgerError
from patternmill.identifiers import ItemKey, RunId
from patternmill.ledger.database import Clock, Database, Tables
from patternmill.ledger.purchases import WITHOUT_BODIES, Purchases
from patternmill.ledger.records import (
    FORGOTTEN,
    LOST_AFTER,
    Attempt,
    Lease,
    RowDecision,
    RunGroup,
    RunRecord,
    RunRow,
    row_content,
)
from patternmill.ledger.row_outcomes import WITHOUT_END, ItemOutcome, RowOutcome, outcome_of_row
from patternmill.planning.rows import Content, Entry, RowRecord, sku_key
from patternmill.states import RowStatus, Stage

#: The number of rows read at once, and the highest position of a row.
_CHUNK, _LAST = 500, 2**31 - 1
_RECORD = TypeAdapter(RunRecord)
#: Selects columns in the order of RunRow's fields.
_SELECT = """
SELECT position, line, sku, pattern_key, product_key, row, coalesce(outcome, '')
FROM run_rows WHERE run_id = :run_id AND position BETWEEN :first AND :last ORDER BY position
"""
#: The beginning of the JSON of an outcome; cutting the status out is cheaper than parsing JSON 100,000 times.
_BEGINS = '{"status":"'
_BY_STATUS = (
    f"SELECT substr(outcome, {len(_BEGINS) + 1}, {max(map(len, RowStatus)) + 1}) AS status, count(*) "
    "FROM run_rows WHERE run_id = :run_id GROUP BY status"
)
#: Selects the product that a catalog has for a sku, after the item that it is built on.
_KEPT = """
SELECT i.stage, i.key FROM catalog_rows c JOIN items p ON p.key = c.product_key
JOIN items i ON i.key IN (p.pattern_key, p.key)
WHERE c.environment = :environment AND c.catalog = :catalog AND c.sku_key = :sku_key AND c.retired_at IS NULL
ORDER BY CASE i.stage WHEN 'product' THEN 1 ELSE 0 END
"""
#: Selects the chains of items that lead to the patterns of some rows, by the pattern's key, in the order of making.
_CHAINS = """
WITH RECURSIVE chain (last, key, stage, parent, depth) AS (
    SELECT i.key, i.key, i.stage, i.pattern_key, 0 FROM items i WHERE i.pattern_key IS NOT NULL AND i.key IN
        (SELECT r.pattern_key FROM run_rows r WHERE r.run_id = :run_id AND r.position BETWEEN :first AND :last)
    UNION ALL
    SELECT c.last, p.key, p.stage, p.pattern_key, c.depth + 1 FROM chain c JOIN items p ON p.key = c.parent
)
SELECT last, key, stage FROM chain ORDER BY last, depth DESC
"""

#: The last attempts at the items of some rows, and at what these are built on.
_LAST_ATTEMPTS = f"""
WITH RECURSIVE named (key) AS (
    SELECT i.key FROM run_rows r JOIN items i ON i.key IN (r.pattern_key, r.product_key)
        WHERE r.run_id = :run_id AND r.position BETWEEN :first AND :last
    UNION
    SELECT i.pattern_key FROM named n JOIN items i ON i.key = n.key WHERE i.pattern_key IS NOT NULL
)
SELECT {WITHOUT_BODIES} FROM named n JOIN attempts a ON a.item_key = n.key
WHERE a.attempt = (SELECT max(b.attempt) FROM attempts b WHERE b.item_key = n.key)
"""
_WRITE_OUTCOME = "UPDATE run_rows SET outcome = :outcome WHERE run_id = :run_id AND position = :position"


class Runs(Tables):
    """The records of runs, of their rows by position in the input, and of their groups of rows.

    An execution of a group writes under its own fence and never waits for another group. A run that takes over the
    catalog closes the groups of the run before it, and a run that ends closes its own.
    """

    def __init__(self, database: Database, now: Clock, purchases: Purchases) -> None:
        super().__init__(database, now)
        self._purchases = purchases

    def add(self, record: RunRecord, raw: bytes, *, number: int | None = None) -> None:
        """Put a run on record; `raw` is its input, `number` the fence of its lease (None: it never had one)."""
        self.keep_document(record.input_sha256, raw)
        sql = "SELECT max(started_at) FROM runs WHERE environment = :environment AND catalog = :catalog"
        ((before,),) = self.database.rows(sql, vars(record))
        self._insert(
            "runs",
            run_id=record.run_id,
            environment=record.environment,
            catalog=record.catalog,
            record=orjson.dumps(record).decode(),
            started_at=max(before or 0.0, record.started_at.timestamp()),
            number=number,
        )

    def update(self, record: RunRecord) -> None:
        """Write a run's record again, once its end, outcome and reason are known."""
        self._update(
            "runs",
            {"run_id": record.run_id},
            record=orjson.dumps(record).decode(),
            outcome=record.outcome.value if record.outcome else None,
        )

    def get(self, run_id: RunId) -> RunRecord | None:
        """Return the record of a run."""
        return next(self._records("WHERE run_id = :run_id", run_id=run_id), None)

    def without_end(self, environment: str, catalog: str) -> list[RunRecord]:
        """Return the runs of a catalog that have not ended: they are running, or crashed."""
        where = (
            "WHERE environment = :environment AND catalog = :catalog AND outcome IS NULL ORDER BY number DESC"
        )
        return list(self._records(where, environment=environment, catalog=catalog))

    def last_activity(self, run_id: RunId) -> datetime | None:
        """Return when the last event of a run was recorded, not counting decisions about what it made."""
        sql = "SELECT max(at) FROM events WHERE run_id = :run_id AND decision IS NULL"
        ((at,),) = self.database.rows(sql, run_id=run_id)
        return datetime.fromtimestamp(at, UTC) if at is not None else None

    def find(self, *, environment: str | None = None, catalog: str | None = None) -> list[RunRecord]:
        """Return runs, the newest first: those of one catalog in the order of their leases, whatever clocks said."""
        where = (
            "WHERE coalesce(:environment, environment) = environment AND coalesce(:catalog, catalog) = catalog "
            "ORDER BY started_at DESC, coalesce(number, 0) DESC, run_id"
        )
        return list(self._records(where, environment=environment, catalog=catalog))

    def _records(self, where: str, **params: str | None) -> Iterator[RunRecord]:
        for (text,) in self.database.rows(f"SELECT record FROM runs {where}", params):
            yield _RECORD.validate_json(text)

    def input_of(self, record: RunRecord) -> bytes:
        """Return the bytes of a run's input. Raises ConfigurationError for a run whose rows were forgotten."""
        if FORGOTTEN in record.options:
            raise ConfigurationError(
                f"The rows of run {record.run_id} were forgotten on {record.options[FORGOTTEN]}.",
                code="forgotten",
                remedy="See what its catalog has now: `patternmill catalog`.",
            )
        raw = self.document(record.input_sha256)
        if raw is None:
            raise LedgerError(f"The input of run {record.run_id} is not in the ledger.")
        return raw

    def add_rows(self, run_id: RunId, rows: Iterable[RunRow]) -> None:
        """Write the rows of a run as they were planned."""
        self.database.execute_many(
            "INSERT INTO run_rows (run_id, position, line, sku, sku_key, pattern_key, product_key, row) "
            "VALUES (:run_id, :position, :line, :sku, :sku_key, :pattern_key, :product_key, :row)",
            ({**vars(row), "run_id": run_id, "sku_key": sku_key(row.sku)} for row in rows),
        )

    def close_rows(self, record: RunRecord) -> dict[RowStatus, int]:
        """Write the outcome of every row, as the run ends with `record.outcome`; return the rows by status."""
        self._write_outcomes(record)
        return self.rows_by_status(record)

    def write_decided_rows(self, record: RunRecord) -> None:
        """Rewrite the outcomes of rows that had no end in their run, after a person decided about some of them.

        Call this for a catalog's latest run, with the catalog's lease, so that nothing else has changed the rows since.
        """
        self._write_outcomes(record, among=WITHOUT_END)

    def _write_outcomes(self, record: RunRecord, among: Collection[RowStatus] | None = None) -> None:
        """Write the present outcomes of a run's rows; with `among`, only of those recorded with these statuses."""
        outcomes = (
            {"run_id": record.run_id, "position": row.position, "outcome": outcome.as_json()}
            for row, outcome in self.rows_with_outcomes(record, now=True)
            if among is None or RowOutcome.parse(row.outcome).status in among
        )
        self.database.execute_many(_WRITE_OUTCOME, outcomes)

    def rows_by_status(self, record: RunRecord) -> dict[RowStatus, int]:
        """Return how many rows of a run have each status: as the run left them, or now if it has not ended."""
        recorded = self.database.rows(_BY_STATUS, run_id=record.run_id)
        counts: Counter[RowStatus] = Counter()
        for text, count in recorded:
            if text is None:
                return dict(Counter(row.status for _, row in self.rows_with_outcomes(record, now=True)))
            counts[RowStatus(text.partition('"')[0])] += count
        return dict(counts)

    def rows_of(self, run_id: RunId, first: int = 0, last: int = _LAST) -> list[RunRow]:
        """Return the rows of a run by position, both ends included."""
        where = {"run_id": run_id, "first": first, "last": last}
        chains: dict[str, tuple[tuple[Stage, ItemKey], ...]] = defaultdict(tuple)
        for pattern, key, stage in self.database.rows(_CHAINS, where):
            chains[pattern] += ((Stage(stage), ItemKey(key)),)
        return [RunRow(*(*row, chains[row[3]])) for row in self.database.rows(_SELECT, where)]

    def later_requests(self, record: RunRecord) -> list[tuple[str, ItemKey | None, RunId]]:
        """Return what later runs of the catalog have for the skus of a run, the oldest first.

        Each is the key of the sku, the product item (None where the row was refused), and the run.
        """
        rows: list[Any] = self.database.rows(
            "SELECT l.sku_key, l.product_key, n.run_id FROM runs n JOIN run_rows l ON l.run_id = n.run_id "
            "JOIN run_rows o ON o.sku_key = l.sku_key AND o.run_id = :run_id "
            "WHERE n.environment = :environment AND n.catalog = :catalog "
            "AND n.number > (SELECT number FROM runs WHERE run_id = :run_id) ORDER BY n.number",
            vars(record),
        )
        return rows

    def rows_with_outcomes(
        self, record: RunRecord, *, now: bool = False
    ) -> Iterator[tuple[RunRow, RowOutcome]]:
        """Yield the rows of a run in order, each with its outcome: as the run left it, if the run has ended.

        With `now`, each outcome is as it is now, with whatever happened after the run.
        """
        for first in range(0, _LAST, _CHUNK):
            rows = self.rows_of(record.run_id, first, first + _CHUNK - 1)
            if not rows:
                return
            if not now and all(row.outcome for row in rows):
                yield from ((row, RowOutcome.parse(row.outcome)) for row in rows)
                continue
            attempts = self.last_attempts(record.run_id, first, first + _CHUNK - 1)
            yield from ((row, self._outcome_by_now(record, row, attempts)) for row in rows)

    def last_attempts(self, run_id: RunId, first: int, last: int) -> dict[ItemKey, Attempt]:
        """Return the last attempts at the items of some rows of a run and at what they are built on, without bodies."""
        where = {"run_id": run_id, "first": first, "last": last, "nothing": b""}
        return {row[1]: Attempt.of(row) for row in self.database.rows(_LAST_ATTEMPTS, where)}

    def _outcome_by_now(
        self, record: RunRecord, row: RunRow, attempts: Mapping[ItemKey, Attempt]
    ) -> RowOutcome:
        if row.decision is None:
            return outcome_of_row(row, attempts, record.outcome)
        takes = {key: last for key in row.decision.takes if (last := self._purchases.last_attempt(key))}
        return outcome_of_row(row, {**attempts, **takes}, record.outcome, self.kept_product(record, row))

    def kept_product(self, record: RunRecord, row: RunRow) -> tuple[ItemOutcome, ...]:
        """Return what a catalog's product is built on, then that product, for a row that a person decides about."""
        if row.decision is None:
            return ()
        items = self.database.rows(_KEPT, vars(record), sku_key=sku_key(row.sku))
        return tuple(
            ItemOutcome.of(Stage(stage), key, self._purchases.last_attempt(key)) for stage, key in items
        )

    def row_records(self, record: RunRecord, *, now: bool = False) -> Iterator[RowRecord]:
        """Yield the rows of a run in order, with their outcomes as JSON: as the run left them, if it has ended.

        With `now`, they are as they are now, with whatever happened after the run.
        """
        if now or record.outcome is None:
            for row, outcome in self.rows_with_outcomes(record, now=True):
                yield RowRecord(row.line, row.sku, row.row, outcome.as_json())
            return
        sql = "SELECT line, sku, row, outcome FROM run_rows WHERE run_id = :run_id ORDER BY position"
        yield from map(RowRecord._make, self.database.stream(sql, run_id=record.run_id))

    def add_groups(self, run_id: RunId, groups: Iterable[tuple[str, int, int]]) -> None:
        """Write each group: its work (JSON), its number of rows, and how many of these an earlier run has begun."""
        for number, (work, rows_left, share) in enumerate(groups, start=1):
            key = {"run_id": run_id, "number": number}
            self._insert("run_groups", **key, work=work, fence=0, rows_left=rows_left, share=share)

    def groups(self, run_id: RunId) -> list[RunGroup]:
        """Return the groups of a run in their order."""
        rows = self.database.rows(
            "SELECT number, rows_left, share, beat_at, ended_at, report FROM run_groups "
            "WHERE run_id = :run_id ORDER BY number",
            run_id=run_id,
        )
        return [RunGroup(*values) for values in rows]

    def steer_groups(self, run_id: RunId, orders: str | None, more: Mapping[int, int]) -> None:
        """Write what groups read when they beat: the run's orders, and by how much the share of each grows, by number.

        Only the run adds to shares, so that their sum never exceeds its window.
        """
        self.database.execute_many(
            "UPDATE run_groups SET orders = :orders, share = share + :more "
            "WHERE run_id = :run_id AND number = :number AND ended_at IS NULL",
            (
                {"run_id": run_id, "orders": orders, "number": number, "more": count}
                for number, count in more.items()
            ),
        )

    def begin_group(self, run: RunRecord, number: int) -> tuple[Lease, str, int] | None:
        """Begin a new execution, which ends all earlier ones; return its lease, with the group's work and share.

        Returns None where the group or its run has ended.
        """
        row = self._row(
            "UPDATE run_groups SET fence = fence + 1, beat_at = :now WHERE run_id = :run_id AND number = :number "
            "AND fence IS NOT NULL AND ended_at IS NULL RETURNING fence, work, share",
            run_id=run.run_id,
            number=number,
            now=self.now(),
        )
        if row is None:
            return None
        fence, work, share = row
        return Lease(run.environment, run.catalog, fence, run.run_id, group=number), work, share

    def check_group(self, lease: Lease) -> None:
        """Raise LeaseLost if another execution has begun; none can begin before this transaction ends."""
        query = "SELECT 1 FROM run_groups WHERE run_id = :run_id AND number = :group AND fence = :fence"
        if self._row(query + self.database.lock_suffix, vars(lease)) is None:
            raise LeaseLost(
                f"Group {lease.group} of run {lease.run_id} is driven elsewhere by now, or its run has ended.",
                remedy="Nothing that this execution does from now on counts.",
            )

    def beat_group(
        self, lease: Lease, report: str, rows_left: int, brake: int
    ) -> tuple[str | None, int, int]:
        """Record a heartbeat, under the group's fence; a group's share never exceeds its rows left.

        `brake` is the count that the execution acknowledges. Returns the run's orders, the group's share, and the
        number of living groups.
        """
        now = self.now()
        ((orders, share),) = self.database.rows(
            "UPDATE run_groups SET beat_at = :now, report = :report, rows_left = :rows_left, "
            "brake = :brake, share = CASE WHEN share > :rows_left THEN :rows_left ELSE share END "
            "WHERE run_id = :run_id AND number = :group RETURNING orders, share",
            vars(lease),
            now=now,
            report=report,
            rows_left=rows_left,
            brake=brake,
        )
        ((living,),) = self.database.rows(
            "SELECT count(*) FROM run_groups WHERE run_id = :run_id AND ended_at IS NULL AND beat_at > :since",
            run_id=lease.run_id,
            since=now - LOST_AFTER,
        )
        return orders, share, living

    def end_group(self, lease: Lease, report: str) -> None:
        """End a group, under its fence, once nothing more can be done for it in its run."""
        key = {"run_id": lease.run_id, "number": lease.group}
        self._update("run_groups", key, ended_at=self.now(), report=report, rows_left=0, share=0)

    def close_groups(self, environment: str, catalog: str) -> None:
        """Stop all executions of groups of a catalog's runs so far from writing."""
        self.database.execute(
            "UPDATE run_groups SET fence = NULL WHERE fence IS NOT NULL AND run_id IN "
            "(SELECT run_id FROM runs WHERE environment = :environment AND catalog = :catalog)",
            environment=environment,
            catalog=catalog,
        )


def entry_text(entry: Entry, decision: RowDecision | None = None) -> str:
    """Return what was understood of a row, or why it was refused, as JSON.

    `decision`: why no product is made for it.
    """
    if entry.row is not None:
        return row_content(Content.of(entry.row).as_json(), decision)
    problems = [
        {"code": problem.code.value, "message": problem.message, "remedy": problem.remedy}
        for problem in entry.problems
    ]
    return json.dumps({"problems": problems}, ensure_ascii=False)
