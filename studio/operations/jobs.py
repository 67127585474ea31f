"""Jobs: long-running work, whose end is settled when it is accepted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from studio.errors import unknown
from studio.instruments.fates import Fate
from studio.operations.context import (
    Answer,
    Caller,
    Context,
    Creation,
    address,
    identifier,
    listing,
    timestamp,
)
from studio.pace import duration
from studio.requests import CreateBody, GetJob, Page
from studio.store import Job, JobId, Kind

PREFIXES: dict[Kind, str] = {"pattern": "pat", "product": "prod"}


@dataclass(frozen=True)
class Work:
    """What a job makes; `failure` is the reason when it is going to fail."""

    kind: Kind
    subject: dict[str, object]
    failure: str | None = None
    #: Digests of the pictures that it is drawn with.
    references: tuple[str, ...] = ()


class Jobs:
    """`jobs/get`, `jobs/list`, and how other operations start one."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def get(self, body: GetJob, caller: Caller) -> Answer:
        return self._answer(self.find(body.jobId, caller), caller)

    def list(self, body: Page, caller: Caller) -> Answer:
        read = partial(self._context.store.jobs.page, caller.account)
        return listing("jobs", body, read, lambda job: self._listed(job, caller))

    def find(self, job_id: str, caller: Caller) -> Job:
        """Raises Refusal (404)."""
        job = self._context.store.jobs.get(caller.account, job_id)
        if job is None:
            raise unknown("job", job_id)
        return job

    def listed_results(
        self, kind: Kind, body: Page, caller: Caller, shown: Callable[[Job], Answer]
    ) -> Answer:
        """A part of the list of patterns, or products, each as `shown` by its job."""
        read = partial(self._context.store.jobs.results, caller.account, kind, self._context.clock())
        return listing(f"{kind}s", body, read, shown)

    def of_result(self, kind: Kind, result_id: str, caller: Caller) -> Job:
        """The job that made this. Raises Refusal (404): until it has succeeded, a pattern or product is unknown."""
        job = self._context.store.jobs.of_result(caller.account, kind, result_id)
        if job is None or not job.has_succeeded(self._context.clock()):
            raise unknown(kind, result_id)
        return job

    def start(self, operation: str, body: CreateBody, caller: Caller, plan: Callable[[], Work]) -> Answer:
        """The job of this create request; `plan` is asked once, for a request that was not sent before."""
        creation = Creation(self._context, operation, body, caller)
        earlier = creation.earlier()
        if earlier is not None:
            return self._answer(self.find(earlier, caller), caller)
        work = plan()
        context = self._context
        fate = context.fate_of(operation, body, caller.account)
        job = self._job(operation, body.requestId, caller, work, fate)
        with context.store.transaction():
            context.store.jobs.add(job)
            context.store.references.mark_used(work.references)
            creation.accept(job.job_id)
        return _running(job)

    def _job(self, operation: str, request_id: str, caller: Caller, work: Work, fate: Fate) -> Job:
        now = self._context.clock()
        takes = duration(self._context.pace, work.kind, request_id) if fate.takes is None else fate.takes
        return Job(
            job_id=JobId(identifier("job")),
            account=caller.account,
            operation=operation,
            kind=work.kind,
            request_id=request_id,
            subject=work.subject,
            result_id=identifier(PREFIXES[work.kind]),
            picture_id=address(),
            failure=fate.failure or work.failure,
            started_at=now,
            ends_at=now + takes,
        )

    def _listed(self, job: Job, caller: Caller) -> Answer:
        return {
            **self._answer(job, caller),
            "operation": job.operation,
            "requestId": job.request_id,
            "createdAt": timestamp(job.started_at),
            "endedAt": None if job.is_running(self._context.clock()) else timestamp(job.ends_at),
        }

    def _answer(self, job: Job, caller: Caller) -> Answer:
        """The Job of the interface as it stands now."""
        if job.is_running(self._context.clock()):
            return _running(job)
        ended = {"jobId": job.job_id, "kind": job.kind}
        if job.failure is not None:
            return {**ended, "status": "failed", "result": None, "error": {"message": job.failure}}
        name = "patternId" if job.kind == "pattern" else "productId"
        result = {name: job.result_id, "imageUrl": picture_url(caller, job.picture_id)}
        return {**ended, "status": "succeeded", "result": result}


def picture_url(caller: Caller, picture_id: str) -> str:
    return f"{caller.origin}/pictures/{picture_id}.png"


def _running(job: Job) -> Answer:
    return {"jobId": job.job_id, "kind": job.kind, "status": "running", "result": None}
