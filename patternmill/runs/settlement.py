"""A person's decision about an attempt that no run may decide: on record, and never during a run of its catalog."""

from __future__ import annotations

import json
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from itertools import groupby

from patternmill.errors import ConfigurationError, Overlap, PatternmillError
from patternmill.identifiers import RequestId, RunId
from patternmill.ledger.ledger import Ledger
from patternmill.ledger.records import Lease
from patternmill.ledger.reports.items import RecordedItem
from patternmill.ledger.reports.run_lookup import runs_with_lease
from patternmill.ledger.reports.unsettled import (
    NamedItems,
    age_of,
    is_for_a_person,
    open_attempt,
    run_of,
)
from patternmill.planning.items import catalog_of
from patternmill.results.row_filter import RowFilter, rows_meant
from patternmill.results.row_results import input_file, row_results
from patternmill.runs.job_evidence import LookUp, refuse_contradictions, refuse_made, verified_job
from patternmill.runs.lease import acquire_lease, is_free
from patternmill.states import WRITTEN_OFF, AttemptState, Stage
from patternmill.text import duration

Acquire = Callable[[Ledger, str, str, RunId], Awaitable[Lease]]

#: The kind of the event that keeps who decided, what and why.
SETTLED = "settled"


class Decision(StrEnum):
    """What a person may decide."""

    #: The same request goes out once more with the next run; it stays in doubt, with its price, until it is answered.
    RESEND = "resend"
    #: What the service may have made is abandoned; a retry makes a new attempt, which is paid for.
    WRITE_OFF = "write_off"
    #: The person found the service's job for it, or leads a failed one back to its job; the next run follows it.
    JOB = "job"
    #: The person found what the service made for it; the next run builds on that.
    MADE = "made"


@dataclass(frozen=True)
class Settlement:
    """A decision about requests, with who made it and why."""

    decision: Decision
    reason: str
    by: str
    #: The ID of the job, or of what was made.
    named: str | None = None


async def settle(
    ledger: Ledger,
    items: Sequence[RecordedItem],
    settlement: Settlement,
    *,
    limit: timedelta,
    look_up: LookUp | None = None,
    acquire: Acquire = acquire_lease,
) -> dict[RequestId, PatternmillError]:
    """Do what a person decided about requests, as they were shown, and put it on record: in one transaction a catalog.

    Returns why some were left as they were: no person decides about them (they are neither held nor older than
    `limit`), they have changed meanwhile, or a run drives their catalog. `look_up` shows the job that a person names;
    raises ConfigurationError when it is not that of the one request.
    """
    left: dict[RequestId, PatternmillError] = {}
    job = None
    if settlement.decision is Decision.JOB:
        (item,) = items
        _refuse_impossible(ledger, item, settlement, limit)
        assert settlement.named, "the decision names a job"
        job = await verified_job(settlement.named, look_up)
        refuse_contradictions(ledger, job, settlement.named, item)
    for scope, group in groupby(sorted(items, key=_scope), key=_scope):
        shown = list(group)
        try:
            async with _deciding(ledger, scope, acquire) as run_id:
                for item in shown:
                    request_id = item.attempt.request_id
                    try:
                        # Once more: what was seen before the lease was acquired may have changed.
                        _refuse_impossible(ledger, item, settlement, limit)
                        if job is not None and settlement.named:
                            refuse_contradictions(ledger, job, settlement.named, item)
                    except ConfigurationError as error:
                        left[request_id] = error
                    else:
                        _decide(ledger, run_id, request_id, settlement)
        except Overlap as overlap:
            left |= {item.attempt.request_id: overlap for item in shown}
    return left


@asynccontextmanager
async def _deciding(ledger: Ledger, scope: tuple[str, str], acquire: Acquire) -> AsyncIterator[RunId]:
    """One transaction with the lease of a catalog; the results of its latest run show then what was decided.

    A run without an end is computed when it is read. Raises Overlap.
    """
    environment, catalog = scope
    run_id = RunId(f"settle-{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(3)}")
    lease = await acquire(ledger, environment, catalog, run_id)
    try:
        with ledger.transaction(lease):
            yield run_id
            latest = next(runs_with_lease(ledger, catalog, environment), None)
            if latest is not None and latest.outcome is not None:
                ledger.runs.write_decided_rows(latest)
    finally:
        with ledger.transaction(lease):
            ledger.catalogs.release_lease(lease)


def requests_meant(
    ledger: Ledger,
    items: Iterable[RecordedItem],
    wanted: RowFilter,
    *,
    environment: str | None = None,
    catalog: str | None = None,
) -> list[RecordedItem]:
    """The requests of the rows that fit, as they are now in the runs that recorded the requests.

    A catalog's orders are its own; of a filter of rows none is meant. Raises ConfigurationError for an unknown sku.
    """
    found = [
        item
        for item in items
        if environment in (None, item.environment) and catalog in (None, catalog_of(item.catalog))
    ]
    if wanted.is_empty or not found:
        return found
    records = {run.run_id: run for item in found if (run := run_of(ledger, item.attempt.request_id))}
    rows = [
        row
        for record in records.values()
        for row in row_results(ledger, record, input_file(ledger, record), now=True)
    ]
    keys = {item.key for row in rows_meant(rows, wanted) for item in row.items}
    return [item for item in found if item.attempt.item_key in keys]


def next_runs(ledger: Ledger, items: Iterable[RecordedItem]) -> tuple[list[RecordedItem], list[RecordedItem]]:
    """Of what is in doubt and not yet for a person: what the next run resends, and what a live run drives."""
    waiting: list[RecordedItem] = []
    driven: list[RecordedItem] = []
    for item in items:
        lease = ledger.catalogs.lease(item.environment, item.catalog)
        (waiting if lease is None or is_free(lease) else driven).append(item)
    return waiting, driven


def _scope(item: RecordedItem) -> tuple[str, str]:
    return item.environment, item.catalog


def requested(ledger: Ledger, request_id: RequestId) -> RecordedItem:
    """The item of a request. Raises ConfigurationError for an unknown one."""
    found = open_attempt(ledger, request_id)
    if found is None:
        raise ConfigurationError(
            f"There is no request {request_id!r} in this ledger.",
            remedy="See `patternmill settle`.",
        )
    return found


def _refuse_impossible(ledger: Ledger, shown: RecordedItem, settlement: Settlement, limit: timedelta) -> None:
    """Raise ConfigurationError when that decision about a request is not possible, or it is not as it was shown."""
    found = requested(ledger, shown.attempt.request_id)
    for message, remedy in _objections(ledger, found, settlement, limit):
        raise ConfigurationError(f"Request {found.attempt.request_id} {message}", remedy=remedy)
    if found.attempt != shown.attempt:
        raise ConfigurationError(
            f"Request {found.attempt.request_id} has changed since it was shown; it is {found.attempt.state} now.",
            remedy="See `patternmill settle`.",
        )
    if settlement.decision is Decision.MADE:
        assert settlement.named, "the decision names what was made"
        refuse_made(ledger, settlement.named, found)


def _objections(
    ledger: Ledger, found: RecordedItem, settlement: Settlement, limit: timedelta
) -> Iterator[tuple[str, str]]:
    """What the ledger has against a decision, each with its remedy."""
    attempt, decision = found.attempt, settlement.decision
    age = age_of(ledger, found)
    named = NamedItems(ledger)
    is_led_back = decision is Decision.JOB and attempt.state is AttemptState.FAILED
    if not is_led_back and not is_for_a_person(ledger, found, limit, named):
        if attempt.state in (AttemptState.INTENDED, AttemptState.ACCEPTED) and age is not None:
            hours = f"{limit.total_seconds() / 3600:g} h"
            yield (
                f"is {attempt.state} for {duration(age)}; a person decides after {hours} only.",
                "Run the same import again: it resumes it.",
            )
        remedy = f"See `patternmill explain {attempt.request_id}`."
        yield f"is {attempt.state}: there is nothing to decide.", remedy
    if decision is Decision.RESEND and attempt.state is AttemptState.ACCEPTED:
        remedy = "Wait for the job with another run, or write it off."
        yield f"has job {attempt.job_id}; sending it again changes nothing.", remedy
    if decision is Decision.RESEND and found not in named:
        remedy = "Name what was made of it, or write it off; or import a sheet that has its row as it was."
        yield "is for no row of its catalog any more: no run would send it again.", remedy
    if decision is Decision.JOB:
        assert settlement.named, "the decision names a job"
        yield from _objections_to_job(ledger, found, settlement.named)


def _objections_to_job(ledger: Ledger, found: RecordedItem, job_id: str) -> Iterator[tuple[str, str]]:
    """Yield what the ledger has against a job that a person names, each with its remedy."""
    attempt = found.attempt
    if found.stage is Stage.CHECKOUT:
        yield (
            "is for a checkout, which no job makes.",
            "Decide with --resend or --write-off: a checkout that nobody pays costs nothing.",
        )
    other = ledger.purchases.request_of_job(job_id, found.environment)
    if other is not None and other != attempt.request_id:
        yield f"has not job {job_id}, which belongs to request {other}.", "Look for its own job."
    if ledger.purchases.last_request(attempt.item_key) != attempt.request_id:
        yield "was followed by another attempt.", f"See `patternmill explain {attempt.request_id}`."
    if attempt.state is AttemptState.FAILED and attempt.job_id not in (None, job_id):
        yield f"had job {attempt.job_id}.", f"Name that one: --job {attempt.job_id}."
    if attempt.state is AttemptState.ACCEPTED:
        remedy = "Write it off if that job will never end."
        yield f"has job {attempt.job_id} already.", remedy


def _decide(ledger: Ledger, run_id: RunId, request_id: RequestId, settlement: Settlement) -> None:
    """Record the decision, then carry it out."""
    detail = {"decision": settlement.decision, "by": settlement.by, "reason": settlement.reason}
    if settlement.named:
        detail[f"{settlement.decision}_id"] = settlement.named
    ledger.record_event(run_id, SETTLED, request_id, detail=json.dumps(detail, ensure_ascii=False))
    match settlement.decision:
        case Decision.RESEND:
            ledger.purchases.reopen_for_resend(run_id, request_id)
        case Decision.JOB:
            ledger.purchases.change(run_id, request_id, AttemptState.ACCEPTED, job_id=settlement.named)
        case Decision.MADE:
            # As of what is made without a job: its ID stands for the job's.
            ledger.purchases.change(run_id, request_id, AttemptState.ACCEPTED, job_id=settlement.named)
            ledger.purchases.change(run_id, request_id, AttemptState.SUCCEEDED, result_id=settlement.named)
        case Decision.WRITE_OFF:
            error = {
                "error_code": WRITTEN_OFF,
                "error": f"Written off by {settlement.by}: {settlement.reason}",
            }
            before = ledger.purchases.attempt(request_id)
            if before is not None and before.state is AttemptState.INTENDED:
                ledger.purchases.change(run_id, request_id, AttemptState.HELD, **error)
            ledger.purchases.change(run_id, request_id, AttemptState.FAILED, **error)
