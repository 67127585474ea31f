"""The whole story of one row or item, in the order in which it happened."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from operator import itemgetter

from patternmill.identifiers import ItemKey
from patternmill.ledger.ledger import Ledger
from patternmill.ledger.records import RunRecord, RunRow
from patternmill.ledger.reports.checkouts import CheckoutRecord, checkouts_with
from patternmill.ledger.reports.requests import RecordedItem, item_called
from patternmill.ledger.row_outcomes import ItemOutcome, RowOutcome, outcome_of_row
from patternmill.states import Stage

#: Selects the items with a name, which is their key or the ID of an attempt's request, job or result.
_ITEMS_NAMED = """
SELECT key FROM items WHERE key = :name UNION SELECT item_key FROM attempts WHERE request_id = :name
UNION SELECT item_key FROM attempts WHERE job_id = :name UNION SELECT item_key FROM attempts WHERE result_id = :name
"""
_SCOPES_OF_SKU = """
SELECT DISTINCT r.environment, r.catalog FROM run_rows w JOIN runs r ON r.run_id = w.run_id
WHERE w.sku = :sku ORDER BY r.environment, r.catalog
"""
_RUNS_OF_ROW = """
SELECT w.run_id, w.position FROM run_rows w JOIN runs r ON r.run_id = w.run_id
WHERE w.sku = :sku AND r.environment = :environment AND r.catalog = :catalog
ORDER BY coalesce(r.number, 0), r.started_at, w.run_id, w.position
"""
_RETIRED = """
SELECT retired_at, retired_by FROM catalog_rows
WHERE environment = :environment AND catalog = :catalog AND sku = :sku AND retired_at IS NOT NULL
"""
#: The skus whose products are built on an item, or on what is built on it.
_SHARING = """
WITH RECURSIVE on_it (key, stage, sku) AS (
    SELECT key, stage, sku FROM items
        WHERE pattern_key = :pattern AND environment = :environment AND catalog = :catalog
    UNION
    SELECT i.key, i.stage, i.sku FROM on_it o JOIN items i ON i.pattern_key = o.key
        WHERE o.stage <> 'product' AND i.environment = :environment AND i.catalog = :catalog
)
SELECT DISTINCT sku FROM on_it WHERE stage = 'product' ORDER BY sku
"""
_EVENTS = "SELECT at, seq, run_id, kind, detail FROM events WHERE request_id = :request_id"
#: The place that sorts after all events of the same moment.
_LAST = 1 << 62


@dataclass(frozen=True)
class StoryEvent:
    """One line of the story. `what` is a state of an attempt, or another kind of event."""

    at: float
    run_id: str
    what: str
    detail: str | None = None
    stage: Stage | None = None
    attempt: int | None = None


#: An event with its time and its place among the events of that time.
_Placed = tuple[float, int, StoryEvent]


@dataclass(frozen=True)
class Story:
    """Everything known about one sku in one catalog, or about a pattern, for which `sku` is None."""

    environment: str
    catalog: str
    sku: str | None
    #: The runs that had the row, each with the row as it was then.
    runs: tuple[tuple[RunRecord, RunRow], ...]
    items: tuple[RecordedItem, ...]
    events: tuple[StoryEvent, ...]
    #: The skus whose products are built on the (latest) pattern.
    sharing: tuple[str, ...]
    #: The checkouts that its products are in, the oldest first.
    checkouts: tuple[CheckoutRecord, ...] = ()
    #: When the source no longer had the sku (Unix seconds), and which run found that.
    retired: tuple[float, str | None] | None = None
    #: Set for rows that a person decides about: what the catalog's product is built on, then that product.
    kept: tuple[ItemOutcome, ...] = ()

    @property
    def now(self) -> RowOutcome | None:
        """Return the present outcome of the row, by its latest run; None for a pattern alone."""
        if not self.runs:
            return None
        record, row = self.runs[-1]
        attempts = {item.key: item.attempt for item in self.items if item.attempts}
        return outcome_of_row(row, attempts, record.outcome, self.kept)

    def is_of_earlier_request(self, item: ItemKey) -> bool:
        """Return whether the row of the latest run no longer has this item."""
        return bool(self.runs) and item not in self.runs[-1][1].items


def stories(
    ledger: Ledger, name: str, catalog: str | None = None, environment: str | None = None
) -> list[Story]:
    """Return what is known under a name: a sku, or the ID of a product, pattern, job, request or item.

    There is one story for each catalog that has the sku (any catalog if None), and none if nothing has that name.
    """
    items = _items(ledger, (key for (key,) in ledger.database.rows(_ITEMS_NAMED, name=name)))
    rows = [(item.environment, item.catalog, item.sku) for item in items if item.sku]
    patterns = [item for item in items if not item.sku and item.stage is not Stage.CHECKOUT]
    for checkout in items:
        for line in ledger.purchases.checkout(checkout.key)[0]:
            rows += [
                (item.environment, item.catalog, line.sku) for item in _items(ledger, [line.product_key])
            ]
    rows += [(*scope, name) for scope in ledger.database.rows(_SCOPES_OF_SKU, sku=name)]
    named = [_story(ledger, item.environment, item.catalog, None, item) for item in patterns]
    named += [_story(ledger, *row) for row in dict.fromkeys(rows)]
    return [
        story
        for story in named
        if catalog in (None, story.catalog) and environment in (None, story.environment)
    ]


def _items(ledger: Ledger, keys: Iterable[str]) -> list[RecordedItem]:
    """Return the items of those keys that are in the ledger, with their attempts."""
    return [item for key in keys if (item := item_called(ledger, key)) is not None]


def _story(
    ledger: Ledger, environment: str, catalog: str, sku: str | None, pattern: RecordedItem | None = None
) -> Story:
    """Return the story of a sku, or of a pattern alone."""
    row = {"environment": environment, "catalog": catalog, "sku": sku}
    runs = tuple(_runs_of_row(ledger, row))
    keys = dict.fromkeys(key for _, run_row in runs for key in run_row.items)
    items = (pattern,) if pattern is not None else tuple(_items(ledger, keys))
    checkouts = checkouts_with(ledger, [item.key for item in items if item.stage is Stage.PRODUCT])
    items_and_checkouts = (*items, *_items(ledger, [checkout.key for checkout in checkouts]))
    events = sorted([*_run_events(runs), *_item_events(ledger, items_and_checkouts)], key=itemgetter(0, 1))
    last_pattern = pattern.key if pattern is not None else runs[-1][1].pattern_key if runs else None
    scope = {"environment": environment, "catalog": catalog, "pattern": last_pattern}
    return Story(
        environment,
        catalog,
        sku,
        runs,
        items,
        tuple(event for *_, event in events),
        tuple(name for (name,) in ledger.database.rows(_SHARING, scope)),
        tuple(checkouts),
        next(iter(ledger.database.rows(_RETIRED, row)), None),
        ledger.runs.kept_product(*runs[-1]) if runs else (),
    )


def _runs_of_row(ledger: Ledger, row: Mapping[str, str | None]) -> Iterator[tuple[RunRecord, RunRow]]:
    for run_id, position in ledger.database.rows(_RUNS_OF_ROW, row):
        record = ledger.runs.get(run_id)
        assert record is not None, "rows belong to a run"
        yield from ((record, run_row) for run_row in ledger.runs.rows_of(run_id, position, position))


def _item_events(ledger: Ledger, items: Iterable[RecordedItem]) -> Iterator[_Placed]:
    for item in items:
        for attempt in item.attempts:
            for at, seq, run_id, kind, detail in ledger.database.rows(_EVENTS, request_id=attempt.request_id):
                yield at, seq, StoryEvent(at, run_id, kind, detail, item.stage, attempt.attempt)


def _run_events(runs: Iterable[tuple[RunRecord, RunRow]]) -> Iterator[_Placed]:
    """Yield the beginnings and ends of the runs that had the row."""
    for record, row in runs:
        began, line = record.started_at.timestamp(), f"row {row.line} of {record.source}"
        yield began, 0, StoryEvent(began, record.run_id, "run_began", line)
        if record.ended_at is not None:
            ended = record.ended_at.timestamp()
            status = RowOutcome.parse(row.outcome).status if row.outcome else None
            yield ended, _LAST, StoryEvent(ended, record.run_id, "run_ended", status)
