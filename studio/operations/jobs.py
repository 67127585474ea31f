"""Jobs: long-running work, whose end is settled when it is accepted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from studio.errors import unknown
from studio.operations.context import Answer, Caller, Context, address, identifier, listing, timestamp
from studio.pace import duration
from studio.requests import CreateBody, GetJob, Page
from studio.store.records import Job, Kind, Subject

PREFIXES: dict[Kind, str] = {"pattern": "pat", "product": "prod"}


@dataclass(frozen=True)
class Work:
    """The work of a job; `failure` is the reason when it is going to fail."""

    subject: Subject
    failure: str | None = None


class Jobs:
    """`jobs/get`, `jobs/list`, and how other operations start one."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def get(self, body: GetJob, caller: Caller) -> Answer:
        return self._answer(self._find(body.jobId, caller), caller)

    def list(self, body: Page, caller: Caller) -> Answer:
        read = partial(self._context.store.jobs.page, account=caller.account)
        return listing("jobs", body, read, lambda job: self._listed(job, caller))

    def listed_results(
        self, kind: Kind, body: Page, caller: Caller, shown: Callable[[Job], Answer]
    ) -> Answer:
        """Return a part of the list of patterns, or products, each as `shown` by its job."""
        read = partial(self._context.store.jobs.results, caller.account, kind, self._context.clock())
        return listing(f"{kind}s", body, read, shown)

    def of_result(self, kind: Kind, result_id: str, caller: Caller) -> Job:
        """Return the job that made this. Raises Refusal (404): until it has succeeded, a result is unknown."""
        job = self._context.store.jobs.one(result_id=result_id, account=caller.account, kind=kind)
        if job is None or not job.has_succeeded(self._context.clock()):
            raise unknown(kind, result_id)
        return job

    def start(self, body: CreateBody, caller: Caller, plan: Callable[[], Work]) -> Answer:
        """Answer with the job of this create request; `plan` is called only if it was not sent before."""
        context = self._context
        earlier = context.earlier(body, caller)
        if earlier is not None:
            return self._answer(self._find(earlier, caller), caller)
        job = self._job(body, caller, plan())
        with context.store.transaction():
            context.store.jobs.add(job)
            for digest in job.subject.design.references:  # their files are kept for ever
                context.store.references.update({"used": 1}, sha256=digest)
            context.accept(body, caller, job.job_id)
        return _running(job)

    def _find(self, job_id: str, caller: Caller) -> Job:
        """Return the account's job. Raises Refusal (404)."""
        job = self._context.store.jobs.one(job_id=job_id, account=caller.account)
        if job is None:
            raise unknown("job", job_id)
        return job

    def _job(self, body: CreateBody, caller: Caller, work: Work) -> Job:
        kind: Kind = "pattern" if work.subject.article is None else "product"
        fate = self._context.fate_of(body, caller)
        now = self._context.clock()
        usual = duration(self._context.pace, kind, body.requestId)
        return Job(
            job_id=identifier("job"),
            account=caller.account,
            operation=caller.operation,
            kind=kind,
            request_id=body.requestId,
            subject=work.subject,
            result_id=identifier(PREFIXES[kind]),
            picture_id=address(),
            failure=fate.failure or work.failure,
            started_at=now,
            ends_at=now + (usual if fate.takes is None else fate.takes),
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
        """Return the Job of the interface as it stands now."""
        if job.is_running(self._context.clock()):
            return _running(job)
        ended = {"jobId": job.job_id, "kind": job.kind}
        if job.failure is not None:
            return {**ended, "status": "failed", "result": None, "error": {"message": job.failure}}
        result = {f"{job.kind}Id": job.result_id, "imageUrl": picture_url(caller, job)}
        return {**ended, "status": "succeeded", "result": result}


def picture_url(caller: Caller, job: Job) -> str:
    return f"{caller.origin}/pictures/{job.picture_id}.png"


def _running(job: Job) -> Answer:
    return {"jobId": job.job_id, "kind": job.kind, "status": "running", "result": None}
