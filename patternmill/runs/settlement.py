"""A person's decision about requests that no run may decide: which are meant, what speaks against it, and doing it."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum
from functools import partial
from itertools import groupby
from operator import attrgetter
from typing import Any

from patternmill.engine.evidence import contradictions, owner_of_result
from patternmill.errors import ConfigurationError, Overlap, PatternmillError, ServiceStopped
from patternmill.identifiers import RequestId, RunId
from patternmill.ledger.events import last_answer
from patternmill.ledger.ledger import Ledger
from patternmill.ledger.records import Attempt, Lease, is_free
from patternmill.ledger.reports.requests import (
    NamedItems,
    RecordedItem,
    age_of,
    find_request,
    is_for_a_person,
    run_of,
)
from patternmill.ledger.reports.run_lookup import runs_with_lease
from patternmill.planning.items import catalog_of
from patternmill.planning.rows import tidy
from patternmill.runs.lease import hold_lease
from patternmill.runs.recorded_rows import run_results
from patternmill.service.jobs import Job, named_result
from patternmill.states import OPEN_STATES, UNPROMISED_STAGES, WRITTEN_OFF, AttemptState, Stage
from patternmill.tables.row_filter import RowFilter, lines_meant
from patternmill.text import duration

LookUp = Callable[[str], Awaitable[Job | None]]
#: The kind of the event that records who decided what, and why.
SETTLED = "settled"
_IN_CONSOLE = "Nothing was changed. Look for the job of this request in the service's console."


class Resolution(StrEnum):
    """A decision that a person can make about a request."""

    #: The next run sends the same request once more; until it is answered it stays in doubt, with its price.
    RESEND = "resend"
    #: What the service may have made is abandoned; a retry makes a new attempt, which is paid for.
    WRITE_OFF = "write_off"
    #: The person names the service's job for it, also where it counts as failed; the next run follows that job.
    JOB = "job"
    #: The person names what the service made for it; the next run builds on that.
    MADE = "made"


@dataclass(frozen=True)
class Settlement:
    """A decision about requests, with who made it and why."""

    decision: Resolution
    reason: str
    by: str
    #: The ID of the job, or of what was made.
    named: str = ""


def requests_meant(
    ledger: Ledger,
    items: Iterable[RecordedItem],
    wanted: RowFilter,
    *,
    environment: str | None = None,
    catalog: str | None = None,
) -> list[RecordedItem]:
    """Return the requests of the rows that fit a filter, as these rows are now in the runs that made the requests.

    A catalog's orders count as its own, but fit no filter of rows. Raises ConfigurationError for an unknown sku.
    """
    requests = [
        item
        for item in items
        if environment in (None, item.environment) and catalog in (None, catalog_of(item.catalog))
    ]
    if wanted.is_empty or not requests:
        return requests
    records = {run.run_id: run for item in requests if (run := run_of(ledger, item.attempt.request_id))}
    runs = [run_results(ledger, record, now=True).read() for record in records.values()]
    lines = lines_meant(runs, wanted) if runs else set()
    keys = {
        key
        for run_id in records
        for row in ledger.runs.rows_of(run_id)
        if (run_id, row.line) in lines
        for _, key in row.chain
    }
    return [item for item in requests if item.attempt.item_key in keys]


def next_runs(ledger: Ledger, items: Iterable[RecordedItem]) -> tuple[list[RecordedItem], list[RecordedItem]]:
    """Return the requests in doubt that the next run resends, and those that a live run drives."""
    waiting, driven = list[RecordedItem](), list[RecordedItem]()
    for item in items:
        lease = ledger.catalogs.lease(item.environment, item.catalog)
        (waiting if lease is None or is_free(lease) else driven).append(item)
    return waiting, driven


async def settle(
    ledger: Ledger,
    items: Sequence[RecordedItem],
    settlement: Settlement,
    *,
    limit: timedelta,
    look_up: LookUp | None = None,
) -> dict[RequestId, PatternmillError]:
    """Do what a person decided about requests, as they were shown, and record it, in one transaction per catalog.

    Returns why some were left as they were: no person decides about them (they are neither held nor older than
    `limit`), they have changed meanwhile, evidence speaks against it, or a run drives their catalog. `look_up` shows
    the job that a person names; raises ConfigurationError when it cannot, or no job can settle the one request.
    """
    settling = _Settling(ledger, settlement, limit)
    if settlement.decision is Resolution.JOB:
        (item,) = items
        # The service is asked nothing about a request that no job can settle.
        if objection := settling.objection(item):
            raise objection
        settling.job = await _look_at(settlement.named, look_up)
    left: dict[RequestId, PatternmillError] = {}
    scope = attrgetter("environment", "catalog")
    for (environment, catalog), group in groupby(sorted(items, key=scope), key=scope):
        requests = {item.attempt.request_id: item for item in group}
        try:
            async with hold_lease(ledger, environment, catalog, "settle") as lease:
                left |= settling.settle_catalog(lease, requests.values())
        except Overlap as overlap:
            left |= dict.fromkeys(requests, overlap)
    return left


async def _look_at(job_id: str, look_up: LookUp | None) -> Job:
    """Return a job as the service shows it. Raises ConfigurationError when it knows none, or cannot be asked."""
    assert look_up is not None, "who names a job says where it is looked at"
    try:
        job = await look_up(job_id)
    except ServiceStopped as stopped:
        raise ConfigurationError(
            f"Job {job_id} could not be looked at: {stopped.message}",
            remedy="Nothing was changed. See that the service is up and that its address and key are right, "
            "then decide again; or decide with --resend or --write-off.",
        ) from stopped
    if job is None:
        raise ConfigurationError(f"The service knows no job {job_id}.", remedy=_IN_CONSOLE)
    return job


@dataclass
class _Settling:
    """A settlement that is being carried out: what speaks against it for a request, and what it does."""

    ledger: Ledger
    settlement: Settlement
    limit: timedelta
    #: What the service shows of the job that the person names.
    job: Job | None = None

    def settle_catalog(
        self, lease: Lease, items: Iterable[RecordedItem]
    ) -> dict[RequestId, PatternmillError]:
        """Settle requests of the lease's catalog in one transaction; return why some were left."""
        left: dict[RequestId, PatternmillError] = {}
        with self.ledger.transaction(lease):
            for item in items:
                if objection := self.objection(item):
                    left[item.attempt.request_id] = objection
                else:
                    self._carry_out(lease.run_id, item.attempt)
            # The results of the latest run show the decision; until a run has ended, its rows are not recorded.
            latest = next(runs_with_lease(self.ledger, lease.catalog, lease.environment), None)
            if latest is not None and latest.outcome is not None:
                self.ledger.runs.write_decided_rows(latest)
        return left

    def objection(self, shown: RecordedItem) -> ConfigurationError | None:
        """Return why the decision is not possible: by the request's state, by what was shown of it, or by evidence."""
        item = find_request(self.ledger, shown.attempt.request_id)
        request = f"Request {item.attempt.request_id}"
        for text, remedy in self._against_state(item):
            return ConfigurationError(f"{request} {text}", remedy=remedy)
        if item.attempt != shown.attempt:
            text = f"{request} has changed since it was shown; it is {item.attempt.state} now."
            return ConfigurationError(text, remedy="See `patternmill settle`.")
        evidence: Iterable[str] = ()
        if self.job is not None:
            evidence = self._against_job(item, self.job)
        elif self.settlement.decision is Resolution.MADE:
            evidence = self._against_result(item)
        return next((ConfigurationError(text, remedy=_IN_CONSOLE) for text in evidence), None)

    def _against_state(self, item: RecordedItem) -> Iterator[tuple[str, str]]:
        """Yield how the state of a request speaks against the decision, and what to do instead."""
        attempt, decision, named = item.attempt, self.settlement.decision, NamedItems(self.ledger)
        is_led_back = decision is Resolution.JOB and attempt.state is AttemptState.FAILED
        if not is_led_back and not is_for_a_person(self.ledger, item, self.limit, named):
            if attempt.state in OPEN_STATES and (age := age_of(self.ledger, item)) is not None:
                hours = f"{self.limit.total_seconds() / 3600:g} h"
                text = f"is {attempt.state} for {duration(age)}; a person decides after {hours} only."
                yield text, "Run the same import again: it resumes it."
            yield f"is {attempt.state}: there is nothing to decide.", _explain(attempt)
        if decision is Resolution.RESEND and attempt.state is AttemptState.ACCEPTED:
            remedy = "Wait for the job with another run, or write it off."
            yield f"has job {attempt.job_id}; sending it again changes nothing.", remedy
        if decision is Resolution.RESEND and item not in named:
            remedy = (
                "Name what was made of it, or write it off; or import a sheet that has its row as it was."
            )
            yield "is for no row of its catalog any more: no run would send it again.", remedy
        if decision is Resolution.JOB:
            yield from self._against_following(item)

    def _against_following(self, item: RecordedItem) -> Iterator[tuple[str, str]]:
        """Yield how the state of a request speaks against following a job for it, and what to do instead."""
        attempt = item.attempt
        if attempt.is_forgotten:
            remedy = "Import its row again, and retry it: the service is asked about its own job first."
            yield "asked for what was forgotten since, so that no job can be compared with it.", remedy
        if item.stage is Stage.CHECKOUT:
            remedy = "Decide with --resend or --write-off: a checkout that nobody pays costs nothing."
            yield "is for a checkout, which no job makes.", remedy
        *_, last = self.ledger.purchases.attempts_of(attempt.item_key, bodies=False)
        if last.request_id != attempt.request_id:
            yield "was followed by another attempt.", _explain(attempt)
        if attempt.state is AttemptState.FAILED and attempt.job_id not in (None, self.settlement.named):
            yield f"had job {attempt.job_id}.", f"Name that one: --job {attempt.job_id}."
        if attempt.state is AttemptState.ACCEPTED:
            yield f"has job {attempt.job_id} already.", "Write it off if that job will never end."

    def _against_job(self, item: RecordedItem, job: Job) -> Iterator[str]:
        """Yield what speaks against the job that is named: what would in any response, and what it repeats.

        The person may have mistaken a job of another kind for it, or one for another prompt or selection.
        """
        attempt = replace(item.attempt, job_id=self.settlement.named)
        not_its = f"Job {attempt.job_id} is not of request {attempt.request_id}:"
        for contradiction in contradictions(
            self.ledger.purchases, job, attempt, item.stage, item.environment
        ):
            yield f"{not_its} {contradiction.message}"
        if job.has_another_kind(item.stage):
            yield f"{not_its} its kind is {job.kind!r}, and a {item.stage} was asked for."
        body = json.loads(attempt.body)
        for shown in job.repeated:
            for name in body.keys() & shown.keys() - {"requestId"}:
                if shown[name] not in (None, "", {}) and not _is_repeated(body[name], shown[name]):
                    yield f"{not_its} its {name} is {shown[name]!r}, and the request's is {body[name]!r}."

    def _against_result(self, item: RecordedItem) -> Iterator[str]:
        """Yield what on record speaks against the result that is named.

        The interface states no operation that shows a refinement or a reference, so the service is not asked.
        """
        attempt, result_id = item.attempt, self.settlement.named
        answer = last_answer(self.ledger, attempt.request_id)
        named = named_result(json.loads(answer[1]).get("body"), item.stage) if answer is not None else None
        if item.stage not in UNPROMISED_STAGES or attempt.state is AttemptState.ACCEPTED:
            yield f"A job makes the {item.stage} of request {attempt.request_id}: name that with --job."
        if named not in (None, result_id):
            yield f"The service answered request {attempt.request_id} with {named}."
        if other := owner_of_result(self.ledger.purchases, result_id, attempt, item.stage, item.environment):
            yield f"{result_id} was made for request {other}."

    def _carry_out(self, run_id: RunId, attempt: Attempt) -> None:
        """Record the decision, then do what it says."""
        settlement, request_id, decision = self.settlement, attempt.request_id, self.settlement.decision
        change = partial(self.ledger.purchases.change, run_id, request_id)
        detail = {"decision": decision, "by": settlement.by, "reason": settlement.reason}
        if settlement.named:
            detail[f"{decision}_id"] = settlement.named
        self.ledger.record_event(run_id, SETTLED, request_id, detail=json.dumps(detail, ensure_ascii=False))
        if decision is Resolution.RESEND:
            self.ledger.purchases.reopen_for_resend(run_id, request_id)
        elif decision is Resolution.WRITE_OFF:
            text = f"Written off by {settlement.by}: {settlement.reason}"
            if attempt.state is AttemptState.INTENDED:
                change(AttemptState.HELD, error_code=WRITTEN_OFF, error=text)
            change(AttemptState.FAILED, error_code=WRITTEN_OFF, error=text)
        else:
            # What is made without a job has its own ID in the job's place.
            change(AttemptState.ACCEPTED, job_id=settlement.named)
            if decision is Resolution.MADE:
                change(AttemptState.SUCCEEDED, result_id=settlement.named)


def _explain(attempt: Attempt) -> str:
    return f"See `patternmill explain {attempt.request_id}`."


def _is_repeated(asked: Any, shown: Any) -> bool:
    """Return whether what is shown is what was asked for; a service may add its defaults to selections.

    Another Unicode form of a text, or spaces around it, make no difference.
    """
    if isinstance(asked, dict) and isinstance(shown, dict):
        return all(name in shown and _is_repeated(asked[name], shown[name]) for name in asked)
    if isinstance(asked, str) and isinstance(shown, str):
        return tidy(asked) == tidy(shown)
    return bool(asked == shown)
