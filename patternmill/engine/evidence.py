"""Reads the evidence: whether a response about a job can be about the request that it answers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import orjson

from patternmill.identifiers import RequestId
from patternmill.ledger.purchases import Purchases
from patternmill.ledger.records import Attempt
from patternmill.service.jobs import FAILED, SUCCEEDED, Job
from patternmill.states import Stage

#: A refinement may change its pattern in place, so that both kinds of results share their IDs.
_OF_PATTERNS = frozenset({Stage.PATTERN, Stage.REFINEMENT})


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Why a response cannot be believed. A person decides about the request."""

    code: str
    message: str
    #: Others may be answered with each other's jobs and results too: nothing more is begun.
    stops: bool = True


@dataclass(frozen=True, slots=True)
class KnownOwners:
    """Our other requests to which the IDs in a response belong, by the ledger."""

    of_job: RequestId | None = None
    of_request_id: RequestId | None = None
    of_result: RequestId | None = None


_NOBODY = KnownOwners()


def contradictions(
    job: Job, asked: Attempt, stage: Stage, owners: KnownOwners = _NOBODY
) -> Iterator[Contradiction]:
    """Yield what speaks against a response, the gravest first. `asked`: with the job ID that was asked for, if any."""
    if asked.job_id not in (None, job.job_id):
        yield Contradiction(
            "wrong_job", f"Asked for job {asked.job_id}, the service answered with job {job.job_id}."
        )
    if owners.of_job is not None:
        message = f"The service answered with job {job.job_id}, which belongs to request {owners.of_job}."
        yield Contradiction("job_of_another_item", message)
    if owners.of_request_id is not None:
        message = f"Job {job.job_id} names request {owners.of_request_id}, which is another one of ours."
        yield Contradiction("request_of_another_item", message)
    if job.has_ended and job.made and stage not in job.made:
        message = f"Job {job.job_id} was to make a {stage}, and it made something else: a {min(job.made)}."
        yield Contradiction("job_of_another_kind", message, stops=False)
    sent = orjson.loads(asked.body).get("patternId")
    if other := next((named for named in job.pattern_ids(stage) if sent is not None and named != sent), None):
        message = f"Job {job.job_id} names pattern {other}, and the {stage} was asked for on pattern {sent}."
        yield Contradiction("job_of_another_pattern", message)
    if job.status == FAILED and (named := job.named_anywhere(stage)):
        message = f"Job {job.job_id} has failed, the service says, and yet it names what it made: {named}."
        yield Contradiction("failed_with_result", message, stops=False)
    if owners.of_result is not None:
        message = (
            f"Job {job.job_id} made {job.result_id(stage)}, which belongs to request {owners.of_result}."
        )
        yield Contradiction("result_of_another_item", message)


def known_owners(
    purchases: Purchases, job: Job, asked: Attempt, stage: Stage, environment: str
) -> KnownOwners:
    """Look up in the ledger whose the IDs in a response are; in the transaction that writes what it leads to."""
    of_job = None if job.is_immediate else purchases.request_of_job(job.job_id, environment)
    named = (RequestId(name) for name in job.request_ids if name != asked.request_id)
    return KnownOwners(
        of_job=of_job if of_job != asked.request_id else None,
        of_request_id=next((name for name in named if purchases.attempt(name) is not None), None),
        of_result=owner_of_result(purchases, job.result_id(stage), asked, stage, environment)
        if job.status == SUCCEEDED
        else None,
    )


def owner_of_result(
    purchases: Purchases, result_id: str | None, asked: Attempt, stage: Stage, environment: str
) -> RequestId | None:
    """Return the request of another item that has this result, except one of a refinement's own chain.

    A service may make the same of the same content, as of two rows that differ only in their skus; but each checkout
    is paid by itself.
    """
    if result_id is None:
        return None
    stages = _OF_PATTERNS if stage in _OF_PATTERNS else {stage}
    for other in purchases.attempts_with_result(result_id, environment, stages):
        is_alike = other.content == asked.content and stage is not Stage.CHECKOUT
        if not is_alike and other.item_key not in _chain_of(purchases, asked):
            return other.request_id
    return None


def _chain_of(purchases: Purchases, asked: Attempt) -> set[str]:
    """Return the item that was asked for, and of a refinement what it is made of."""
    contents = purchases.pattern_contents(asked.item_key)
    return {asked.item_key, *(content["pattern"] for content in contents if "pattern" in content)}
