"""A person's decision about an attempt that no run may decide: on the record, and never beside a run."""

from __future__ import annotations

import json
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from patternmill.errors import ConfigurationError
from patternmill.identifiers import RequestId, RunId
from patternmill.ledger.ledger import Hold, Ledger
from patternmill.ledger.records import Attempt
from patternmill.ledger.settlements import Unsettled, open_attempt, send_again
from patternmill.mill.holding import take_hold
from patternmill.states import AttemptState

#: The error code of an attempt that a person wrote off.
WRITTEN_OFF = "written_off"
#: The kind of the event that keeps who decided, what and why.
SETTLED = "settled"


class Decision(StrEnum):
    """What a person may decide."""

    #: The same request goes out once more with the next run; the service makes nothing twice for one request ID.
    RESEND = "resend"
    #: Whatever the service has for it is given up; a retry makes a new attempt, which is paid for.
    WRITE_OFF = "write_off"
    #: The person found the service's job for it; the next run follows that job.
    JOB = "job"


@dataclass(frozen=True)
class Settlement:
    """One decision, with who made it and why."""

    request_id: RequestId
    decision: Decision
    reason: str
    by: str
    #: With Decision.JOB alone.
    job_id: str | None = None


async def settle(
    ledger: Ledger,
    settlement: Settlement,
    *,
    limit: timedelta,
    take: Callable[[Ledger, str, str, RunId], Awaitable[Hold]] = take_hold,
) -> Attempt:
    """Do what a person decided about a held attempt, or one older than `limit`, and put it on record.

    Raises ConfigurationError when there is nothing to decide, and Overlap while a run drives the catalog.
    """
    found = undecided(ledger, settlement, limit)
    run_id = RunId(f"settle-{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(3)}")
    hold = await take(ledger, found.environment, found.catalog, run_id)
    try:
        with ledger.transaction(hold):
            # Once more: what was seen before the catalog was held may have changed.
            undecided(ledger, settlement, limit)
            _note(ledger, run_id, settlement)
            return _decide(ledger, run_id, settlement)
    finally:
        with ledger.transaction(hold):
            ledger.release(hold)


def undecided(ledger: Ledger, settlement: Settlement, limit: timedelta) -> Unsettled:
    """The attempt that a settlement is about. Raises ConfigurationError when it is none to decide about so."""
    found = open_attempt(ledger, settlement.request_id)
    if found is None:
        raise ConfigurationError(
            f"There is no request {settlement.request_id!r} in this ledger.",
            remedy="See `patternmill settle --list`.",
        )
    _refuse_young(found, timedelta(seconds=max(0.0, ledger.now() - found.since)), limit)
    if settlement.decision is Decision.JOB:
        _refuse_job(ledger, found, settlement)
    if settlement.decision is Decision.RESEND and found.attempt.state is AttemptState.ACCEPTED:
        raise ConfigurationError(
            f"The service has job {found.attempt.job_id} for it; sending the request again changes nothing.",
            remedy="Wait for the job with another run, or write it off.",
        )
    return found


def _refuse_young(found: Unsettled, age: timedelta, limit: timedelta) -> None:
    state = found.attempt.state
    if state is AttemptState.HELD or (_is_open(state) and age > limit):
        return
    if _is_open(state):
        raise ConfigurationError(
            f"Request {found.attempt.request_id} is {state} since {age.total_seconds() / 3600:.1f} h; "
            f"a person decides after {limit.total_seconds() / 3600:g} h only.",
            remedy="Run the same import again: it goes on with it.",
        )
    raise ConfigurationError(
        f"Request {found.attempt.request_id} is {state}: there is nothing to decide.",
        remedy=f"See `patternmill explain {found.attempt.request_id}`.",
    )


def _is_open(state: AttemptState) -> bool:
    return state in (AttemptState.INTENDED, AttemptState.ACCEPTED)


def _refuse_job(ledger: Ledger, found: Unsettled, settlement: Settlement) -> None:
    assert settlement.job_id, "the decision names a job"
    other = ledger.request_of_job(settlement.job_id)
    if other is not None and other != found.attempt.request_id:
        raise ConfigurationError(
            f"Job {settlement.job_id} belongs to request {other}.", remedy="Look for the job of this request."
        )
    if found.attempt.state is AttemptState.ACCEPTED:
        raise ConfigurationError(
            f"Request {found.attempt.request_id} has job {found.attempt.job_id} already.",
            remedy="Write it off if that job will never end.",
        )


def _note(ledger: Ledger, run_id: RunId, settlement: Settlement) -> None:
    detail = {"decision": settlement.decision, "by": settlement.by, "reason": settlement.reason}
    if settlement.job_id:
        detail["job_id"] = settlement.job_id
    ledger.note(run_id, SETTLED, settlement.request_id, detail=json.dumps(detail, ensure_ascii=False))


def _decide(ledger: Ledger, run_id: RunId, settlement: Settlement) -> Attempt:
    match settlement.decision:
        case Decision.RESEND:
            return send_again(ledger, run_id, settlement.request_id)
        case Decision.JOB:
            return ledger.change(
                run_id, settlement.request_id, AttemptState.ACCEPTED, job_id=settlement.job_id
            )
        case Decision.WRITE_OFF:
            return _write_off(ledger, run_id, settlement)


def _write_off(ledger: Ledger, run_id: RunId, settlement: Settlement) -> Attempt:
    told = f"Written off by {settlement.by}: {settlement.reason}"
    before = ledger.attempt(settlement.request_id)
    if before is not None and before.state is AttemptState.INTENDED:
        ledger.change(run_id, settlement.request_id, AttemptState.HELD, error_code=WRITTEN_OFF, error=told)
    return ledger.change(
        run_id, settlement.request_id, AttemptState.FAILED, error_code=WRITTEN_OFF, error=told
    )
