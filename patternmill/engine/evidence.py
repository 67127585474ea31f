"""Evidence against a response about a job: why it cannot belong to the request that it answers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import orjson

from patternmill.identifiers import RequestId
from patternmill.ledger.purchases import Purchases
from patternmill.ledger.records import Attempt
from patternmill.service.jobs import FAILED, SUCCEEDED, Job
from patternmill.states import Stage

#: A refinement may change its pattern in place, so that both may have the same result ID.
_OF_PATTERNS = frozenset({Stage.PATTERN, Stage.REFINEMENT})


@dataclass(frozen=True, slots=True)
class Contradiction:
    """The reason why a response cannot be believed. A person decides about the request."""

    code: str
    message: str
    #: Whether nothing more is begun, as other requests may be answered with one another's jobs and results too.
    stops: bool = True


def contradictions(
    purchases: Purchases, job: Job, asked: Attempt, stage: Stage, environment: str
) -> Iterator[Contradiction]:
    """Yield what contradicts a response, the gravest first, as seen by the transaction that records what it leads to.

    `asked`: the attempt, with the job ID that was asked for, if any.
    """
    if asked.job_id not in (None, job.job_id):
        yield Contradiction(
            "wrong_job", f"Asked for job {asked.job_id}, the service answered with job {job.job_id}."
        )
    owner = None if job.is_immediate else purchases.request_of_job(job.job_id, environment)
    if owner not in (None, asked.request_id):
        message = f"The service answered with job {job.job_id}, which belongs to request {owner}."
        yield Contradiction("job_of_another_item", message)
    named = (RequestId(name) for name in job.request_ids if name != asked.request_id)
    if other := next((name for name in named if purchases.attempt(name) is not None), None):
        message = f"Job {job.job_id} names request {other}, which is another one of ours."
        yield Contradiction("request_of_another_item", message)
    if job.has_ended and (made := job.made) and stage not in made:
        message = f"Job {job.job_id} was to make a {stage}, and it made something else: a {min(made)}."
        yield Contradiction("job_of_another_kind", message, stops=False)
    sent = orjson.loads(asked.body).get("patternId")
    if pattern := next((name for name in job.pattern_ids(stage) if sent is not None and name != sent), None):
        message = (
            f"Job {job.job_id} names pattern {pattern}, and the {stage} was asked for on pattern {sent}."
        )
        yield Contradiction("job_of_another_pattern", message)
    if job.status == FAILED and (result := job.named_anywhere(stage)):
        message = f"Job {job.job_id} has failed, the service says, and yet it names what it made: {result}."
        yield Contradiction("failed_with_result", message, stops=False)
    result_id = job.result_id(stage) if job.status == SUCCEEDED else None
    if other := owner_of_result(purchases, result_id, asked, stage, environment):
        message = f"Job {job.job_id} made {result_id}, which belongs to request {other}."
        yield Contradiction("result_of_another_item", message)


def owner_of_result(
    purchases: Purchases, result_id: str | None, asked: Attempt, stage: Stage, environment: str
) -> RequestId | None:
    """Return the request of another item that has this result, except one of a refinement's own chain.

    A service may make one result for the same content, as for two rows that differ only in their skus; but each
    checkout is paid on its own.
    """
    if result_id is None:
        return None
    stages = _OF_PATTERNS if stage in _OF_PATTERNS else {stage}
    for other in purchases.attempts_with_result(result_id, environment, stages):
        is_alike = stage is not Stage.CHECKOUT and other.is_like(asked)
        if not is_alike and other.item_key not in purchases.chain_of(asked.item_key):
            return other.request_id
    return None
