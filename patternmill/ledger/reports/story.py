"""The whole story of one row or item, in the order in which it happened."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from patternmill.identifiers import ItemKey
from patternmill.ledger.ledger import Ledger
from patternmill.ledger.records import Attempt, RunRecord
from patternmill.ledger.reports.order_report import CheckoutRecord, checkouts_of_products
from patternmill.ledger.runs import RowOutcome, furthest_attempt, last_attempt, row_outcome
from patternmill.states import RowStatus, Stage

_ITEM = "i.key, i.environment, i.catalog, i.stage, i.sku, i.content"


@dataclass(frozen=True)
class ItemStory:
    """An item with every attempt at it, and the price reserved for each (minor units)."""

    key: ItemKey
    environment: str
    catalog: str
    stage: Stage
    sku: str | None
    #: What is bought: a prompt; a change of a pattern; or a category with its selections, on a pattern.
    content: dict[str, Any]
    attempts: tuple[Attempt, ...] = ()
    prices: tuple[int, ...] = ()


@dataclass(frozen=True)
class RunOfRow:
    """A row as one run had it; `row` is what was understood of it, or its problems."""

    record: RunRecord
    line: int
    row: dict[str, Any]
    pattern_key: ItemKey | None
    product_key: ItemKey | None
    #: As the run ended; None while it has not.
    outcome: RowOutcome | None
    #: What its pattern is built on, in the order in which it is made.
    before: tuple[ItemKey, ...] = ()

    @property
    def keys(self) -> tuple[ItemKey, ...]:
        return (*self.before, *filter(None, (self.pattern_key, self.product_key)))


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
    runs: tuple[RunOfRow, ...]
    items: tuple[ItemStory, ...]
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
        last = self.runs[-1]
        if last.product_key is None:
            problems = last.row.get("problems") or [{}]
            return RowOutcome(RowStatus.REFUSED, problems[0].get("code"), problems[0].get("message"))
        attempts = {item.key: item.attempts for item in self.items if item.attempts}
        return row_outcome(
            furthest_attempt(attempts, last.keys[:-1]),
            last_attempt(attempts, last.product_key),
            last.record.outcome,
        )


def stories(
    ledger: Ledger, name: str, catalog: str | None = None, environment: str | None = None
) -> list[Story]:
    """What is known under a name: a sku, or the ID of a product, pattern, job, request or item.

    One story for each catalog that has the sku (None: of any), and none when nothing has that name.
    """
    found: dict[tuple[str, str, str], Story] = {}
    for item in _items_named(ledger, name):
        if item.stage is Stage.CHECKOUT:
            found |= _stories_of_checkout(ledger, item)
            continue
        scope = (item.environment, item.catalog, item.sku or item.key)
        if scope not in found:
            found[scope] = _row_story(ledger, *scope) if item.sku else _pattern_story(ledger, item)
    for its_environment, its_catalog in _scopes_of(ledger, name):
        scope = (its_environment, its_catalog, name)
        if scope not in found:
            found[scope] = _row_story(ledger, *scope)
    return [
        story
        for story in found.values()
        if catalog in (None, story.catalog) and environment in (None, story.environment)
    ]


def _items_named(ledger: Ledger, name: str) -> Iterator[ItemStory]:
    for column in ("request_id", "job_id", "result_id"):
        for row in ledger.database.rows(
            f"SELECT DISTINCT {_ITEM} FROM attempts a JOIN items i ON i.key = a.item_key "  # noqa: S608
            f"WHERE a.{column} = :name",
            {"name": name},
        ):
            yield _item(row)
    yield from _item_by_key(ledger, ItemKey(name))


def _item_by_key(ledger: Ledger, key: ItemKey) -> Iterator[ItemStory]:
    for row in ledger.database.rows(f"SELECT {_ITEM} FROM items i WHERE i.key = :key", {"key": key}):  # noqa: S608
        yield _item(row)


def _item(values: tuple[Any, ...]) -> ItemStory:
    key, environment, catalog, stage, sku, content = values
    return ItemStory(key, environment, catalog, Stage(stage), sku, json.loads(content))


def _scopes_of(ledger: Ledger, sku: str) -> list[tuple[Any, ...]]:
    return ledger.database.rows(
        "SELECT DISTINCT r.environment, r.catalog FROM run_rows w JOIN runs r ON r.run_id = w.run_id "
        "WHERE w.sku = :sku ORDER BY r.environment, r.catalog",
        {"sku": sku},
    )


def _row_story(ledger: Ledger, environment: str, catalog: str, sku: str) -> Story:
    runs = tuple(_runs_of_row(ledger, environment, catalog, sku))
    keys = dict.fromkeys(key for row in runs for key in row.keys)
    items = tuple(_with_attempts(ledger, item) for key in keys for item in _item_by_key(ledger, key))
    pattern = runs[-1].pattern_key if runs else None
    sharing = _sharing(ledger, environment, catalog, pattern) if pattern else ()
    checkouts = _checkouts_of(ledger, items)
    parts = (*items, *(part for one in checkouts for part in _item_by_key(ledger, one.key)))
    events = _all_events(ledger, (_with_attempts(ledger, part) for part in parts), runs)
    retired = _retired(ledger, environment, catalog, sku)
    return Story(environment, catalog, sku, runs, items, events, sharing, checkouts, retired)


def _retired(ledger: Ledger, environment: str, catalog: str, sku: str) -> tuple[float, str | None] | None:
    found = ledger.database.rows(
        "SELECT retired_at, retired_by FROM catalog_rows WHERE environment = :environment AND catalog = :catalog "
        "AND sku = :sku AND retired_at IS NOT NULL",
        {"environment": environment, "catalog": catalog, "sku": sku},
    )
    return (found[0][0], found[0][1]) if found else None


def _checkouts_of(ledger: Ledger, items: Iterable[ItemStory]) -> tuple[CheckoutRecord, ...]:
    found = checkouts_of_products(ledger, [item.key for item in items if item.stage is Stage.PRODUCT])
    return tuple({one.key: one for records in found.values() for one in records}.values())


def _stories_of_checkout(ledger: Ledger, item: ItemStory) -> dict[tuple[str, str, str], Story]:
    """Those of the rows that it was opened for."""
    scopes = {
        (product.environment, product.catalog, line.sku): line
        for line in ledger.checkout(item.key)[0]
        for product in _item_by_key(ledger, line.product_key)
    }
    return {scope: _row_story(ledger, *scope) for scope in scopes}


def _pattern_story(ledger: Ledger, item: ItemStory) -> Story:
    items = (_with_attempts(ledger, item),)
    sharing = _sharing(ledger, item.environment, item.catalog, item.key)
    return Story(item.environment, item.catalog, None, (), items, _all_events(ledger, items, ()), sharing)


def _runs_of_row(ledger: Ledger, environment: str, catalog: str, sku: str) -> Iterator[RunOfRow]:
    rows = ledger.database.rows(
        "SELECT w.run_id, w.line, w.row, w.pattern_key, w.product_key, w.outcome "
        "FROM run_rows w JOIN runs r ON r.run_id = w.run_id "
        "WHERE w.sku = :sku AND r.environment = :environment AND r.catalog = :catalog "
        "ORDER BY coalesce(r.number, 0), r.started_at, w.run_id, w.position",
        {"sku": sku, "environment": environment, "catalog": catalog},
    )
    for run_id, line, row, pattern_key, product_key, outcome in rows:
        record = ledger.run(run_id)
        assert record is not None, "rows belong to a run"
        ended = RowOutcome.from_json(outcome) if outcome else None
        before = _built_on(ledger, pattern_key)
        yield RunOfRow(record, line, json.loads(row), pattern_key, product_key, ended, before)


def _built_on(ledger: Ledger, key: ItemKey | None) -> tuple[ItemKey, ...]:
    """What an item is built on, in the order in which it is made."""
    found = ledger.database.rows("SELECT pattern_key FROM items WHERE key = :key", {"key": key})
    before = ItemKey(found[0][0]) if found and found[0][0] else None
    return (*_built_on(ledger, before), before) if before is not None else ()


def _with_attempts(ledger: Ledger, item: ItemStory) -> ItemStory:
    prices = ledger.database.rows(
        "SELECT price FROM attempts WHERE item_key = :key ORDER BY attempt", {"key": item.key}
    )
    return replace(item, attempts=ledger.attempts_of(item.key), prices=tuple(price for (price,) in prices))


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


def _all_events(
    ledger: Ledger, items: Iterable[ItemStory], runs: Iterable[RunOfRow]
) -> tuple[StoryEvent, ...]:
    """Events of the attempts, with the beginnings and ends of the runs that had the row, in time order."""
    found: list[tuple[float, int, StoryEvent]] = []
    for item in items:
        for attempt in item.attempts:
            found += _events(ledger, item.stage, attempt)
    for row in runs:
        found += _of_run(row)
    return tuple(event for _, _, event in sorted(found, key=lambda event: event[:2]))


def _events(ledger: Ledger, stage: Stage, attempt: Attempt) -> Iterator[tuple[float, int, StoryEvent]]:
    for seq, at, run_id, kind, detail in ledger.database.rows(
        "SELECT seq, at, run_id, kind, detail FROM events WHERE request_id = :request_id ORDER BY seq",
        {"request_id": attempt.request_id},
    ):
        yield at, seq, StoryEvent(at, run_id, kind, detail, stage, attempt.attempt)


def _of_run(row: RunOfRow) -> Iterator[tuple[float, int, StoryEvent]]:
    record = row.record
    began = record.started_at.timestamp()
    yield began, 0, StoryEvent(began, record.run_id, "run_began", f"row {row.line} of {record.source}")
    if record.ended_at is not None:
        ended, status = record.ended_at.timestamp(), row.outcome.status.value if row.outcome else None
        # After everything else of that moment.
        yield ended, 1 << 62, StoryEvent(ended, record.run_id, "run_ended", status)
