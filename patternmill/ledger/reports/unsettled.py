"""Attempts that are in doubt or held, and which of them wait for a person's decision."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from patternmill.identifiers import RequestId
from patternmill.ledger.ledger import Ledger
from patternmill.ledger.records import RunRecord
from patternmill.ledger.reports.items import RecordedItem, items_with_attempt
from patternmill.states import AttemptState


def open_attempt(ledger: Ledger, request_id: RequestId) -> RecordedItem | None:
    return next(items_with_attempt(ledger, "a.request_id = :request_id", {"request_id": request_id}), None)


def unsettled(ledger: Ledger, limit: timedelta) -> list[RecordedItem]:
    """Held attempts, and those that have been without an answer for longer than `limit`."""
    return [item for item in open_items(ledger) if is_for_a_person(ledger, item, limit)]


def open_requests(ledger: Ledger, environment: str, catalog: str, limit: timedelta) -> tuple[int, int]:
    """How many requests of one catalog without an end a person decides about, and its next run resumes."""
    found = [
        is_for_a_person(ledger, item, limit)
        for item in open_items(ledger)
        if (item.environment, item.catalog) == (environment, catalog)
    ]
    return sum(found), len(found) - sum(found)


def in_doubt(ledger: Ledger, limit: timedelta) -> list[RecordedItem]:
    """Requests without an answer that the next run of their catalog resends."""
    return [
        item
        for item in open_items(ledger)
        if item.attempt.state is AttemptState.INTENDED and not is_for_a_person(ledger, item, limit)
    ]


def age_of(ledger: Ledger, item: RecordedItem) -> timedelta | None:
    """How long an attempt has been in its state; None where the clocks contradict one another."""
    if item.attempt.state is AttemptState.INTENDED:
        return ledger.purchases.age_of(item.attempt)
    return timedelta(seconds=max(0.0, ledger.now() - item.attempt.since))


def is_for_a_person(ledger: Ledger, item: RecordedItem, limit: timedelta) -> bool:
    """Whether no run resumes an attempt by itself."""
    state = item.attempt.state
    if state not in (AttemptState.INTENDED, AttemptState.ACCEPTED):
        return state is AttemptState.HELD
    age = age_of(ledger, item)
    return age is None or age > limit


def open_items(ledger: Ledger) -> Iterator[RecordedItem]:
    """What waits for the service's answer, or for a person's decision; each with the attempt that does."""
    return items_with_attempt(ledger, "a.state IN ('held', 'intended', 'accepted')", {})


def run_of(ledger: Ledger, request_id: RequestId) -> RunRecord | None:
    """The run that recorded a request."""
    sql = "SELECT run_id FROM attempts WHERE request_id = :request_id"
    rows = ledger.database.rows(sql, {"request_id": request_id})
    return ledger.runs.get(rows[0][0]) if rows else None
