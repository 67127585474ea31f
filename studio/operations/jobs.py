"""Jobs: long-running work, whose end is settled when it is accepted."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from datetime import timedelta

from studio.answers import JobAnswer, JobPage, ListedJob
from studio.operations.call import Call, address, identifier, part_of, place, timestamp
from studio.records import Job, Kind, Subject
from studio.requests import CreateBody, GetJob, Page
from studio.wire import unknown

PREFIXES: dict[Kind, str] = {"pattern": "pat", "product": "prod"}
#: The shortest and the longest job in seconds, by pace and kind. At the realistic one they are as the interface says.
PACES: dict[str, dict[Kind, tuple[float, float]]] = {
    "quick": {"pattern": (0.3, 1.5), "product": (0.2, 0.6)},
    "realistic": {"pattern": (60.0, 120.0), "product": (5.0, 20.0)},
    "instant": {"pattern": (0.0, 0.0), "product": (0.0, 0.0)},
}


def get(call: Call, body: GetJob) -> JobAnswer:
    """Return a job as it stands."""
    return _answer(call, _find(call, body.jobId))


def list_jobs(call: Call, body: Page) -> JobPage:
    """List all jobs."""
    found, cursor = part_of(body, call.store.newest(Job, place(body)))
    return {"jobs": [_listed(call, job) for job in found], "nextCursor": cursor}


def start(call: Call, body: CreateBody, plan: Callable[[], tuple[Subject, str | None]]) -> JobAnswer:
    """Answer with the job of this create request.

    `plan` returns what is made, and the reason if it is going to fail; it is called only if the request was not sent
    before.
    """
    earlier = call.earlier(body)
    if earlier is not None:
        return _answer(call, _find(call, earlier))
    (subject, failure), now = plan(), call.now
    kind: Kind = "pattern" if subject.article is None else "product"
    job = Job(
        job_id=identifier("job"),
        operation=call.operation,
        kind=kind,
        request_id=body.requestId,
        subject=subject,
        result_id=identifier(PREFIXES[kind]),
        picture_id=address(),
        failure=failure,
        started_at=now,
        ends_at=now + _duration(call.studio.pace, kind, body.requestId),
    )
    call.accept(body, job.job_id, job)
    return _running(job)


def results(call: Call, kind: Kind, before: int) -> Iterator[tuple[int, Job]]:
    """Yield the jobs of a kind that have succeeded, newest first, each with its place; `before` is a place."""
    jobs = call.store.newest(Job, before, kind=kind, failure=None)
    return ((place, job) for place, job in jobs if job.ends_at <= call.now)


def of_result(call: Call, kind: Kind, result_id: str) -> Job:
    """Return the job that made this. Raises Refusal (404): until it has succeeded, a result is unknown."""
    job = call.store.find(Job, result_id=result_id, kind=kind)
    if job is None or not job.has_succeeded(call.now):
        raise unknown(kind, result_id)
    return job


def picture_url(call: Call, job: Job) -> str:
    return f"{call.origin}/pictures/{job.picture_id}.png"


def _find(call: Call, job_id: str) -> Job:
    """Return the job. Raises Refusal (404)."""
    job = call.store.find(Job, job_id=job_id)
    if job is None:
        raise unknown("job", job_id)
    return job


def _duration(pace: str, kind: Kind, request_id: str) -> timedelta:
    """Return how long the job of a request takes: always the same for the same request."""
    shortest, longest = PACES[pace][kind]
    digest = hashlib.sha256(f"{kind}\n{request_id}".encode()).digest()
    return timedelta(seconds=shortest + (longest - shortest) * int.from_bytes(digest[:6]) / 2**48)


def _answer(call: Call, job: Job) -> JobAnswer:
    """Return the Job of the interface as it stands now."""
    running = _running(job)
    if call.now < job.ends_at:
        return running
    if job.failure is not None:
        return {**running, "status": "failed", "error": {"message": job.failure}}
    url = picture_url(call, job)
    if job.kind == "pattern":
        return {**running, "status": "succeeded", "result": {"patternId": job.result_id, "imageUrl": url}}
    return {**running, "status": "succeeded", "result": {"productId": job.result_id, "imageUrl": url}}


def _listed(call: Call, job: Job) -> ListedJob:
    return {
        **_answer(call, job),
        "operation": job.operation,
        "requestId": job.request_id,
        "createdAt": timestamp(job.started_at),
        "endedAt": timestamp(job.ends_at) if job.ends_at <= call.now else None,
    }


def _running(job: Job) -> JobAnswer:
    return {"jobId": job.job_id, "kind": job.kind, "status": "running", "result": None}
