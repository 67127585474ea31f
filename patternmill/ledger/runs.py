"""Runs: their records, their rows with their outcomes, and the groups of rows that several machines drive."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import orjson
from pydantic import TypeAdapter

from patternmill.catalog.catalog_file import Texts
from patternmill.catalog.row_checks import Entry
from patternmill.catalog.rows import Content, sku_key
from patternmill.errors import LeaseLost, LedgerError
from patternmill.identifiers import ItemKey, RunId
from patternmill.ledger.database import Clock, Database, Tables
from patternmill.ledger.purchases import ATTEMPT_COLUMNS, Purchases, attempt_from
from patternmill.ledger.records import Attempt, Lease, RunGroup, RunRecord, RunRow
from patternmill.ledger.row_outcomes import WITHOUT_END, RowOutcome, outcome_of_row
from patternmill.states import UNDECIDED, RowStatus, Stage

#: Seconds without a beat after which the execution of a group counts as lost.
LOST_AFTER = 10.0
_CHUNK = 500
_RECORD = TypeAdapter(RunRecord)
#: Fields of a row that are not written with it.
_READ_ONLY = frozenset({"outcome", "before", "stages"})
#: In the order of RunRow's fields.
_SELECT = (
    "SELECT position, line, sku, pattern_key, product_key, row, said, corrected, outcome FROM run_rows "
    "WHERE run_id = :run_id "
)
#: How the JSON of a row's outcome begins; its status is cheaper to cut out than to parse 100,000 times.
_BEGINS = '{"status":"'
_BY_STATUS = (
    f"SELECT substr(outcome, {len(_BEGINS) + 1}, {max(map(len, RowStatus)) + 1}) AS status, count(*) "  # noqa: S608
    "FROM run_rows WHERE run_id = :run_id AND outcome IS NOT NULL GROUP BY status"
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


class Runs(Tables):
    """One record for each run, for each row of it by its position in the input, and for each group of rows.

    An execution of a group writes under its own fence, and never waits for another group: a run that takes the
    catalog over closes the groups of the one before it, and so does the end of a run.
    """

    def __init__(self, database: Database, now: Clock, purchases: Purchases) -> None:
        super().__init__(database, now)
        self._purchases = purchases

    def add(self, record: RunRecord, raw: bytes, *, number: int | None = None) -> None:
        """`raw` is the bytes of its input, `number` its lease's fence; None: it never had one."""
        self.keep_document(record.input_sha256, raw)
        scope = {"environment": record.environment, "catalog": record.catalog}
        sql = "SELECT max(started_at) FROM runs WHERE environment = :environment AND catalog = :catalog"
        ((before,),) = self.database.rows(sql, scope)
        self._insert(
            "runs",
            **scope,
            run_id=record.run_id,
            record=orjson.dumps(record).decode(),
            started_at=max(before or 0.0, record.started_at.timestamp()),
            number=number,
        )

    def update(self, record: RunRecord) -> None:
        """Write a run's record anew: its end, outcome and reason, once they are known."""
        self._update(
            "runs",
            {"run_id": record.run_id},
            record=orjson.dumps(record).decode(),
            outcome=record.outcome.value if record.outcome else None,
        )

    def get(self, run_id: RunId) -> RunRecord | None:
        found = self._row("SELECT record FROM runs WHERE run_id = :run_id", run_id=run_id)
        return _RECORD.validate_json(found[0]) if found else None

    def without_end(self, environment: str, catalog: str) -> list[RunRecord]:
        """The runs of a catalog that go on, or crashed."""
        rows = self.database.rows(
            "SELECT record FROM runs WHERE environment = :environment AND catalog = :catalog AND outcome IS NULL "
            "ORDER BY number DESC",
            {"environment": environment, "catalog": catalog},
        )
        return [_RECORD.validate_json(text) for (text,) in rows]

    def last_activity(self, run_id: RunId) -> datetime | None:
        """When the last event of a run was recorded, but for decisions about what it made; None before its first."""
        sql = "SELECT max(at) FROM events WHERE run_id = :run_id AND decision IS NULL"
        found = self._row(sql, run_id=run_id)
        return datetime.fromtimestamp(found[0], UTC) if found and found[0] is not None else None

    def find(self, *, environment: str | None = None, catalog: str | None = None) -> list[RunRecord]:
        """The runs, the newest first: those of one catalog in the order of their leases, whatever the clocks said."""
        rows = self.database.rows(
            "SELECT record FROM runs WHERE coalesce(:environment, environment) = environment "
            "AND coalesce(:catalog, catalog) = catalog ORDER BY started_at DESC, coalesce(number, 0) DESC, run_id",
            {"environment": environment, "catalog": catalog},
        )
        return [_RECORD.validate_json(text) for (text,) in rows]

    def input_of(self, record: RunRecord) -> bytes:
        raw = self.document(record.input_sha256)
        if raw is None:
            raise LedgerError(f"The input of run {record.run_id} is not in the ledger.")
        return raw

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
            self._write_outcomes(record.run_id, chunk)
        return dict(counts)

    def rows_by_status(self, record: RunRecord) -> dict[RowStatus, int]:
        """How many rows of a run have come to each status: as it ended, or by now."""
        if record.outcome is None:
            return dict(Counter(outcome.status for _, outcome in self.rows_with_outcomes(record, now=True)))
        counts: Counter[RowStatus] = Counter()
        for text, count in self.database.rows(_BY_STATUS, {"run_id": record.run_id}):
            counts[RowStatus(text.partition('"')[0])] += count
        return dict(counts)

    def write_decided_rows(self, record: RunRecord) -> None:
        """Write the rows of a run anew that did not come to an end in it, once a person decided about some.

        To be called for a catalog's latest run, with the catalog's lease: nothing else has changed them since.
        """
        for chunk in self._rows_with_outcomes(record, now=True):
            without_end = [one for one in chunk if RowOutcome.of_row(one[0]).status in WITHOUT_END]
            self._write_outcomes(record.run_id, without_end)

    def _write_outcomes(self, run_id: RunId, rows: Iterable[tuple[RunRow, RowOutcome]]) -> None:
        self.database.execute_many(
            "UPDATE run_rows SET outcome = :outcome WHERE run_id = :run_id AND position = :position",
            (
                {"run_id": run_id, "position": row.position, "outcome": outcome.as_json()}
                for row, outcome in rows
            ),
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

    def skus_of(self, run_id: RunId) -> list[str]:
        """Of each row of a run, in their order."""
        query = "SELECT sku FROM run_rows WHERE run_id = :run_id ORDER BY position"
        return [sku for (sku,) in self.database.rows(query, {"run_id": run_id})]

    def texts_of(self, run_id: RunId, *, corrected: bool = False) -> dict[int, tuple[str, Texts]]:
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
        for key in ("pattern_key", "product_key"):
            for values in self.database.rows(
                f"SELECT {ATTEMPT_COLUMNS} FROM run_rows r JOIN attempts a ON a.item_key = r.{key} "  # noqa: S608
                "WHERE r.run_id = :run_id AND r.position BETWEEN :first AND :last ORDER BY a.attempt",
                where,
            ):
                attempt = attempt_from(values)
                found.setdefault(attempt.item_key, {})[attempt.attempt] = attempt
        attempts = {key: tuple(by_number.values()) for key, by_number in found.items()}
        before = {key for chain in self._chains(where).values() for key in chain} - attempts.keys()
        # Without their bodies, which of a reference are as large as its picture.
        return attempts | {
            key: those for key in before if (those := self._purchases.attempts_of(key, bodies=False))
        }

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

    def add_groups(self, run_id: RunId, groups: Iterable[tuple[str, int, int]]) -> None:
        """The work of each group (JSON), how many rows it has, and how many of these are under way since before."""
        for number, (work, rows_left, share) in enumerate(groups, start=1):
            of_rows = {"rows_left": rows_left, "share": share}
            self._insert("run_groups", run_id=run_id, number=number, work=work, fence=0, **of_rows)

    def groups(self, run_id: RunId) -> list[RunGroup]:
        rows = self.database.rows(
            "SELECT number, rows_left, share, beat_at, ended_at, report FROM run_groups "
            "WHERE run_id = :run_id ORDER BY number",
            {"run_id": run_id},
        )
        return [RunGroup(*values) for values in rows]

    def steer_groups(self, run_id: RunId, orders: str | None, more: Mapping[int, int]) -> None:
        """Write what groups read with their beats: the run's orders, and by number how much their shares grow.

        Only the run adds to shares, so that all together never pass its window.
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
        """The fence of a new execution, which ends all earlier ones, with the group's work and share.

        None where it has ended, or its run has.
        """
        rows = self.database.rows(
            "UPDATE run_groups SET fence = fence + 1, beat_at = :now WHERE run_id = :run_id AND number = :number "
            "AND fence IS NOT NULL AND ended_at IS NULL RETURNING fence, work, share",
            {"run_id": run.run_id, "number": number, "now": self.now()},
        )
        scope = run.environment, run.catalog
        return next(((Lease(*scope, fence, run.run_id, group=number), *rest) for fence, *rest in rows), None)

    def check_group(self, lease: Lease) -> None:
        """Raise LeaseLost where another execution has begun; none begins until the transaction ends."""
        found = self._row(
            "SELECT 1 FROM run_groups WHERE run_id = :run_id AND number = :group "  # noqa: S608
            f"AND fence = :fence{self.database.lock_suffix}",
            **vars(lease),
        )
        if found is None:
            raise LeaseLost(
                f"Group {lease.group} of run {lease.run_id} is driven elsewhere by now, or its run has ended.",
                remedy="Nothing that this execution of it does from now on counts.",
            )

    def beat_group(self, lease: Lease, report: str, rows_left: int) -> tuple[str | None, int, int]:
        """A heartbeat, called under the group's fence; a row that has ended leaves the group's share.

        Returns the run's orders, the group's share, and how many groups live.
        """
        now = self.now()
        ((orders, share),) = self.database.rows(
            "UPDATE run_groups SET beat_at = :now, report = :report, rows_left = :rows_left, "
            "share = CASE WHEN share > :rows_left THEN :rows_left ELSE share END "
            "WHERE run_id = :run_id AND number = :number RETURNING orders, share",
            {"now": now, "report": report, "rows_left": rows_left}
            | {"run_id": lease.run_id, "number": lease.group},
        )
        ((living,),) = self.database.rows(
            "SELECT count(*) FROM run_groups WHERE run_id = :run_id AND ended_at IS NULL AND beat_at > :since",
            {"run_id": lease.run_id, "since": now - LOST_AFTER},
        )
        return orders, share, living

    def end_group(self, lease: Lease, report: str) -> None:
        """Called under the group's fence, once nothing more can be done for it in its run."""
        key = {"run_id": lease.run_id, "number": lease.group}
        self._update("run_groups", key, ended_at=self.now(), report=report, rows_left=0, share=0)

    def close_groups(self, environment: str, catalog: str) -> None:
        """No execution of any group of the catalog's runs so far may write any more."""
        self.database.execute(
            "UPDATE run_groups SET fence = NULL WHERE fence IS NOT NULL AND run_id IN "
            "(SELECT run_id FROM runs WHERE environment = :environment AND catalog = :catalog)",
            {"environment": environment, "catalog": catalog},
        )


def _with_chain(row: RunRow, chain: Mapping[ItemKey, Stage] | None) -> RunRow:
    return replace(row, before=tuple(chain)[:-1], stages=tuple(chain.values())) if chain else row


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
