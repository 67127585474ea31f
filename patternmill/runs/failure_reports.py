"""Reports to the service's operators about what failed: found in the ledger, written from its records, sent once."""

from __future__ import annotations

import json
import uuid
from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from patternmill import __version__
from patternmill.errors import ConfigurationError
from patternmill.identifiers import RequestId
from patternmill.ledger.events import FeedbackEvent, intend_feedback, last_answer
from patternmill.ledger.ledger import Ledger
from patternmill.ledger.records import Attempt, is_free
from patternmill.ledger.reports.requests import run_of
from patternmill.ledger.reports.story import Story
from patternmill.service.feedback_report import Delivery, FeedbackReport, feedback_report
from patternmill.service.jobs import CREATES, POLL
from patternmill.service.studio_api import StudioApi
from patternmill.states import WRITTEN_OFF, AttemptState, Stage

#: The states of what may be reported: there was a request, and nothing was made.
_WITHOUT_RESULT = frozenset(AttemptState) - {AttemptState.WITHDRAWN, AttemptState.SUCCEEDED}
#: What a report says about a request that has not ended, by its state.
_WITHOUT_END = {
    AttemptState.INTENDED: "The request had no clear answer.",
    AttemptState.ACCEPTED: "The job had not ended when it was last asked for.",
}
#: The most bytes of a request's body that are reported: a body with a picture in it is left out.
_LARGEST_BODY = 32_000
#: The greatest status that a report may have; a greater one is left out.
_LARGEST_STATUS = 599
_STAGES = list(Stage)


#: An attempt that made nothing, and the operation that it was asked of.
Failure = tuple[Attempt, str]


def failure_in(ledger: Ledger, stories: Sequence[Story], name: str) -> Failure:
    """Return the failure of a row, or that of the request or job of this name.

    Raises ConfigurationError when there is none, or while a run goes on that may still make the item.
    """
    if len(stories) > 1:
        scopes = ", ".join(f"{story.catalog} ({story.environment})" for story in stories)
        raise ConfigurationError(
            f"Which {name} is meant: that of {scopes}?", remedy="Name the catalog and the environment."
        )
    failure = next(_failures_in(stories[0], name), None)
    if failure is None:
        raise ConfigurationError(
            f"{name!r} did not fail at the service: there is nothing to report.",
            remedy="See `patternmill status`.",
        )
    lease = ledger.catalogs.lease(stories[0].environment, stories[0].catalog)
    attempt, _ = failure
    if attempt.state in _WITHOUT_END and lease is not None and not is_free(lease):
        text = f"Request {attempt.request_id} is of a run that goes on."
        raise ConfigurationError(text, remedy="Wait until it has ended.")
    return failure


def _failures_in(story: Story, name: str) -> Iterator[Failure]:
    """Yield the failures that a name may mean: of the request or job itself, or else the last one of each item."""
    attempts = [(item, attempt) for item in story.items for attempt in item.attempts]
    if name != story.sku:
        attempts = [pair for pair in attempts if name in (pair[1].request_id, pair[1].job_id)]
    elif story.runs:
        current = [item for item in story.items if not story.is_of_earlier_request(item.key)]
        attempts = [(item, item.attempt) for item in current if item.attempts]
    for item, attempt in sorted(attempts, key=lambda pair: -_STAGES.index(pair[0].stage)):
        if attempt.state in _WITHOUT_RESULT:
            named = item.content.get("operation") if item.stage is Stage.REFINEMENT else None
            create = CREATES[item.stage]
            yield attempt, f"{create}/{named}" if named else create


def failure_report(
    ledger: Ledger, failure: Failure, secrets: Collection[str], text: str | None
) -> FeedbackReport:
    """Return a report, under a new ID, of what the ledger knows and nothing else; `text` has a person's words."""
    attempt, operation = failure
    if attempt.is_forgotten:
        raise ConfigurationError(
            f"What request {attempt.request_id} asked for was forgotten: there is nothing to report.",
            code="forgotten",
        )
    at, response = attempt.ended_at or attempt.accepted_at or attempt.intended_at, dict[str, Any]()
    if answer := last_answer(ledger, attempt.request_id):
        at, response = answer[0], json.loads(answer[1])
        asked = response.pop("operation")
        operation = operation if asked == POLL else asked
        if response["status"] > _LARGEST_STATUS:
            del response["status"]
    fields: dict[str, Any] = {"response": response} if response else {}
    fields |= {
        "requestId": f"feedback-{uuid.uuid4()}",
        "text": text if text is not None else _text(attempt, operation),
        "procedure": operation,
        "agent": f"patternmill/{__version__}",
        "reportedAt": f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%SZ}",
        "request": _request(ledger, attempt),
    }
    return feedback_report(fields, secrets)


async def send_feedback(
    ledger: Ledger, api: StudioApi, request_id: RequestId, report: FeedbackReport
) -> Delivery | None:
    """Send a report once; return None when the attempt was reported before, or may have been.

    It is on record before it is sent, and its outcome after, so that a report that was interrupted stays in doubt.
    """
    run = run_of(ledger, request_id)
    assert run is not None, "an attempt is of a run"
    if not intend_feedback(ledger, run.run_id, request_id, report["requestId"]):
        return None
    delivery = state, message = await api.send_feedback(report)
    with ledger.transaction():
        ledger.record_event(run.run_id, FeedbackEvent(f"feedback_{state}"), request_id, detail=message)
    return delivery


def _request(ledger: Ledger, attempt: Attempt) -> dict[str, Any]:
    run = run_of(ledger, attempt.request_id)
    version = run.versions.get("patternmill") if run is not None else None
    agent = {"userAgent": f"patternmill/{version}"} if version else {}
    return agent | ({"body": json.loads(attempt.body)} if len(attempt.body) <= _LARGEST_BODY else {})


def _text(attempt: Attempt, operation: str) -> str:
    """Return what was expected and what happened, without the reason that a person gave for writing it off."""
    reason = _WITHOUT_END.get(attempt.state) or attempt.error or "The service gave no reason."
    if attempt.error_code == WRITTEN_OFF:
        reason = "It never became clear whether the request was executed."
    job = f", job {attempt.job_id}" if attempt.job_id else ""
    named = f"{attempt.error_code or attempt.state}; request {attempt.request_id}{job}"
    return f"Expected: {operation} makes what it was asked for.\nHappened: {reason} [{named}]"
