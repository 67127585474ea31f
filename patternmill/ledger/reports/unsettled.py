"""Attempts that are in doubt or held, and which of them wait for a person's decision."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

from patternmill.identifiers import RequestId
from patternmill.ledger.ledger import Ledger
from patternmill.ledger.records import RunRecord
from patternmill.ledger.reports.items import RecordedItem, items_with_attempt
from patternmill.ledger.reports.run_lookup import runs_with_lease
from patternmill.states import UNDECIDED, AttemptState, Stage


def open_attempt(ledger: Ledger, request_id: RequestId) -> RecordedItem | None:
    return next(items_with_attempt(ledger, "a.request_id = :request_id", {"request_id": request_id}), None)


_NAMED = """
WITH RECURSIVE named (key) AS (
    SELECT product_key FROM source_rows WHERE environment = :environment AND catalog = :catalog
        AND product_key IS NOT NULL AND gone_at IS NULL
    UNION
    SELECT i.pattern_key FROM items i JOIN named n ON i.key = n.key WHERE i.pattern_key IS NOT NULL
)
SELECT key FROM named
"""
#: The patterns of rows that wait for a choice.
_TO_CHOOSE = (
    "SELECT i.content FROM run_rows r JOIN items i ON i.key = r.pattern_key "
    "WHERE r.run_id = :run_id AND r.row LIKE :undecided"
)


class NamedItems:
    """What the rows of each catalog are built on, as its sheets last had them: what a run would go on with."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._keys: dict[tuple[str, str], set[str]] = {}

    def __contains__(self, item: object) -> bool:
        assert isinstance(item, RecordedItem), "items are asked about"
        if item.stage is Stage.CHECKOUT:
            return True
        scope = item.environment, item.catalog
        if scope not in self._keys:
            self._keys[scope] = set(self._read(*scope))
        return item.key in self._keys[scope] or _of_any_take(item.content) in self._keys[scope]

    def _read(self, environment: str, catalog: str) -> Iterator[str]:
        scope = {"environment": environment, "catalog": catalog}
        yield from (key for (key,) in self._ledger.database.rows(_NAMED, scope))
        latest = next(runs_with_lease(self._ledger, catalog, environment), None)
        if latest is not None:
            rows = self._ledger.database.rows(
                _TO_CHOOSE, {"run_id": latest.run_id, "undecided": f'%"{UNDECIDED}": true%'}
            )
            yield from (_of_any_take(json.loads(content)) for (content,) in rows)


def _of_any_take(content: Mapping[str, Any]) -> str:
    return json.dumps({name: value for name, value in content.items() if name != "take"}, sort_keys=True)


def unsettled(ledger: Ledger, limit: timedelta) -> list[RecordedItem]:
    """Return what no run resumes: held, without an answer for longer than `limit`, or in doubt without a row."""
    named = NamedItems(ledger)
    return [item for item in open_items(ledger) if is_for_a_person(ledger, item, limit, named)]


def open_requests(ledger: Ledger, environment: str, catalog: str, limit: timedelta) -> tuple[int, int]:
    """How many requests of one catalog without an end a person decides about, and its next run resumes."""
    named = NamedItems(ledger)
    found = [
        is_for_a_person(ledger, item, limit, named)
        for item in open_items(ledger)
        if (item.environment, item.catalog) == (environment, catalog)
    ]
    return sum(found), len(found) - sum(found)


def in_doubt(ledger: Ledger, limit: timedelta) -> list[RecordedItem]:
    """Requests without an answer that the next run of their catalog resends."""
    named = NamedItems(ledger)
    return [
        item
        for item in open_items(ledger)
        if item.attempt.state is AttemptState.INTENDED and not is_for_a_person(ledger, item, limit, named)
    ]


def age_of(ledger: Ledger, item: RecordedItem) -> timedelta | None:
    """How long an attempt has been in its state; None where the clocks contradict one another."""
    if item.attempt.state is AttemptState.INTENDED:
        return ledger.purchases.age_of(item.attempt)
    return timedelta(seconds=max(0.0, ledger.now() - item.attempt.since))


def is_for_a_person(ledger: Ledger, item: RecordedItem, limit: timedelta, named: NamedItems) -> bool:
    """Return whether no run resumes an attempt by itself. A request in doubt is resent for a row that names it."""
    state = item.attempt.state
    if state not in (AttemptState.INTENDED, AttemptState.ACCEPTED):
        return state is AttemptState.HELD
    age = age_of(ledger, item)
    return age is None or age > limit or (state is AttemptState.INTENDED and item not in named)


def open_items(ledger: Ledger) -> Iterator[RecordedItem]:
    """What waits for the service's answer, or for a person's decision; each with the attempt that does."""
    return items_with_attempt(ledger, "a.state IN ('held', 'intended', 'accepted')", {})


def run_of(ledger: Ledger, request_id: RequestId) -> RunRecord | None:
    """The run that recorded a request."""
    sql = "SELECT run_id FROM attempts WHERE request_id = :request_id"
    rows = ledger.database.rows(sql, {"request_id": request_id})
    return ledger.runs.get(rows[0][0]) if rows else None
