"""Whether what a person names, a job or a result, can be that of a request, as far as service and ledger show it."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from patternmill.catalog.rows import tidy
from patternmill.engine.evidence import Contradiction, contradictions, known_owners, owner_of_result
from patternmill.errors import ConfigurationError, ServiceStopped
from patternmill.ledger.feedback_log import last_answer
from patternmill.ledger.ledger import Ledger
from patternmill.ledger.reports.items import RecordedItem
from patternmill.service.jobs import Job, named_result
from patternmill.states import UNPROMISED_STAGES, AttemptState

LookUp = Callable[[str], Awaitable[Job | None]]

_REMEDY = "Nothing was changed. Look for the job of this request in the service's console."


async def verified_job(job_id: str, look_up: LookUp | None) -> Job:
    """The job as the service shows it. Raises ConfigurationError when it knows no such job, or cannot be asked."""
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
    return job


def refuse_contradictions(ledger: Ledger, job: Job, job_id: str, item: RecordedItem) -> None:
    """Raise ConfigurationError where something speaks against a job that a person names for a request."""
    asked = replace(item.attempt, job_id=job_id)
    owners = known_owners(ledger.purchases, job, asked, item.stage, item.environment)
    for found in (*contradictions(job, asked, item.stage, owners), *_repeats_another(job, item)):
        raise ConfigurationError(
            f"Job {job_id} is not of request {asked.request_id}: {found.message}", remedy=_REMEDY
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
    elif other := owner_of_result(ledger.purchases, result_id, item.attempt, item.stage, item.environment):
        why = f"{result_id} was made for request {other}."
    if why is not None:
        raise ConfigurationError(why, remedy=_REMEDY)


def _repeats_another(job: Job, item: RecordedItem) -> Iterator[Contradiction]:
    """What a person may have mistaken: a job of another kind, or one that repeats another prompt or selection."""
    if job.has_another_kind(item.stage):
        yield Contradiction("kind", f"its kind is {job.kind!r}, and a {item.stage} was asked for.")
    asked: Mapping[str, Any] = json.loads(item.attempt.body)
    for shown in job.repeated:
        for name in asked.keys() & shown.keys() - {"requestId"}:
            if shown[name] not in (None, "", {}) and not _is_in(_plain(asked[name]), _plain(shown[name])):
                yield Contradiction(
                    name, f"its {name} is {shown[name]!r}, and the request's is {asked[name]!r}."
                )


def _is_in(asked: Any, shown: Any) -> bool:
    """Return whether what is shown is what was asked for; a service may add its defaults to selections."""
    if isinstance(asked, dict) and isinstance(shown, dict):
        return asked.items() <= shown.items()
    return bool(asked == shown)


def _plain(value: Any) -> Any:
    """As it counts: the same text in another Unicode form, or with spaces around it, is no other request."""
    if isinstance(value, str):
        return tidy(value)
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    return value
