"""What the studio does, without HTTP: accept work once, say how it stands, and name what came of it."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from datetime import UTC, datetime

from studio import offer, rehearsal, wire
from studio.design import Design
from studio.errors import FieldFault, Refusal, request_id_conflict, unknown
from studio.pace import Pace, duration
from studio.pictures import PictureOrder
from studio.store import Job, JobId, Kind, RecordLine, RequestId, Store, Verdict

Clock = Callable[[], datetime]
Answer = dict[str, object]


def utc_now() -> datetime:
    return datetime.now(UTC)


class Service:
    """The operations of the interface. `pictures_url` is the address under which pictures are served."""

    def __init__(
        self, store: Store, *, environment: str = "staging", pace: Pace = Pace.QUICK, clock: Clock = utc_now
    ) -> None:
        self._store = store
        self._environment = environment
        self._pace = pace
        self._clock = clock

    def create_pattern(self, body: wire.CreatePattern, pictures_url: str) -> Answer:
        return self._create(
            "patterns/create", "pattern", body, body.requestId, self._pattern_subject, pictures_url
        )

    def create_product(self, body: wire.CreateProduct, pictures_url: str) -> Answer:
        return self._create(
            "products/create", "product", body, body.requestId, self._product_subject, pictures_url
        )

    def get_job(self, body: wire.GetJob, pictures_url: str) -> Answer:
        job = self._store.job(body.jobId)
        if job is None:
            raise unknown("job", body.jobId)
        return job_body(job, self._clock(), pictures_url)

    def list_categories(self, body: wire.ListCategories, pictures_url: str) -> Answer:
        return offer.categories_list(self._environment)

    def get_category(self, body: wire.GetCategory, pictures_url: str) -> Answer:
        answer = offer.categories_get(self._environment, body.categoryId)
        if answer is None:
            raise unknown("category", body.categoryId)
        return answer

    def picture(self, picture_id: str) -> PictureOrder | None:
        """What the picture of this ID shows, once its job has succeeded."""
        job = self._store.job_of_picture(picture_id)
        if job is None or not _succeeded(job, self._clock()):
            return None
        subject = job.subject
        selections = subject.get("selections", {})
        assert isinstance(selections, dict)
        category = subject.get("category")
        design = Design(prompt=str(subject["prompt"]))
        return PictureOrder(design, None if category is None else str(category), selections)

    def _create(
        self,
        operation: str,
        kind: Kind,
        body: wire.CreatePattern | wire.CreateProduct,
        request_id: str,
        subject_of: Callable[..., tuple[dict[str, object], str | None]],
        pictures_url: str,
    ) -> Answer:
        digest = wire.digest(operation, body)
        known = self._store.job_of_request(request_id)
        if known is not None:
            return self._repeat(operation, body, known, digest, pictures_url)
        subject, failure = subject_of(body)
        job = self._new_job(kind, RequestId(request_id), digest, subject, failure)
        self._store.add(job, _line(operation, "accepted", body, job, job.started_at))
        return _running(job)

    def _repeat(self, operation: str, body: wire.Body, known: Job, digest: str, pictures_url: str) -> Answer:
        now = self._clock()
        same = known.digest == digest
        self._store.note(_line(operation, "repeated" if same else "conflict", body, known, now))
        if not same:
            raise request_id_conflict(known.request_id)
        return job_body(known, now, pictures_url)

    def _new_job(
        self,
        kind: Kind,
        request_id: RequestId,
        digest: str,
        subject: dict[str, object],
        failure: str | None,
    ) -> Job:
        now = self._clock()
        return Job(
            job_id=JobId(f"job_{secrets.token_hex(10)}"),
            kind=kind,
            request_id=request_id,
            digest=digest,
            subject=subject,
            result_id=f"{'pat' if kind == 'pattern' else 'prod'}_{secrets.token_hex(10)}",
            picture_id=secrets.token_urlsafe(18),
            failure=failure,
            started_at=now,
            ends_at=now + duration(self._pace, kind, request_id),
        )

    def _pattern_subject(self, body: wire.CreatePattern) -> tuple[dict[str, object], str | None]:
        rehearsal.refuse_content(body.prompt)
        first = not self._store.prompt_was_asked(body.prompt)
        return {"prompt": body.prompt}, rehearsal.pattern_failure(body.prompt, first_time=first)

    def _product_subject(self, body: wire.CreateProduct) -> tuple[dict[str, object], str | None]:
        pattern = self._store.job_of_result(body.patternId)
        if pattern is None or pattern.kind != "pattern" or not _succeeded(pattern, self._clock()):
            raise unknown("pattern", body.patternId)
        category = offer.find_category(self._environment, body.categoryId)
        if category is None:
            raise unknown("category", body.categoryId)
        _check_selections(category, body.selections)
        prompt = str(pattern.subject["prompt"])
        subject: dict[str, object] = {
            "prompt": prompt,
            "pattern": body.patternId,
            "category": category.key,
            "selections": category.complete(body.selections),
        }
        return subject, rehearsal.product_failure(prompt)


def job_body(job: Job, now: datetime, pictures_url: str) -> Answer:
    """The Job of the interface as it stands at `now`."""
    if now < job.ends_at:
        return _running(job)
    ended = {"jobId": job.job_id, "kind": job.kind}
    if job.failure is not None:
        return {**ended, "status": "failed", "result": None, "error": {"message": job.failure}}
    name = "patternId" if job.kind == "pattern" else "productId"
    result = {name: job.result_id, "imageUrl": f"{pictures_url}/{job.picture_id}.png"}
    return {**ended, "status": "succeeded", "result": result}


def _running(job: Job) -> Answer:
    return {"jobId": job.job_id, "kind": job.kind, "status": "running", "result": None}


def _succeeded(job: Job, now: datetime) -> bool:
    return job.failure is None and job.ends_at <= now


def _check_selections(category: offer.Category, selections: dict[str, str]) -> None:
    faults = offer.selection_faults(category, selections)
    if faults:
        said = "; ".join(fault.message for fault in faults)
        fields = tuple(FieldFault(f"selections.{fault.option}", fault.message) for fault in faults)
        raise Refusal(422, "invalid_selections", f"The selections cannot be made: {said}.", fields)


def _line(operation: str, verdict: Verdict, body: wire.Body, job: Job, at: datetime) -> RecordLine:
    return RecordLine(at, operation, verdict, job.request_id, job.job_id, body.model_dump())
