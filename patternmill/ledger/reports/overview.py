"""The ledger at a glance: rows of runs by status, and catalogs."""

from __future__ import annotations

from collections import Counter

from patternmill.ledger.ledger import Ledger
from patternmill.ledger.records import RunRecord
from patternmill.states import RowStatus

#: A row's outcome is JSON that begins with its status: cheaper to cut out than to parse 100,000 times.
_STATUS_BEGINS = len('{"status":"') + 1
_STATUS_LENGTH = max(len(status.value) for status in RowStatus) + 1


def rows_by_status(ledger: Ledger, record: RunRecord) -> dict[RowStatus, int]:
    """The rows of a run by status: as it ended, or as they are now."""
    if record.outcome is None:
        return dict(Counter(outcome.status for _, outcome in ledger.rows_with_outcomes(record, now=True)))
    counts: Counter[RowStatus] = Counter()
    for text, count in ledger.database.rows(
        f"SELECT substr(outcome, {_STATUS_BEGINS}, {_STATUS_LENGTH}) AS status, count(*) "  # noqa: S608
        "FROM run_rows WHERE run_id = :run_id AND outcome IS NOT NULL GROUP BY status",
        {"run_id": record.run_id},
    ):
        counts[RowStatus(text.partition('"')[0])] += count
    return dict(counts)


def catalogs(ledger: Ledger) -> list[tuple[str, str]]:
    rows = ledger.database.rows("SELECT DISTINCT catalog, environment FROM catalog_rows")
    return sorted((catalog, environment) for catalog, environment in rows)
