"""The ledger at a glance: runs in numbers, money, catalogs, and what is open."""

from __future__ import annotations

from collections import Counter

from patternmill.identifiers import ItemKey, RequestId, RunId
from patternmill.ledger.ledger import Ledger
from patternmill.ledger.records import Attempt, RunRecord
from patternmill.ledger.row_outcomes import row_outcome
from patternmill.ledger.spending import Spent, spent_of
from patternmill.states import AttemptState, RowStatus

#: A row's outcome is JSON that begins with its status: cheaper to cut out than to parse 100,000 times.
_STATUS_BEGINS = len('{"status":"') + 1
_STATUS_LENGTH = max(len(status.value) for status in RowStatus) + 1


def rows_by_status(ledger: Ledger, record: RunRecord) -> dict[RowStatus, int]:
    """The rows of a run by status: as it ended, or as they are now."""
    return _open_rows(ledger, record) if record.outcome is None else _ended_rows(ledger, record.run_id)


def spent_on(ledger: Ledger, day: str) -> dict[str, Spent]:
    """By environment: what was reserved on a day (UTC, ISO)."""
    found: dict[str, Spent] = {}
    for environment, *row in ledger.database.rows(
        "SELECT environment, stage, sum(items), sum(amount) FROM spending WHERE day = :day "
        "GROUP BY environment, stage ORDER BY environment, stage",
        {"day": day},
    ):
        found[environment] = found.get(environment, Spent()) + spent_of(*row)
    return found


def catalogs(ledger: Ledger) -> list[tuple[str, str]]:
    rows = ledger.database.rows("SELECT DISTINCT catalog, environment FROM catalog_rows")
    return sorted((catalog, environment) for catalog, environment in rows)


def _ended_rows(ledger: Ledger, run_id: RunId) -> dict[RowStatus, int]:
    counts: Counter[RowStatus] = Counter()
    for text, count in ledger.database.rows(
        f"SELECT substr(outcome, {_STATUS_BEGINS}, {_STATUS_LENGTH}) AS status, count(*) "  # noqa: S608
        "FROM run_rows WHERE run_id = :run_id AND outcome IS NOT NULL GROUP BY status",
        {"run_id": run_id},
    ):
        counts[RowStatus(text.partition('"')[0])] += count
    return dict(counts)


def _open_rows(ledger: Ledger, record: RunRecord) -> dict[RowStatus, int]:
    if _has_longer_chains(ledger, record.run_id):
        return dict(Counter(outcome.status for _, outcome in ledger.rows_with_outcomes(record, now=True)))
    last = "SELECT max(l.attempt) FROM attempts l WHERE l.item_key ="
    counts: Counter[RowStatus] = Counter()
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
            status = row_outcome(_in_state(pattern), _in_state(product), record.outcome).status
        counts[status] += count
    return dict(counts)


def _has_longer_chains(ledger: Ledger, run_id: RunId) -> bool:
    """Whether a pattern of the run is built on something."""
    return bool(
        ledger.database.rows(
            "SELECT 1 FROM run_rows r JOIN items i ON i.key = r.pattern_key "
            "WHERE r.run_id = :run_id AND i.pattern_key IS NOT NULL LIMIT 1",
            {"run_id": run_id},
        )
    )


def _in_state(state: str | None) -> Attempt | None:
    return Attempt(RequestId(""), ItemKey(""), 1, AttemptState(state)) if state else None
