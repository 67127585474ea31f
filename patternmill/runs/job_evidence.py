"""Whether what a person names, a job or a result, can be that of a request, as far as service and ledger show it."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any

from patternmill.catalog.rows import tidy
from patternmill.errors import ConfigurationError, ServiceStopped
from patternmill.ledger.feedback_log import last_answer
from patternmill.ledger.ledger import Ledger
from patternmill.ledger.records import Attempt
from patternmill.ledger.reports.items import RecordedItem
from patternmill.service.jobs import Job, named_result
from patternmill.states import UNPROMISED_STAGES, AttemptState, Stage

LookUp = Callable[[str], Awaitable[Job | None]]

#: Where a service may repeat what it was asked for, next to the job itself.
_REPEATED_IN = ("request", "input", "inputs", "params", "parameters", "arguments", "body", "payload")
_REMEDY = "Nothing was changed. Look for the job of this request in the service's console."


async def verified_job(job_id: str, item: RecordedItem, look_up: LookUp | None) -> Job:
    """The job as the service shows it, when nothing in it speaks against the request.

    Raises ConfigurationError when something does, and when the service knows no such job or cannot be asked.
    """
    if look_up is None:
        raise ConfigurationError(f"Job {job_id} could not be looked at.", remedy="Nothing was changed.")
    try:
        job = await look_up(job_id)
    except ServiceStopped as stopped:
        raise ConfigurationError(
            f"Job {job_id} could not be looked at: {stopped.message}",
            remedy="Nothing was changed. See that the service is up and that its address and key are right, "
            "then decide again; or decide with --resend or --write-off.",
        ) from stopped
    if job is None:
        raise ConfigurationError(f"The service knows no job {job_id}.", remedy=_REMEDY)
    for contradiction in _contradictions(job, job_id, item):
        raise ConfigurationError(
            f"Job {job_id} is not of request {item.attempt.request_id}: {contradiction}", remedy=_REMEDY
        )
    return job


def refuse_result_of_another(ledger: Ledger, job: Job, item: RecordedItem) -> None:
    result_id = job.result_id(item.stage)
    if result_id and (other := _other_with(ledger, result_id, item)):
        raise ConfigurationError(
            f"Job {job.job_id} made {result_id}, which belongs to request {other.request_id}.", remedy=_REMEDY
        )


def refuse_made(ledger: Ledger, result_id: str, item: RecordedItem) -> None:
    """Raise ConfigurationError where something on record speaks against a result that a person names.

    No operation is stated that shows a refinement or a reference, so that the service is not asked.
    """
    request_id, why = item.attempt.request_id, None
    kept = last_answer(ledger, request_id)
    named = named_result(json.loads(kept[1]).get("body"), item.stage) if kept is not None else None
    if item.stage not in UNPROMISED_STAGES or item.attempt.state is AttemptState.ACCEPTED:
        why = f"A job makes the {item.stage} of request {request_id}: name that with --job."
    elif named not in (None, result_id):
        why = f"The service answered request {request_id} with {named}."
    elif other := _other_with(ledger, result_id, item):
        why = f"{result_id} was made for request {other.request_id}."
    if why is not None:
        raise ConfigurationError(why, remedy=_REMEDY)


def _other_with(ledger: Ledger, result_id: str, item: RecordedItem) -> Attempt | None:
    """Made for another item; a refinement may change in place what it is made of."""
    chain = {content.get("pattern") for content in ledger.purchases.pattern_contents(item.attempt.item_key)}
    stages = {Stage.PATTERN, Stage.REFINEMENT} if item.stage is Stage.REFINEMENT else {item.stage}
    named = (ledger.purchases.attempts_with_result(result_id, item.environment, stage) for stage in stages)
    return next((other for made in named for other in made if other.item_key not in chain), None)


def _contradictions(job: Job, job_id: str, item: RecordedItem) -> Iterator[str]:
    if job.job_id != job_id:
        yield f"the service answers with job {job.job_id}."
    if job.has_another_kind(item.stage):
        yield f"its kind is {job.kind!r}, and a {item.stage} was asked for."
    if job.made and item.stage not in job.made:
        yield f"it made a {min(job.made)}, and a {item.stage} was asked for."
    asked: Mapping[str, Any] = json.loads(item.attempt.body)
    for shown in _repeated(job.raw):
        for name in asked.keys() & shown.keys():
            if shown[name] not in (None, "", {}) and _plain(shown[name]) != _plain(asked[name]):
                yield f"its {name} is {shown[name]!r}, and the request's is {asked[name]!r}."


def _repeated(raw: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The job itself, and what it was asked for where that is an object of its own."""
    yield raw
    yield from (raw[name] for name in _REPEATED_IN if isinstance(raw.get(name), dict))


def _plain(value: Any) -> Any:
    """As it counts: the same text in another Unicode form, or with spaces around it, is no other request."""
    if isinstance(value, str):
        return tidy(value)
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    return value
