"""Reports to the service's operators about what failed: found in the ledger, written from its story, sent once."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from patternmill import __version__
from patternmill.errors import ConfigurationError
from patternmill.identifiers import RunId
from patternmill.ledger.feedback_log import (
    FailureCause,
    FeedbackEntry,
    FeedbackEvent,
    intend_feedback,
    last_answer,
    reported_causes,
)
from patternmill.ledger.ledger import Ledger, open_ledger
from patternmill.ledger.records import Attempt, RunRecord
from patternmill.ledger.reports.current_rows import PresentRow, present_rows
from patternmill.ledger.reports.story import Story
from patternmill.ledger.reports.unsettled import open_attempt, run_of
from patternmill.results.summary import signature
from patternmill.runs.lease import is_free
from patternmill.service.feedback_report import Delivery, DeliveryState, FeedbackReport, feedback_report
from patternmill.service.jobs import ON_WIRE
from patternmill.service.outcomes import FailedExchange
from patternmill.service.polling import POLL
from patternmill.service.studio_api import StudioApi
from patternmill.settings import Settings
from patternmill.states import PASSING_REFUSALS, WRITTEN_OFF, AttemptState, RowStatus, Stage
from patternmill.text import moment, plural

#: Of one run that reports its failures by itself: the most reports, and how long all of it may take.
MOST_REPORTS = 5
TIME_LIMIT = timedelta(seconds=20)
AGENT = f"patternmill/{__version__}"
#: As the record of events has the sender.
BY_RUN, BY_PERSON = "run", "person"

#: What may be reported: there was a request, and nothing was made.
_WITHOUT_RESULT = frozenset(AttemptState) - {AttemptState.WITHDRAWN, AttemptState.SUCCEEDED}
_OF_SERVICE = frozenset({RowStatus.FAILED, RowStatus.HELD})
_UNFINISHED = frozenset({RowStatus.IN_DOUBT, RowStatus.WAITING})
#: Not of the service itself, or decided by a person.
_NOT_OF_SERVICE = PASSING_REFUSALS | {WRITTEN_OFF}
#: The error codes that rows have for it.
_OPEN = {AttemptState.INTENDED: "in_doubt", AttemptState.ACCEPTED: "gave_up_waiting"}
_MOST_ATTEMPTS = 5
#: Of the body of a request, in bytes: one with a picture in it is left out.
_LARGEST_BODY = 32_000
_STAGES = list(Stage)


@dataclass(frozen=True)
class Failure:
    """An attempt that made nothing; `rows` ended alike in its run."""

    attempt: Attempt
    stage: Stage
    sku: str | None
    rows: int = 1

    @property
    def cause(self) -> FailureCause:
        code = _OPEN.get(self.attempt.state) or self.attempt.error_code or "failed"
        return FailureCause(ON_WIRE[self.stage].create, code, signature(_reason(self.attempt)))


def failures_of_run(ledger: Ledger, record: RunRecord) -> list[Failure]:
    """One failure for each cause, the most frequent first, by what is known now."""
    rows = (row for row in present_rows(ledger, record) if row.outcome.status in _OF_SERVICE | _UNFINISHED)
    return _one_a_cause(map(_failure_of, rows))


def failures_to_report(ledger: Ledger, record: RunRecord) -> list[Failure]:
    """The same of what the service itself failed in this run, without what was reported before."""
    began, known = record.started_at.timestamp(), reported_causes(ledger, record.environment)
    rows = (row for row in present_rows(ledger, record) if row.outcome.status in _OF_SERVICE)
    failures = [
        failure
        for failure in map(_failure_of, rows)
        if failure.attempt.error_code not in _NOT_OF_SERVICE and (failure.attempt.ended_at or 0.0) >= began
    ]
    return [failure for failure in _one_a_cause(failures) if failure.cause not in known]


def failure_in(found: Sequence[Story], name: str) -> Failure:
    """The failure of a row, or that of the one request or job of this name. Raises ConfigurationError."""
    if len(found) > 1:
        scopes = ", ".join(f"{story.catalog} ({story.environment})" for story in found)
        raise ConfigurationError(
            f"Which {name} is meant: that of {scopes}?", remedy="Name the catalog and the environment."
        )
    for failure in _failures_in(found[0], name) if found else ():
        return failure
    known = "did not fail at the service" if found else "is not in this ledger"
    raise ConfigurationError(
        f"{name!r} {known}: there is nothing to report.", remedy="See `patternmill status`."
    )


def refuse_under_way(ledger: Ledger, failure: Failure) -> None:
    """Raise ConfigurationError while a run goes on that may still make it."""
    run = run_of(ledger, failure.attempt.request_id)
    lease = ledger.lease(run.environment, run.catalog) if run is not None else None
    if failure.attempt.state in _OPEN and lease is not None and not is_free(lease):
        raise ConfigurationError(
            f"Request {failure.attempt.request_id} is of a run that goes on.",
            remedy="Wait until it has ended.",
        )


def write_feedback(
    ledger: Ledger, failure: Failure, secrets: Collection[str], text: str | None = None
) -> FeedbackReport:
    """A report with a new ID: what the ledger knows, and nothing else. `text` replaces the one from the story.

    Raises ValueError when `text` is empty.
    """
    attempt = failure.attempt
    seen_at, exchange = _seen(ledger, attempt)
    operation = _operation(ledger, failure, exchange)
    fields: dict[str, Any] = {
        "requestId": f"feedback-{uuid.uuid4()}",
        "text": text if text is not None else _story(ledger, failure, operation, exchange),
        "procedure": operation,
        "agent": AGENT,
        "reportedAt": datetime.fromtimestamp(seen_at, UTC),
    }
    request = _request(ledger, attempt)
    if request:
        fields["request"] = request
    if exchange is not None:
        fields["response"] = _response(exchange)
    return feedback_report(fields, secrets)


async def send_feedback(
    ledger: Ledger, api: StudioApi, failure: Failure, report: FeedbackReport, run_id: RunId | None = None
) -> Delivery | None:
    """Send a report, once, between two records of it; None when a run finds its cause reported by then.

    `run_id`: the run that reports its own failures; None: a person does. A report that was interrupted stays in doubt.
    """
    request_id, by = failure.attempt.request_id, BY_RUN if run_id else BY_PERSON
    entry = FeedbackEntry(report.requestId, failure.cause, by)
    of_run = run_of(ledger, request_id)
    assert of_run is not None, "an attempt is of a run"
    sender = run_id or of_run.run_id
    once_in = of_run.environment if run_id else None
    if not intend_feedback(ledger, sender, request_id, entry, once_in=once_in):
        return None
    delivery = await api.send_feedback(report)
    with ledger.transaction():
        ledger.record_event(
            sender, _EVENTS[delivery.state], request_id, detail=entry.as_json(delivery.message)
        )
    return delivery


_EVENTS = {
    DeliveryState.SENT: FeedbackEvent.SENT,
    DeliveryState.IN_DOUBT: FeedbackEvent.IN_DOUBT,
    DeliveryState.UNAVAILABLE: FeedbackEvent.NOT_SENT,
    DeliveryState.NOT_SENT: FeedbackEvent.NOT_SENT,
}


async def send_run_feedback(settings: Settings, api: StudioApi, record: RunRecord) -> str:
    """Report what the service failed in an ended run, once a cause; returns what came of it, in a sentence.

    Stops at the first report that is not delivered, and when its time is over.
    """
    reports, left = await asyncio.to_thread(_written, settings, record)
    sent = 0
    with open_ledger(settings) as ledger:
        try:
            async with asyncio.timeout(TIME_LIMIT.total_seconds()):
                for failure, report in reports:
                    delivery = await send_feedback(ledger, api, failure, report, record.run_id)
                    if delivery is not None and delivery.state is not DeliveryState.SENT:
                        return f"{_sent(sent)} {delivery.message}"
                    sent += delivery is not None
        except TimeoutError:
            return f"{_sent(sent)} One more had no answer in time, and may have arrived."
    return f"{_sent(sent)} Left out: {plural(left, 'more cause')}." if left else _sent(sent)


def _written(settings: Settings, record: RunRecord) -> tuple[list[tuple[Failure, FeedbackReport]], int]:
    """The reports, and how many causes are left out."""
    with open_ledger(settings) as ledger:
        failures, secrets = failures_to_report(ledger, record), settings.secrets()
        reports = [(failure, write_feedback(ledger, failure, secrets)) for failure in failures[:MOST_REPORTS]]
    return reports, len(failures) - len(reports)


def _sent(count: int) -> str:
    return f"{plural(count, 'report')} sent to the service's operators." if count else "No report sent."


def _one_a_cause(failures: Iterable[Failure]) -> list[Failure]:
    found: dict[FailureCause, Failure] = {}
    for failure in failures:
        first = found.get(failure.cause)
        found[failure.cause] = replace(first, rows=first.rows + 1) if first else failure
    return sorted(found.values(), key=lambda failure: -failure.rows)


def _failure_of(row: PresentRow) -> Failure:
    """The last of the row's items that was begun."""
    for item in reversed(row.items):
        if item.last is not None and item.last.state in _WITHOUT_RESULT:
            return Failure(item.last, item.stage, row.sku)
    raise AssertionError("a row that failed had a request")


def _failures_in(story: Story, name: str) -> Iterator[Failure]:
    """Those that a name may mean: of the request or job itself, or else the last attempt at an item of the row."""
    attempts = [(item, attempt) for item in story.items for attempt in item.attempts]
    if name != story.sku:
        attempts = [(item, one) for item, one in attempts if name in (one.request_id, one.job_id)]
    elif story.runs:
        current = story.runs[-1].keys
        attempts = [
            (item, item.attempts[-1]) for item in story.items if item.key in current and item.attempts
        ]
    for item, attempt in sorted(attempts, key=lambda pair: -_STAGES.index(pair[0].stage)):
        if attempt.state in _WITHOUT_RESULT:
            yield Failure(attempt, item.stage, item.sku or story.sku)


def _operation(ledger: Ledger, failure: Failure, exchange: FailedExchange | None) -> str:
    """What the item was asked of: some stages have several."""
    if exchange is not None and exchange.operation != POLL:
        return exchange.operation
    item = open_attempt(ledger, failure.attempt.request_id)
    named = json.loads(item.content).get("operation") if item is not None else None
    return str(named or ON_WIRE[failure.stage].create)


def _request(ledger: Ledger, attempt: Attempt) -> dict[str, Any]:
    run = run_of(ledger, attempt.request_id)
    version = run.versions.get("patternmill") if run is not None else None
    known: dict[str, Any] = {"userAgent": f"patternmill/{version}"} if version else {}
    if len(attempt.body) <= _LARGEST_BODY:
        known["body"] = json.loads(attempt.body)
    return known


def _seen(ledger: Ledger, attempt: Attempt) -> tuple[float, FailedExchange | None]:
    """When the failure was seen, and the exchange that showed it, where it is on record."""
    answer = last_answer(ledger, attempt.request_id)
    if answer is None:
        return attempt.ended_at or attempt.accepted_at or attempt.intended_at, None
    return answer[0], FailedExchange.from_json(answer[1])


def _response(exchange: FailedExchange) -> dict[str, Any]:
    """A status outside the bounds of a report is left out; the text has it."""
    known: dict[str, Any] = {"durationMs": exchange.milliseconds}
    if exchange.status <= 599:
        known["status"] = exchange.status
    if exchange.body is not None:
        known["body"] = exchange.body
    return known


def _story(ledger: Ledger, failure: Failure, operation: str, exchange: FailedExchange | None) -> str:
    """What was expected, what happened, what was tried."""
    attempt, wire = failure.attempt, ON_WIRE[failure.stage]
    end = "the answer has" if wire.is_immediate else "its job ends with"
    parts = [
        f"Expected: {operation} is accepted, and {end} a {wire.result_field}.",
        f"Happened: {_reason(attempt)} [{failure.cause.code}]",
    ]
    if exchange is not None:
        arrived = f"The response is the last one, with status {exchange.status}"
        parts.append(f"{arrived if exchange.status else 'None arrived'}, to {exchange.operation}.")
    if failure.rows > 1:
        parts.append(f"{plural(failure.rows, 'row')} of one run ended alike.")
    parts.append("Tried:")
    attempts = [one for one in ledger.attempts_of(attempt.item_key) if one.attempt <= attempt.attempt]
    parts += [f"- {_tried(one)}" for one in attempts[-_MOST_ATTEMPTS:]]
    return "\n".join(parts)


def _reason(attempt: Attempt) -> str:
    """Why it made nothing; a person's own reason is not the service's business."""
    if attempt.error_code == WRITTEN_OFF:
        return "It never became clear whether the request was executed."
    if attempt.state is AttemptState.INTENDED:
        return "The request had no clear answer."
    if attempt.state is AttemptState.ACCEPTED:
        return "The job had not ended when it was last asked for."
    if attempt.state is AttemptState.FAILED:
        return f"The job failed: {attempt.error}"
    return attempt.error or "The service gave no reason."


def _tried(attempt: Attempt) -> str:
    job = f", job {attempt.job_id}" if attempt.job_id else ""
    state = "without an answer" if attempt.state is AttemptState.INTENDED else attempt.state.value
    return f"request {attempt.request_id} of {moment(attempt.intended_at)} UTC{job}: {state}"
