"""Items with what they are for and the attempts at them: what `status`, `explain` and `settle` show."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from patternmill.identifiers import ItemKey
from patternmill.ledger.ledger import Ledger
from patternmill.ledger.purchases import ATTEMPT_COLUMNS, attempt_from
from patternmill.ledger.records import Attempt
from patternmill.states import Stage


@dataclass(frozen=True)
class RecordedItem:
    """An item with every attempt at it, or with the one that is asked about."""

    key: ItemKey
    environment: str
    catalog: str
    stage: Stage
    sku: str | None
    #: What is bought: a prompt; a change of a pattern; or a category with its selections, on a pattern.
    content: Mapping[str, Any]
    attempts: tuple[Attempt, ...]

    @property
    def attempt(self) -> Attempt:
        """The last one; there is none of an item that was never begun."""
        return self.attempts[-1]


def item_called(ledger: Ledger, key: str) -> RecordedItem | None:
    """With every attempt at it."""
    rows = ledger.database.rows(
        "SELECT key, environment, catalog, stage, sku, content FROM items WHERE key = :key", {"key": key}
    )
    return next((_item(row, ledger.purchases.attempts_of(ItemKey(key))) for row in rows), None)


def items_with_attempt(ledger: Ledger, where: str, params: Mapping[str, object]) -> Iterator[RecordedItem]:
    """One for each attempt `a` that fits, in the order of their catalogs and intents; with that attempt alone."""
    for row in ledger.database.rows(
        "SELECT i.key, i.environment, i.catalog, i.stage, i.sku, i.content, "  # noqa: S608
        f"{ATTEMPT_COLUMNS} FROM attempts a JOIN items i ON i.key = a.item_key WHERE {where} "
        "ORDER BY i.environment, i.catalog, a.intended_at, a.request_id",
        params,
    ):
        yield _item(row[:6], (attempt_from(row[6:]),))


def _item(values: tuple[Any, ...], attempts: tuple[Attempt, ...]) -> RecordedItem:
    key, environment, catalog, stage, sku, content = values
    return RecordedItem(key, environment, catalog, Stage(stage), sku, json.loads(content), attempts)
