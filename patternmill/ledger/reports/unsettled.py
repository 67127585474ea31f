"""Attempts that are in doubt or held, and which of them wait for a person's decision."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from patternmill.identifiers import RequestId, RunId
from patternmill.ledger.ledger import Ledger
from patternmill.ledger.records import Attempt, RunRecord
from patternmill.states import AttemptState, Stage


@dataclass(frozen=True)
class Unsettled:
    """An attempt with what it is for; `content` is canonical JSON of what is bought."""

    attempt: Attempt
    environment: str
    catalog: str
    stage: Stage
    sku: str | None
    content: str
    price: int
    #: When it came into the state it is in, in Unix seconds.
    since: float


def open_attempt(ledger: Ledger, request_id: RequestId) -> Unsettled | None:
    return next(_unsettled(ledger, "a.request_id = :request_id", {"request_id": request_id}), None)


def unsettled(ledger: Ledger, limit: timedelta) -> list[Unsettled]:
    """Held attempts, and those that have been without an answer for longer than `limit`."""
    return [item for item in _open_or_held(ledger) if is_for_a_person(ledger, item, limit)]


def open_requests(ledger: Ledger, environment: str, catalog: str, limit: timedelta) -> tuple[int, int]:
    """How many requests of one catalog without an end a person decides about, and its next run resumes."""
    found = [
        is_for_a_person(ledger, item, limit)
        for item in _open_or_held(ledger)
        if (item.environment, item.catalog) == (environment, catalog)
    ]
    return sum(found), len(found) - sum(found)


def in_doubt(ledger: Ledger, limit: timedelta) -> list[Unsettled]:
    """Requests without an answer that the next run of their catalog resends."""
    return [
        item
        for item in _open_or_held(ledger)
        if item.attempt.state is AttemptState.INTENDED and not is_for_a_person(ledger, item, limit)
    ]


def age_of(ledger: Ledger, item: Unsettled) -> timedelta | None:
    """How long an attempt has been in its state; None where the clocks contradict one another."""
    if item.attempt.state is AttemptState.INTENDED:
        return ledger.age_of(item.attempt)
    return timedelta(seconds=max(0.0, ledger.now() - item.since))


def is_for_a_person(ledger: Ledger, item: Unsettled, limit: timedelta) -> bool:
    """Whether no run resumes an attempt by itself."""
    state = item.attempt.state
    if state not in (AttemptState.INTENDED, AttemptState.ACCEPTED):
        return state is AttemptState.HELD
    return is_past_limit(age_of(ledger, item), limit)


def is_past_limit(age: timedelta | None, limit: timedelta) -> bool:
    """Whether a person decides about what is so old; None: the clocks contradict one another."""
    return age is None or age > limit


def _open_or_held(ledger: Ledger) -> Iterator[Unsettled]:
    return _unsettled(
        ledger,
        "a.state IN ('held', 'intended', 'accepted') "
        "ORDER BY i.environment, i.catalog, a.intended_at, a.request_id",
        {},
    )


def run_of(ledger: Ledger, request_id: RequestId) -> RunRecord | None:
    """The run that recorded a request."""
    rows = ledger.database.rows(
        "SELECT run_id FROM attempts WHERE request_id = :request_id", {"request_id": request_id}
    )
    return ledger.run(RunId(rows[0][0])) if rows else None


def service_of(ledger: Ledger, request_id: RequestId) -> str:
    """The address that a request was sent to; empty for an embedded studio."""
    record = run_of(ledger, request_id)
    return record.studio_url if record is not None else ""


def _unsettled(ledger: Ledger, where: str, params: dict[str, object]) -> Iterator[Unsettled]:
    for request_id, environment, catalog, stage, sku, content, price in ledger.database.rows(
        "SELECT a.request_id, i.environment, i.catalog, i.stage, i.sku, i.content, a.price "  # noqa: S608
        f"FROM attempts a JOIN items i ON i.key = a.item_key WHERE {where}",
        params,
    ):
        attempt = ledger.attempt(RequestId(request_id))
        assert attempt is not None, "it was found just now"
        since = attempt.ended_at or attempt.accepted_at or attempt.intended_at
        yield Unsettled(attempt, environment, catalog, Stage(stage), sku, content, price, since)
