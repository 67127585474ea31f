"""What the ledger holds at a glance: runs in numbers, money, who holds which catalog, and what is open."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from patternmill.identifiers import ItemKey, RequestId, RunId
from patternmill.ledger.ledger import Ledger
from patternmill.ledger.records import Attempt, RunRecord
from patternmill.ledger.row_status import row_standing
from patternmill.states import AttemptState, RowStatus, Stage

#: A row's frozen standing is JSON that begins with its status: cheaper to cut out than to parse 100,000 times.
_STATUS_BEGINS = len('{"status": "') + 1
_STATUS_LENGTH = max(len(status.value) for status in RowStatus) + 1


@dataclass(frozen=True)
class Spent:
    """What was reserved with intents, and not given back. The amount is in minor units."""

    patterns: int = 0
    products: int = 0
    amount: int = 0

    def __add__(self, other: Spent) -> Spent:
        return Spent(
            self.patterns + other.patterns, self.products + other.products, self.amount + other.amount
        )


@dataclass(frozen=True)
class RunInNumbers:
    """A run with its rows by status (those of an open run as they stand now) and what it bought."""

    record: RunRecord
    rows: Mapping[RowStatus, int]
    spent: Spent


@dataclass(frozen=True)
class HeldLease:
    """Who holds a catalog; `holder` is JSON of the process."""

    environment: str
    catalog: str
    run_id: str
    holder: str
    beats: int


@dataclass(frozen=True)
class OpenAttempts:
    """Attempts of one catalog and stage that are in the same open state. `oldest` is in Unix seconds."""

    environment: str
    catalog: str
    stage: Stage
    state: AttemptState
    count: int
    oldest: float


def in_numbers(ledger: Ledger, records: Iterable[RunRecord]) -> Iterator[RunInNumbers]:
    """Each of these runs in numbers."""
    for record in records:
        yield RunInNumbers(record, rows_by_status(ledger, record), spent_by_run(ledger, record.run_id))


def rows_by_status(ledger: Ledger, record: RunRecord) -> dict[RowStatus, int]:
    """How many rows of a run stand how: as they did when it ended, or as they do now."""
    return _open_rows(ledger, record) if record.outcome is None else _ended_rows(ledger, record.run_id)


def spent_by_run(ledger: Ledger, run_id: RunId) -> Spent:
    rows = ledger.database.rows(
        "SELECT stage, sum(items), sum(amount) FROM spending WHERE run_id = :run_id GROUP BY stage",
        {"run_id": run_id},
    )
    return sum((_spent(*row) for row in rows), Spent())


def spent_on(ledger: Ledger, day: str) -> dict[str, Spent]:
    """By environment: what was reserved on a day (UTC, ISO)."""
    found: dict[str, Spent] = {}
    for environment, *row in ledger.database.rows(
        "SELECT environment, stage, sum(items), sum(amount) FROM spending WHERE day = :day "
        "GROUP BY environment, stage ORDER BY environment, stage",
        {"day": day},
    ):
        found[environment] = found.get(environment, Spent()) + _spent(*row)
    return found


def leases(ledger: Ledger) -> list[HeldLease]:
    """The catalogs that somebody holds, dead or alive."""
    rows = ledger.database.rows(
        "SELECT environment, catalog, run_id, holder, beats FROM leases WHERE holder <> '' "
        "ORDER BY environment, catalog"
    )
    return [HeldLease(*row) for row in rows]


def open_attempts(ledger: Ledger) -> list[OpenAttempts]:
    """What the service still owes an answer for, or a person a decision."""
    rows = ledger.database.rows(
        "SELECT i.environment, i.catalog, i.stage, a.state, count(*), "
        "min(CASE a.state WHEN 'accepted' THEN a.accepted_at ELSE a.intended_at END) "
        "FROM attempts a JOIN items i ON i.key = a.item_key "
        "WHERE a.state IN ('intended', 'accepted', 'held') "
        "GROUP BY i.environment, i.catalog, i.stage, a.state "
        "ORDER BY i.environment, i.catalog, i.stage, a.state"
    )
    return [
        OpenAttempts(environment, catalog, Stage(stage), AttemptState(state), count, oldest)
        for environment, catalog, stage, state, count, oldest in rows
    ]


def _spent(stage: str, items: int, amount: int) -> Spent:
    of_patterns = stage == Stage.PATTERN
    return Spent(int(items) if of_patterns else 0, 0 if of_patterns else int(items), int(amount))


def _ended_rows(ledger: Ledger, run_id: RunId) -> dict[RowStatus, int]:
    counts: dict[RowStatus, int] = {}
    for text, count in ledger.database.rows(
        f"SELECT substr(standing, {_STATUS_BEGINS}, {_STATUS_LENGTH}) AS word, count(*) "  # noqa: S608
        "FROM run_rows WHERE run_id = :run_id AND standing IS NOT NULL GROUP BY word",
        {"run_id": run_id},
    ):
        status = RowStatus(text.partition('"')[0])
        counts[status] = counts.get(status, 0) + count
    return counts


def _open_rows(ledger: Ledger, record: RunRecord) -> dict[RowStatus, int]:
    last = "SELECT max(l.attempt) FROM attempts l WHERE l.item_key ="
    counts: dict[RowStatus, int] = {}
    for understood, pattern, product, count in ledger.database.rows(
        "SELECT CASE WHEN r.product_key IS NULL THEN 0 ELSE 1 END AS understood, p.state, q.state, count(*) "  # noqa: S608
        "FROM run_rows r "
        f"LEFT JOIN attempts p ON p.item_key = r.pattern_key AND p.attempt = ({last} r.pattern_key) "
        f"LEFT JOIN attempts q ON q.item_key = r.product_key AND q.attempt = ({last} r.product_key) "
        "WHERE r.run_id = :run_id GROUP BY understood, p.state, q.state",
        {"run_id": record.run_id},
    ):
        status = RowStatus.REFUSED
        if understood:
            status = row_standing(_in_state(pattern), _in_state(product), record.outcome).status
        counts[status] = counts.get(status, 0) + count
    return counts


def _in_state(state: str | None) -> Attempt | None:
    return Attempt(RequestId(""), ItemKey(""), 1, AttemptState(state)) if state else None
