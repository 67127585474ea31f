"""Figures of a ledger in the OpenMetrics format, by environment and catalog: none names a row or a sku."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry, Gauge
from prometheus_client.openmetrics.exposition import CONTENT_TYPE_LATEST, generate_latest

from patternmill.files import sweep, write_whole
from patternmill.ledger.ledger import Ledger
from patternmill.ledger.spending import day_of

CONTENT_TYPE = CONTENT_TYPE_LATEST
METRICS_FILE = "metrics.prom"

#: Each catalog is a scope, and so is each name of its orders.
_SCOPES = "SELECT DISTINCT environment, catalog FROM runs"
_OPEN = """
SELECT i.environment, i.catalog, a.state, count(*) FROM attempts a JOIN items i ON i.key = a.item_key
WHERE a.state IN ('intended', 'accepted', 'held') GROUP BY i.environment, i.catalog, a.state
"""
_SPENT = """
SELECT s.environment, r.catalog, s.currency, sum(s.amount) FROM spending s JOIN runs r ON r.run_id = s.run_id
WHERE s.day = :day GROUP BY s.environment, r.catalog, s.currency
"""
#: The last refresh of each catalog that tried every row.
_REFRESHED = """
SELECT environment, catalog, max(started_at) FROM runs
WHERE outcome IN ('Completed', 'CompletedWithFailures') AND record LIKE '%"changes":{%' GROUP BY environment, catalog
"""
_COUNTS = {
    "jobs_in_flight": ("accepted", "Jobs of the service that have not ended"),
    "requests_in_doubt": ("intended", "Requests that were sent, or are about to be, without an answer"),
    "requests_held": ("held", "Requests that wait for a person's decision"),
}


def metrics(ledger: Ledger, catalog: str | None = None) -> bytes:
    """Return the figures of a ledger, or of one catalog in it, as an OpenMetrics page."""
    registry = CollectorRegistry()
    for name, text, more, rows in _figures(ledger):
        labels = ("environment", "catalog", *more)
        gauge = Gauge(f"patternmill_{name}", text, labels, registry=registry)
        for *values, value in rows:
            if catalog in (None, values[1]):
                gauge.labels(*values).set(float(value))
    page: bytes = generate_latest(registry)  # type: ignore[no-untyped-call]
    return page


def _figures(ledger: Ledger) -> Iterator[tuple[str, str, tuple[str, ...], Iterable[tuple[Any, ...]]]]:
    """Yield the name of each figure, its meaning, its labels besides the scope, and rows of labels and value."""
    rows, today = ledger.database.rows, day_of(ledger.now())
    scopes, counts = rows(_SCOPES), {(*scope, state): count for *scope, state, count in rows(_OPEN)}
    for name, (state, text) in _COUNTS.items():
        yield name, text, (), [(*scope, counts.get((*scope, state), 0)) for scope in scopes]
    spent = "Spent or reserved today (UTC), in minor units of the currency"
    yield "spent_today", spent, ("currency",), rows(_SPENT, day=today)
    refreshed = "When the last refresh that tried every row began"
    yield "last_good_refresh_timestamp_seconds", refreshed, (), rows(_REFRESHED)


def write_metrics(ledger: Ledger, catalog: str, folder: Path) -> None:
    """Write the figures of a catalog into its folder, for what collects such files."""
    sweep(folder, [METRICS_FILE])
    write_whole(folder / METRICS_FILE, [metrics(ledger, catalog)])
