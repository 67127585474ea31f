"""Items with the attempts at them, which of these are open, and which of those wait for a person's decision."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import Any

import orjson

from patternmill.errors import ConfigurationError
from patternmill.identifiers import ItemKey, RequestId
from patternmill.ledger.ledger import Ledger
from patternmill.ledger.purchases import ATTEMPT_COLUMNS, WITHOUT_BODIES
from patternmill.ledger.records import Attempt, RunRecord
from patternmill.states import AttemptState, Stage

_ITEM_COLUMNS = "i.key, i.environment, i.catalog, i.stage, i.sku, i.content"
_ITEMS = f"SELECT {_ITEM_COLUMNS}, {{}} FROM attempts a JOIN items i ON i.key = a.item_key"
#: Selects the items that a catalog's rows ask for and what these are built on, with the contents of patterns.
_NAMED = """
WITH RECURSIVE named (key) AS (
    SELECT requested_key FROM catalog_rows
        WHERE environment = :environment AND catalog = :catalog AND gone_at IS NULL AND unasked_at IS NULL
    UNION
    SELECT i.pattern_key FROM items i JOIN named n ON i.key = n.key WHERE i.pattern_key IS NOT NULL
)
SELECT n.key, p.content FROM named n LEFT JOIN items p ON p.key = n.key AND p.stage = 'pattern'
"""


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
        """Return the last attempt; an item that was never begun has none."""
        return self.attempts[-1]


def item_called(ledger: Ledger, key: str) -> RecordedItem | None:
    """Return the item with every attempt at it."""
    rows = ledger.database.rows(f"SELECT {_ITEM_COLUMNS} FROM items i WHERE key = :key", key=key)
    return next((_item(row, *ledger.purchases.attempts_of(ItemKey(key))) for row in rows), None)


def items_with_attempt(ledger: Ledger, where: str, **params: object) -> Iterator[RecordedItem]:
    """Yield an item with one attempt for each attempt `a` that matches, in the order of their catalogs and intents."""
    query = (
        f"{_ITEMS.format(ATTEMPT_COLUMNS)} WHERE {where} "
        "ORDER BY i.environment, i.catalog, a.intended_at, a.request_id"
    )
    for row in ledger.database.rows(query, params):
        yield _item(row[:6], Attempt.of(row[6:]))


def last_attempts_at_patterns(ledger: Ledger, environment: str, catalog: str) -> Iterator[RecordedItem]:
    """Yield every pattern, refined or not, that a catalog ever requested, with its last attempt without a body."""
    query = (
        f"{_ITEMS.format(WITHOUT_BODIES)} WHERE i.environment = :environment AND i.catalog = :catalog "
        "AND i.stage IN ('pattern', 'refinement') "
        "AND a.attempt = (SELECT max(attempt) FROM attempts b WHERE b.item_key = i.key)"
    )
    for row in ledger.database.stream(query, environment=environment, catalog=catalog, nothing=b""):
        yield _item(row[:6], Attempt.of(row[6:]))


def _item(values: tuple[Any, ...], *attempts: Attempt) -> RecordedItem:
    key, environment, catalog, stage, sku, content = values
    return RecordedItem(key, environment, catalog, Stage(stage), sku, orjson.loads(content), attempts)


def find_request(ledger: Ledger, request_id: RequestId) -> RecordedItem:
    """Return the item of a request with its attempt. Raises ConfigurationError for an unknown request."""
    for item in items_with_attempt(ledger, "a.request_id = :request_id", request_id=request_id):
        return item
    raise ConfigurationError(
        f"There is no request {request_id!r} in this ledger.", remedy="See `patternmill settle`."
    )


def run_of(ledger: Ledger, request_id: RequestId) -> RunRecord | None:
    """Return the run that recorded a request."""
    sql = "SELECT run_id FROM attempts WHERE request_id = :request_id"
    rows = ledger.database.rows(sql, request_id=request_id)
    return ledger.runs.get(rows[0][0]) if rows else None


class NamedItems:
    """The items that the rows of each catalog last asked for, and what these are built on: runs resume them."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._read = cache(self._keys_and_contents)

    def __contains__(self, item: object) -> bool:
        assert isinstance(item, RecordedItem), "items are asked about"
        if item.stage is Stage.CHECKOUT:
            return True
        named = self._read(item.environment, item.catalog)
        return item.key in named or _of_any_take(item.content) in named

    def _keys_and_contents(self, environment: str, catalog: str) -> set[str]:
        """Return the keys of items, and what all takes of each pattern have in common, as runs follow every take."""
        rows = self._ledger.database.rows(_NAMED, environment=environment, catalog=catalog)
        contents = {_of_any_take(orjson.loads(content)) for _, content in rows if content is not None}
        return contents | {key for key, _ in rows}


def _of_any_take(content: Mapping[str, Any]) -> str:
    common = {name: value for name, value in content.items() if name != "take"}
    return orjson.dumps(common, option=orjson.OPT_SORT_KEYS).decode()


def open_items(ledger: Ledger) -> Iterator[RecordedItem]:
    """Yield each item with an attempt that waits for the service's answer or a person's decision, with that attempt."""
    return items_with_attempt(ledger, "a.state IN ('held', 'intended', 'accepted')")


def is_for_a_person(ledger: Ledger, item: RecordedItem, limit: timedelta, named: NamedItems) -> bool:
    """Return whether no run resumes an attempt by itself: it is held, or has had no answer for longer than `limit`.

    A request in doubt is resent only for a row that names it.
    """
    state = item.attempt.state
    if state not in (AttemptState.INTENDED, AttemptState.ACCEPTED):
        return state is AttemptState.HELD
    age = age_of(ledger, item)
    return age is None or age > limit or (state is AttemptState.INTENDED and item not in named)


def age_of(ledger: Ledger, item: RecordedItem) -> timedelta | None:
    """Return how long an attempt has been in its state; None where the clocks contradict one another."""
    if item.attempt.state is AttemptState.INTENDED:
        return ledger.purchases.age_of(item.attempt)
    return timedelta(seconds=max(0.0, ledger.now() - item.attempt.since))


def unsettled(ledger: Ledger, limit: timedelta) -> list[RecordedItem]:
    """Return the items whose open attempts no run resumes by itself, so that a person has to decide."""
    return open_requests(ledger, limit)[0]


def in_doubt(ledger: Ledger, limit: timedelta) -> list[RecordedItem]:
    """Return the requests without an answer that the next run of their catalog resends."""
    return [item for item in open_requests(ledger, limit)[1] if item.attempt.state is AttemptState.INTENDED]


def open_requests(
    ledger: Ledger, limit: timedelta, scope: tuple[str, str] | None = None
) -> tuple[list[RecordedItem], list[RecordedItem]]:
    """Return what is open (of one catalog, if named): first what waits for a person, then what runs resume."""
    named = NamedItems(ledger)
    for_people: list[RecordedItem] = []
    for_runs: list[RecordedItem] = []
    for item in open_items(ledger):
        if scope in (None, (item.environment, item.catalog)):
            (for_people if is_for_a_person(ledger, item, limit, named) else for_runs).append(item)
    return for_people, for_runs
