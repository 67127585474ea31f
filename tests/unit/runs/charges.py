"""The service with a model of what it may be asked for again, and a workshop for several scopes and editions."""

from __future__ import annotations

import asyncio
import json
import random
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, cast

from pydantic import SecretStr

from patternmill.catalog.offer import Category, Offer
from patternmill.catalog.row_checks import check_rows
from patternmill.catalog.rows import Row
from patternmill.profiles import Profile
from patternmill.runs.run import Run
from patternmill.runs.spec import RunSpec
from patternmill.service import outcomes
from patternmill.service.jobs import Job
from patternmill.service.studio_api import StudioApi
from patternmill.settings import Settings
from patternmill.states import AttemptState, Stage
from tests.unit.service.virtual import VirtualLoop

from .fake_studio import ANSWER_LOST, Create, FakeStudioApi, Service, failed
from .workshop import Workshop

SKUS = [f"S-{number}" for number in range(5)]
PROMPTS = ["herons", "ferns", "owls"]
CATEGORIES = {"Tote": "cat_tote", "Mug": "cat_mug"}
OFFER = Offer(tuple(Category(id, name, None) for name, id in CATEGORIES.items()), None)
SCOPES = [("staging", "spring"), ("production", "spring"), ("staging", "autumn")]
PRICES = {Stage.PATTERN: 30, Stage.PRODUCT: 20}
FINAL = "content refused"

#: The create goes astray, is given up, and reaches the service when nobody waits for it any more.
LATE = outcomes.No(None, "in_doubt", "no answer in time")
CREATE_TROUBLES: list[outcomes.CreateEnd] = [
    ANSWER_LOST,
    LATE,
    outcomes.No(None, "in_doubt", "lost on the way"),
    outcomes.No(None, "still_500", "for ever"),
    outcomes.No(AttemptState.HELD, "known_there", "409"),
    outcomes.No(AttemptState.REJECTED, "invalid", "no such thing"),
    outcomes.No(AttemptState.WITHDRAWN, "unauthorised", "401", stops=True),
    outcomes.No(None, "service_away", "away", stops=True),
    outcomes.No(AttemptState.HELD, "second_job", "two jobs", stops=True),
]
FOLLOW_TROUBLES: list[outcomes.JobEnd] = [
    failed(),
    failed(f"{FINAL}: a trademark"),
    outcomes.GAVE_UP,
    outcomes.No(AttemptState.HELD, "job_unknown", "404"),
    outcomes.No(AttemptState.HELD, "wrong_job", "another", stops=True),
    outcomes.No(None, "unauthorised", "401", stops=True),
]


def has_failed(end: object) -> bool:
    """Whether the service said that the job failed."""
    return isinstance(end, outcomes.No) and end.state is AttemptState.FAILED


class Inline(VirtualLoop):
    """Virtual time, and no threads: what happens depends on nothing but what is asked for."""

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:
        done = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as error:
            done.set_exception(error)
        return done


@dataclass(frozen=True)
class Line:
    """One row as a person asks for it."""

    sku: str
    prompt: str
    category: str
    size: str


@dataclass(frozen=True)
class Asking:
    """For whom a run asks, and how much it may."""

    scope: tuple[str, str]
    edition: str | None = None
    attempts: int = 2
    #: The names (prompts, skus) whose failures a person wants tried again.
    retried: frozenset[str] = frozenset()


#: What is bought: for whom, and the body without its request ID.
Key = tuple[tuple[str, str], str | None, str]


@dataclass
class Charges(Service):
    """The service, with the model: when a new request ID may come for something that it was asked for before."""

    asking: Asking = Asking(SCOPES[0])
    #: Request IDs by what they ask for, in the order of their coming.
    sent: dict[Key, list[str]] = field(default_factory=lambda: defaultdict(list))
    bodies: dict[str, bytes] = field(default_factory=dict)
    scopes: dict[str, tuple[str, str]] = field(default_factory=dict)
    #: How many request IDs people have allowed so far.
    allowed: dict[Key, int] = field(default_factory=dict)
    ends: dict[str, outcomes.JobEnd] = field(default_factory=dict)
    #: Request IDs that a person gave up.
    written_off: set[str] = field(default_factory=set)
    late: list[Create] = field(default_factory=list)

    def begin(self, asking: Asking) -> None:
        """A run begins; what went astray before has come in by now."""
        for create in self.late:
            self.execute(create)
        self.late.clear()
        self.asking = asking
        for key, ids in self.sent.items():
            if key[:2] == (asking.scope, asking.edition) and _name(key) in asking.retried:
                self.allowed[key] = max(self.allowed.get(key, 0), len(ids) + asking.attempts)

    def hear(self, create: Create) -> None:
        """Judge a create as it comes in."""
        request_id, key = create.request_id, self._key(create)
        assert self.bodies.setdefault(request_id, create.body) == create.body, "other bytes under one ID"
        assert self.scopes.setdefault(request_id, self.asking.scope) == self.asking.scope, (
            "an ID in two scopes"
        )
        if request_id not in self.sent[key]:
            self._judge_new(key, request_id)
        if self.on_create[create.name] and self.on_create[create.name][0] is LATE:
            self.late.append(create)

    def _judge_new(self, key: Key, request_id: str) -> None:
        before = self.sent[key]
        if before:
            job = self.jobs.get(before[-1])
            gave_up = before[-1] in self.written_off
            assert gave_up or has_failed(self.ends.get(job or "")), f"{key} was bought again"
        most = max(self.allowed.get(key, 0), self.asking.attempts)
        assert len(before) < most, f"{key}: more than {most} attempts"
        before.append(request_id)

    def _key(self, create: Create) -> Key:
        said = json.loads(create.body)
        del said["requestId"]
        return self.asking.scope, self.asking.edition, json.dumps(said, sort_keys=True)

    def end_of(self, job_id: str, name: str) -> outcomes.JobEnd:
        """How the job ends, or why that is not known; an end stays what it was."""
        if job_id not in self.ends:
            scripted = self.on_follow[name]
            end = scripted.pop(0) if scripted else outcomes.Succeeded(f"made-by-{job_id}")
            if not isinstance(end, outcomes.Succeeded) and not has_failed(end):
                return end
            self.ends[job_id] = end
        return self.ends[job_id]

    def made(self, result_id: str | None) -> tuple[dict[str, Any], tuple[str, str]]:
        """What was said to make this, and for whom."""
        job_id = (result_id or "").removeprefix("made-by-")
        request_id = next(request for request, job in self.jobs.items() if job == job_id)
        return json.loads(self.bodies[request_id]), self.scopes[request_id]


def _name(key: Key) -> str:
    said = json.loads(key[2])
    return str(said["prompt"] if "prompt" in said else said["selections"]["name"])


class Api(FakeStudioApi):
    """Jobs keep the end that they came to."""

    async def follow(
        self, job_id: str, stage: Stage, *, age: timedelta = timedelta(0), known: Job | None = None
    ) -> outcomes.JobEnd:
        service = cast(Charges, self.service)
        await self._pause()
        kind, name = service.names[job_id]
        assert kind is stage
        await self._at(lambda: service.at_job_end(name))
        return service.end_of(job_id, name)


@dataclass
class Shop(Workshop):
    """The workshop for one scope and edition."""

    scope: tuple[str, str] = SCOPES[0]

    @property
    def settings(self) -> Settings:
        environment = self.scope[0]
        url = f"http://127.0.0.1:9/{environment}/v1"
        changes = {"environment": environment, "confirm": environment}
        profile = Profile(url=url, key=SecretStr("key"))
        return super().settings.model_copy(update=changes).at(profile)

    def spec(self, **options: Any) -> RunSpec:
        return replace(super().spec(**options), catalog=self.scope[1])

    async def begin(
        self,
        catalog: str,
        *,
        retry: Callable[[Row], bool] = lambda row: False,
        chance: random.Random | None = None,
        **options: Any,
    ) -> tuple[FakeStudioApi, Run]:
        spec = replace(self.spec(**options), retry=retry)
        api = Api(self.service, chance=chance)
        checked = check_rows(self.file(catalog), OFFER, prompt_limit=100)
        return api, await Run.begin(spec, checked, cast(StudioApi, api))
