"""The whole story of one row or item, in the order in which it happened."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from patternmill.identifiers import ItemKey
from patternmill.ledger.ledger import Ledger
from patternmill.ledger.records import RunRecord, RunRow
from patternmill.ledger.reports.items import RecordedItem, item_called
from patternmill.ledger.reports.order_report import CheckoutRecord, checkouts_of_products
from patternmill.ledger.row_outcomes import RowOutcome, outcome_of_row
from patternmill.states import Stage


@dataclass(frozen=True)
class StoryEvent:
    """One line of the story. `what` is a state of an attempt, or another kind of event."""

    at: float
    run_id: str
    what: str
    detail: str | None = None
    stage: Stage | None = None
    attempt: int | None = None


@dataclass(frozen=True)
class Story:
    """Everything known of one sku in one catalog; or of a pattern, and then `sku` is None."""

    environment: str
    catalog: str
    sku: str | None
    #: Each with the row as it had it.
    runs: tuple[tuple[RunRecord, RunRow], ...]
    items: tuple[RecordedItem, ...]
    events: tuple[StoryEvent, ...]
    #: The skus whose products are built on the (latest) pattern.
    sharing: tuple[str, ...]
    #: The checkouts that its products are in, the oldest first.
    checkouts: tuple[CheckoutRecord, ...] = ()
    #: When the source had the sku no longer (Unix seconds), and which run found that.
    retired: tuple[float, str | None] | None = None

    @property
    def now(self) -> RowOutcome | None:
        """The outcome of the row as of now, by its latest run; None for a pattern alone."""
        if not self.runs:
            return None
        record, row = self.runs[-1]
        attempts = {item.key: item.attempts for item in self.items if item.attempts}
        return outcome_of_row(row, attempts, record.outcome)

    def is_of_earlier_request(self, item: ItemKey) -> bool:
        """Whether the latest run had another item in its place."""
        return bool(self.runs) and all(key != item for _, key in self.runs[-1][1].chain)


def stories(
    ledger: Ledger, name: str, catalog: str | None = None, environment: str | None = None
) -> list[Story]:
    """What is known under a name: a sku, or the ID of a product, pattern, job, request or item.

    One story for each catalog that has the sku (None: of any), and none when nothing has that name.
    """
    named = _items_named(ledger, name)
    rows = [(item.environment, item.catalog, item.sku) for item in named if item.sku]
    patterns = [item for item in named if not item.sku and item.stage is not Stage.CHECKOUT]
    for checkout in named:
        for line in ledger.purchases.checkout(checkout.key)[0]:
            rows += [
                (item.environment, item.catalog, line.sku) for item in _items(ledger, [line.product_key])
            ]
    rows += [
        (its_environment, its_catalog, name) for its_environment, its_catalog in _scopes_of(ledger, name)
    ]
    found = [_pattern_story(ledger, item) for item in patterns]
    found += [_row_story(ledger, *scope) for scope in dict.fromkeys(rows)]
    return [
        story
        for story in found
        if catalog in (None, story.catalog) and environment in (None, story.environment)
    ]


def _items_named(ledger: Ledger, name: str) -> list[RecordedItem]:
    keys = [name]
    for column in ("request_id", "job_id", "result_id"):
        query = f"SELECT item_key FROM attempts WHERE {column} = :name"  # noqa: S608
        keys += [key for (key,) in ledger.database.rows(query, {"name": name})]
    return _items(ledger, dict.fromkeys(keys))


def _items(ledger: Ledger, keys: Iterable[str]) -> list[RecordedItem]:
    """With their attempts; those of the keys that are of items."""
    return [item for key in keys if (item := item_called(ledger, key)) is not None]


def _scopes_of(ledger: Ledger, sku: str) -> list[tuple[Any, ...]]:
    return ledger.database.rows(
        "SELECT DISTINCT r.environment, r.catalog FROM run_rows w JOIN runs r ON r.run_id = w.run_id "
        "WHERE w.sku = :sku ORDER BY r.environment, r.catalog",
        {"sku": sku},
    )


def _row_story(ledger: Ledger, environment: str, catalog: str, sku: str) -> Story:
    runs = tuple(_runs_of_row(ledger, environment, catalog, sku))
    items = tuple(_items(ledger, dict.fromkeys(key for _, row in runs for _, key in row.chain)))
    pattern = runs[-1][1].pattern_key if runs else None
    sharing = _sharing(ledger, environment, catalog, pattern) if pattern else ()
    products = checkouts_of_products(ledger, [item.key for item in items if item.stage is Stage.PRODUCT])
    checkouts = {record.key: record for records in products.values() for record in records}
    events = _events(ledger, (*items, *_items(ledger, checkouts)), runs)
    retired = _retired(ledger, environment, catalog, sku)
    return Story(environment, catalog, sku, runs, items, events, sharing, tuple(checkouts.values()), retired)


def _pattern_story(ledger: Ledger, item: RecordedItem) -> Story:
    sharing = _sharing(ledger, item.environment, item.catalog, item.key)
    return Story(item.environment, item.catalog, None, (), (item,), _events(ledger, [item], ()), sharing)


def _retired(ledger: Ledger, environment: str, catalog: str, sku: str) -> tuple[float, str | None] | None:
    found = ledger.database.rows(
        "SELECT retired_at, retired_by FROM catalog_rows WHERE environment = :environment AND catalog = :catalog "
        "AND sku = :sku AND retired_at IS NOT NULL",
        {"environment": environment, "catalog": catalog, "sku": sku},
    )
    return (found[0][0], found[0][1]) if found else None


def _runs_of_row(
    ledger: Ledger, environment: str, catalog: str, sku: str
) -> Iterator[tuple[RunRecord, RunRow]]:
    rows = ledger.database.rows(
        "SELECT w.run_id, w.position FROM run_rows w JOIN runs r ON r.run_id = w.run_id "
        "WHERE w.sku = :sku AND r.environment = :environment AND r.catalog = :catalog "
        "ORDER BY coalesce(r.number, 0), r.started_at, w.run_id, w.position",
        {"sku": sku, "environment": environment, "catalog": catalog},
    )
    for run_id, position in rows:
        record = ledger.runs.get(run_id)
        assert record is not None, "rows belong to a run"
        yield from ((record, row) for row in ledger.runs.rows_of(run_id, position, position))


def _sharing(ledger: Ledger, environment: str, catalog: str, pattern: ItemKey) -> tuple[str, ...]:
    """The skus whose products are built on the item, or on what is built on it."""
    rows = ledger.database.rows(
        "WITH RECURSIVE on_it (key, stage, sku) AS (SELECT key, stage, sku FROM items WHERE pattern_key = :pattern "
        "AND environment = :environment AND catalog = :catalog UNION "
        "SELECT i.key, i.stage, i.sku FROM on_it o JOIN items i ON i.pattern_key = o.key "
        "WHERE o.stage <> 'product' AND i.environment = :environment AND i.catalog = :catalog) "
        "SELECT DISTINCT sku FROM on_it WHERE stage = 'product' ORDER BY sku",
        {"environment": environment, "catalog": catalog, "pattern": pattern},
    )
    return tuple(sku for (sku,) in rows)


def _events(
    ledger: Ledger, items: Iterable[RecordedItem], runs: Iterable[tuple[RunRecord, RunRow]]
) -> tuple[StoryEvent, ...]:
    """Events of the attempts, with the beginnings and ends of the runs that had the row, in time order."""
    found: list[tuple[float, int, StoryEvent]] = []
    begun = [(item, attempt) for item in items for attempt in item.attempts]
    for item, attempt in begun:
        for seq, at, run_id, kind, detail in ledger.database.rows(
            "SELECT seq, at, run_id, kind, detail FROM events WHERE request_id = :request_id",
            {"request_id": attempt.request_id},
        ):
            found.append((at, seq, StoryEvent(at, run_id, kind, detail, item.stage, attempt.attempt)))
    for record, row in runs:
        line = f"row {row.line} of {record.source}"
        began = record.started_at.timestamp()
        found.append((began, 0, StoryEvent(began, record.run_id, "run_began", line)))
        if record.ended_at is not None:
            ended = record.ended_at.timestamp()
            status = RowOutcome.of_row(row).status if row.outcome else None
            # After everything else of that moment.
            found.append((ended, 1 << 62, StoryEvent(ended, record.run_id, "run_ended", status)))
    return tuple(event for _, _, event in sorted(found, key=lambda event: event[:2]))
