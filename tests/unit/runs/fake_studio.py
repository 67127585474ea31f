"""A service in memory that outlives the runs which ask it, answers as scripted, and keeps a record of its own."""

from __future__ import annotations

import asyncio
import json
import random
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from patternmill.catalog.offer import Category, Offer
from patternmill.errors import ServiceStopped
from patternmill.service.jobs import RESULT_FIELDS, Job, read_job
from patternmill.service.outcomes import GAVE_UP, NOT_BEGUN, CreateEnd, Ended, JobEnd, No
from patternmill.states import AttemptState, Stage

OFFER = Offer((Category("cat_tote", "Tote", None),), note=None)
#: Scripted: what the service shows of a job, but for its ID and kind.
Shown = dict[str, Any]
#: Scripted: the service executes the request, and its answer is lost.
ANSWER_LOST = No(None, "in_doubt", "the answer was lost")


class Crash(Exception):
    """Raised by `at_create` or `at_job_end`: the process ends at this moment, and whatever it was doing with it."""


@dataclass(frozen=True)
class Create:
    """One create that reached the service."""

    stage: Stage
    name: str
    request_id: str
    body: bytes
    age: timedelta | None


@dataclass
class Service:
    """What is bought here stays bought. Patterns are named by their prompt, products by their option `name`."""

    creates: list[Create] = field(default_factory=list)
    follows: list[str] = field(default_factory=list)
    jobs: dict[str, str] = field(default_factory=dict)
    #: Jobs that were asked for once more, and how each job ended.
    asked: list[str] = field(default_factory=list)
    ends: dict[str, Shown] = field(default_factory=dict)
    names: dict[str, tuple[Stage, str]] = field(default_factory=dict)
    #: By job: named by its name; one of other content that is called the same is a second one.
    results: dict[str, str] = field(default_factory=dict)
    #: What was asked for under each name.
    contents: dict[tuple[Stage, str], list[bytes]] = field(default_factory=lambda: defaultdict(list))
    #: What the next creates, and the next ends of jobs, of a name are; then all is well.
    on_create: dict[str, list[CreateEnd | Shown]] = field(default_factory=lambda: defaultdict(list))
    on_ask: dict[str, list[Shown | None]] = field(default_factory=lambda: defaultdict(list))
    on_follow: dict[str, list[No | Shown]] = field(default_factory=lambda: defaultdict(list))
    offer: Offer = OFFER
    #: Called with each create that reached the service, and before each end of a job is answered.
    at_create: Callable[[Create], None] = lambda create: None
    at_job_end: Callable[[str], None] = lambda name: None

    @property
    def bought(self) -> list[str]:
        """What was bought, in order: once for each request ID."""
        return [self.names[job][1] for job in self.jobs.values()]

    def execute(self, create: Create) -> Job:
        job_id = self.jobs.setdefault(create.request_id, f"job-{len(self.jobs) + 1}")
        self.names[job_id] = (create.stage, create.name)
        contents = self.contents[create.stage, create.name]
        content = create.body.replace(create.request_id.encode(), b"")
        if content not in contents:
            contents.append(content)
        number = contents.index(content)
        self.results[job_id] = f"{create.stage}-of-{create.name}".replace("\n", "¶") + (
            f"-{number + 1}" if number else ""
        )
        return Job(job_id, create.stage, "running", None, {})


class FakeStudioApi:
    """The surface that the engine uses, for one run."""

    waiting = ""

    def __init__(
        self,
        service: Service,
        *,
        in_doubt_limit: timedelta = timedelta(hours=12),
        chance: random.Random | None = None,
    ) -> None:
        self.service, self._in_doubt_limit = service, in_doubt_limit
        #: Jobs run while this is not set.
        self.jobs_may_end = asyncio.Event()
        self.jobs_may_end.set()
        self.draining = self.closed = False
        self._abandoned = asyncio.Event()
        #: Set at the moment at which the process ends.
        self.crashed = asyncio.Event()
        self._chance = chance

    async def create(
        self,
        stage: Stage,
        body: bytes,
        *,
        operation: str | None = None,
        known_job_id: str | None = None,
        age: timedelta | None = None,
        repeatable: bool = True,
        given: Collection[str] = (),
        look_up: str | None = None,
        stopping: Callable[[], bool] = lambda: False,
        permitted: Callable[[], Awaitable[None]] | None = None,
    ) -> CreateEnd:
        await self._pause()
        if permitted is not None:
            await permitted()
        if self.draining or stopping():
            return No(None, "in_doubt", "stopped") if age is not None else NOT_BEGUN
        if age is not None and age > self._in_doubt_limit:
            return No(None, "in_doubt_too_long")
        said: dict[str, Any] = json.loads(body)
        name = said["selections"]["name"] if stage is Stage.PRODUCT else _name(said, operation)
        create = Create(stage, name, said["requestId"], body, age)
        self.service.creates.append(create)
        await self._at(lambda: self.service.at_create(create))
        scripted = self.service.on_create[name]
        end = scripted.pop(0) if scripted else None
        if end is None or end is ANSWER_LOST:
            job = self.service.execute(create)
            await self._pause()
            return end or job
        if isinstance(end, dict):
            job = self.service.execute(create)
            self.service.ends[job.job_id] = end
            return self._shown(job.job_id, end)
        if age is not None and isinstance(end, No) and end.state is AttemptState.REJECTED:
            return No(AttemptState.HELD, "refused_in_doubt", end.message)
        return end

    async def follow(
        self, job_id: str, stage: Stage, *, age: timedelta = timedelta(0), once: bool = False
    ) -> JobEnd:
        self.service.follows.append(job_id)
        await self._pause()
        if (once and not self.jobs_may_end.is_set()) or not await self._ended():
            return GAVE_UP
        kind, name = self.service.names[job_id]
        assert kind is stage
        await self._at(lambda: self.service.at_job_end(name))
        scripted = self.service.on_follow[name]
        end = scripted.pop(0) if scripted else made(stage, self.service.results[job_id])
        if isinstance(end, No):
            return end
        self.service.ends[job_id] = end
        return Ended(self._shown(job_id, end))

    async def job(self, job_id: str) -> Job | None:
        """Scripted: as it is shown when it is asked for once more, None for unreadably; by default as it ended."""
        self.service.asked.append(job_id)
        await self._pause()
        scripted = self.service.on_ask[self.service.names[job_id][1]]
        fields = scripted.pop(0) if scripted else self.service.ends[job_id]
        if fields is None:
            raise ServiceStopped("The service answered 502.")
        return self._shown(job_id, fields) if fields else None

    def _shown(self, job_id: str, fields: Shown) -> Job:
        job = read_job({"jobId": job_id, "kind": "", "status": "running", "result": None} | fields)
        assert job is not None, "it has an ID"
        return job

    async def _ended(self) -> bool:
        waits = [asyncio.ensure_future(event.wait()) for event in (self.jobs_may_end, self._abandoned)]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()
        return self.jobs_may_end.is_set()

    async def _at(self, moment: Callable[[], None]) -> None:
        if self.crashed.is_set():
            await asyncio.Event().wait()
        try:
            moment()
        except Crash:
            self.crashed.set()
            await asyncio.Event().wait()

    async def _pause(self) -> None:
        for _ in range(self._chance.randrange(4) if self._chance else 1):
            await asyncio.sleep(0)

    def known_to_work(self, stages: Iterable[Stage], operations: Iterable[str] = ()) -> None:
        """It says nothing that this would decide about."""

    def remember(self, took: Iterable[tuple[Stage, float]]) -> None:
        """It is asked for no job."""

    def share_rates(self, among: int) -> None:
        """It has none."""

    async def missing(self, operations: Iterable[str]) -> dict[str, str]:
        return {}

    async def models(self) -> Offer | None:
        return None

    async def offer(self) -> Offer:
        return self.service.offer

    def drain(self) -> None:
        self.draining = True

    def abandon(self) -> None:
        self.draining = True
        self._abandoned.set()

    async def close(self) -> None:
        self.closed = True


def _name(said: dict[str, Any], operation: str | None) -> str:
    """A pattern's prompt; of a refinement its operation, and what it is made on."""
    return (
        f"{operation} on {said['patternId']}" if "patternId" in said else str(said.get("prompt", operation))
    )


def failed(reason: str = "the loom broke") -> Shown:
    return {"status": "failed", "error": {"message": reason}}


def made(stage: Stage, result_id: str, **more: str) -> Shown:
    return {"status": "succeeded", "result": {RESULT_FIELDS[stage]: result_id, **more}}
