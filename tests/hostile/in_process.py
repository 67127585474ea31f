"""The shop of the hostile service in the process of a test: the program's own API asks it without a wire, by a script.

What is created, made and remembered is the shop's. A script says what a single response shows, or (a `Refusal`) how a
request ends once it was asked for long enough; hooks are called as a request arrives and before a job's end is shown.
"""

from __future__ import annotations

import asyncio
import inspect
import json
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, cast

from patternmill.planning.offer import Category, Offer
from patternmill.service.client import Look, StudioClient
from patternmill.service.jobs import CREATES, RESULT_FIELDS
from patternmill.service.outcomes import GAVE_UP, Answer, CreateEnd, JobEnd, Refusal
from patternmill.service.polling import POLL
from patternmill.service.questions import ORDER
from patternmill.service.redaction import reason_in
from patternmill.service.resend import CreateRequest, ResendPolicy
from patternmill.service.studio_api import StudioApi
from patternmill.states import Stage
from tests.hostile.plan import Plan
from tests.hostile.record import Record
from tests.hostile.shop import Call, Fate, Job, Shop

KEY = "key"
OFFER = Offer((Category("cat_tote", "Tote", None),), note=None)
CHECKOUT = CREATES[Stage.CHECKOUT]
STAGES = {operation: stage for stage, operation in CREATES.items()}
#: Scripted: what the service shows of a job, but for its ID and kind.
Shown = dict[str, Any]
#: Scripted: the service executes the request, and no answer to it ever arrives.
ANSWER_LOST = Refusal(None, "in_doubt", "the answer was lost")


class Crash(Exception):
    """Raised by `at_create` or `at_job_end`: the process ends at this moment, and whatever it was doing with it."""


class ScriptedEnd(Exception):
    """How a create or a job ends by the script, whatever would be answered."""

    def __init__(self, end: Refusal) -> None:
        self.end = end


class QuietShop(Shop):
    """A shop that offers every category, gives short names, and keeps no record; its jobs end when they are told to."""

    def __init__(self, clock: Callable[[], float] = lambda: 0.0) -> None:
        record = cast(Record, SimpleNamespace(write=lambda *_, **__: None))
        super().__init__(Plan(), record, clock)

    def name_of(self, call: Call) -> str:
        return f"job-{len(self.jobs) + 1}"

    def _invalid_product(self, call: Call) -> None:
        return None


@dataclass(frozen=True)
class Create:
    """One create that reached the service."""

    stage: Stage
    name: str
    request_id: str
    body: bytes
    call: Call = field(repr=False, compare=False)


@dataclass
class Till:
    """Opens a checkout for each request ID, and shows the order once a person has paid; both may be scripted."""

    #: The checkouts by request ID; and what the service shows of each order, by checkout.
    opened: dict[str, str] = field(default_factory=dict)
    orders: dict[str, Shown | Answer] = field(default_factory=dict)
    #: Every create's body, as it was sent.
    sent: list[bytes] = field(default_factory=list)
    on_create: list[Answer | Refusal] = field(default_factory=list)

    def order(self, checkout_id: str, **shown: str) -> None:
        """Have an order shown: paid, unless it has another status."""
        self.orders[checkout_id] = {"orderId": f"ord-{checkout_id}", "status": "paid"} | shown

    def answer(self, call: Call) -> Answer:
        if call.operation != CHECKOUT:
            order = self.orders.get(str(call.body["checkoutId"]))
            if isinstance(order, Answer):
                return order
            return _answer(200, order) if order is not None else _answer(402, {"error": "not paid"})
        self.sent.append(call.raw)
        end = self.on_create.pop(0) if self.on_create else None
        if isinstance(end, Answer):
            return end
        if end is None or end is ANSWER_LOST:
            self.opened.setdefault(call.identity, f"chk-{len(self.opened) + 1}")
        if end is not None:
            raise ScriptedEnd(end)
        checkout_id = self.opened[call.identity]
        return _answer(200, {"checkoutId": checkout_id, "checkoutUrl": f"https://pay.example/{checkout_id}"})


@dataclass
class Service:
    """A shop that outlives the runs. Patterns are named by their prompt, products by their option `name`."""

    shop: QuietShop = field(default_factory=QuietShop)
    till: Till = field(default_factory=Till)
    offer: Offer = OFFER
    creates: list[Create] = field(default_factory=list)
    #: Jobs that were followed, and those that were asked for once more, in order.
    follows: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    #: By job: its stage and name, and what a script has it show from now on.
    names: dict[str, tuple[Stage, str]] = field(default_factory=dict)
    shown: dict[str, Shown] = field(default_factory=dict)
    #: By name, the next creates, ends of jobs and further looks at them; after those, all is well.
    on_create: dict[str, list[CreateEnd | Shown | Answer]] = field(default_factory=lambda: defaultdict(list))
    on_follow: dict[str, list[Refusal | Shown]] = field(default_factory=lambda: defaultdict(list))
    on_ask: dict[str, list[Shown | None]] = field(default_factory=lambda: defaultdict(list))
    #: Called with each create that reached the service (perhaps to wait), and before each end of a job is shown.
    at_create: Callable[[Create], Any] = lambda create: None
    at_job_end: Callable[[str], Any] = lambda name: None

    @property
    def jobs(self) -> dict[str, str]:
        """Return the jobs by their request IDs."""
        return {job.request_id: job.job_id for job in self.shop.jobs.values()}

    @property
    def bought(self) -> list[str]:
        """Return what was bought, in order: once for each request ID."""
        return [self.names[job][1] for job in self.shop.jobs]

    def result_of(self, name: str) -> str:
        """Return the ID of what was made under this name first."""
        job_id = next(job for job, (_, its_name) in self.names.items() if its_name == name)
        return self.shop.jobs[job_id].result_id

    def execute(self, create: Create) -> tuple[int, Any, str]:
        """Return the shop's answer, and the ID of the job."""
        answer, _ = self.shop.create(create.call, Fate(seconds=float("inf")))
        job = self.shop.known(create.call)
        if job is None:
            return answer.status, json.loads(answer.body), ""
        self.names.setdefault(job.job_id, (create.stage, create.name))
        return answer.status, self.view(job) if answer.status < 400 else json.loads(answer.body), job.job_id

    def show(self, job_id: str, fields: Shown) -> None:
        """Have a job shown so from now on; a result that it names exists."""
        self.shown[job_id] = fields
        for result in (fields.get("result") or {}).values():
            self.shop.made.setdefault(str(result), self.shop.jobs[job_id])

    def view(self, job: Job) -> Shown:
        honest: Shown = json.loads(job.to_answer().body)
        return honest | self.shown.get(job.job_id, {})

    def end(self, job: Job) -> None:
        """Show the next end of a job: a scripted one, else that it succeeded."""
        script = self.on_follow[self.names[job.job_id][1]]
        end = script.pop(0) if script else None
        if isinstance(end, Refusal):
            raise ScriptedEnd(end)
        self.shown.pop(job.job_id, None)
        if end is not None:
            self.show(job.job_id, end)
        else:
            self.shop.end(job)


class InProcessApi(StudioApi):
    """The program's API for one run, with one exchange for each create and each look at a job."""

    def __init__(self, service: Service, *, in_doubt_limit: timedelta = timedelta(hours=12)) -> None:
        policy = ResendPolicy(
            in_doubt_limit=in_doubt_limit, job_timeout=timedelta(0), first_pause=timedelta(0)
        )
        super().__init__(cast(StudioClient, self), create_rate=1e9, poll_rate=1e9, policy=policy)
        self.service = service
        #: Jobs run while this is not set.
        self.jobs_may_end = asyncio.Event()
        self.jobs_may_end.set()
        #: Set at the moment at which the process ends.
        self.crashed = asyncio.Event()
        #: By job, what it shows when it is asked for once more.
        self._looks: dict[str, Shown | None] = {}

    async def create(self, request: CreateRequest, *may_send: Any) -> CreateEnd:
        await asyncio.sleep(0)
        try:
            return await super().create(request, *may_send)
        except ScriptedEnd as scripted:
            return scripted.end

    async def follow(
        self, job_id: str, stage: Stage, *, age: timedelta = timedelta(0), once: bool = False
    ) -> JobEnd:
        self.service.follows.append(job_id)
        if once and not self.jobs_may_end.is_set():
            return GAVE_UP
        try:
            return await super().follow(job_id, stage, age=age, once=once)
        except ScriptedEnd as scripted:
            return scripted.end

    async def job(self, job_id: str) -> Any:
        self.service.asked.append(job_id)
        script = self.service.on_ask[self.service.names[job_id][1]]
        self._looks[job_id] = script.pop(0) if script else self.service.view(self.service.shop.jobs[job_id])
        try:
            return await super().job(job_id)
        finally:
            del self._looks[job_id]

    # -- what a client does: one exchange

    async def post(self, operation: str, body: bytes, look: Look | None = None) -> Answer:
        if look is not None:
            await look()
        call = self.service.shop.understand(operation, body, KEY)
        assert call is not None, "each request is a JSON object"
        if call.operation in (CHECKOUT, ORDER):
            return self.service.till.answer(call)
        return await (self._poll(call) if operation == POLL else self._create(call))

    async def close(self) -> None:
        self.abandon()

    async def _create(self, call: Call) -> Answer:
        stage = STAGES.get(call.operation, Stage.REFINEMENT)
        create = Create(stage, _name(call), call.identity, call.raw, call)
        self.service.creates.append(create)
        await self._at(self.service.at_create, create)
        script = self.service.on_create[create.name]
        end = script.pop(0) if script else None
        if isinstance(end, Refusal) and end is not ANSWER_LOST:
            raise ScriptedEnd(end)
        if isinstance(end, Answer):
            return end
        status, shown, job_id = self.service.execute(create)
        await asyncio.sleep(0)
        if end is ANSWER_LOST:
            raise ScriptedEnd(ANSWER_LOST)
        if isinstance(end, dict):
            self.service.show(job_id, end)
            shown = self.service.view(self.service.shop.jobs[job_id])
        return _answer(status, shown)

    async def _poll(self, call: Call) -> Answer:
        job, job_id = call.job, call.body["jobId"]
        assert job is not None, f"{job_id} was never issued"
        await asyncio.sleep(0)
        if job_id in self._looks:
            if not (look := self._looks[job_id]):
                return _answer(502 if look is None else 404, {})
            self.service.show(job_id, look)
            return _answer(200, self.service.view(job))
        await self.jobs_may_end.wait()
        await self._at(self.service.at_job_end, self.service.names[job_id][1])
        self.service.end(job)
        return _answer(200, self.service.view(job))

    async def _at(self, hook: Callable[[Any], Any], what: Create | str) -> None:
        if self.crashed.is_set():
            await asyncio.Event().wait()
        try:
            waiting = hook(what)
            if inspect.isawaitable(waiting):
                await waiting
        except Crash:
            self.crashed.set()
            await asyncio.Event().wait()

    # -- what is read, as a test sets it

    async def offer(self) -> Offer:
        return self.service.offer

    async def models(self) -> Offer | None:
        return None

    async def missing(self, operations: Iterable[str]) -> dict[str, str]:
        return {}


def _answer(status: int, body: Any) -> Answer:
    detail = reason_in(body) if status >= 300 else ""
    return Answer(detail=detail, status=status, body=body)


def _name(call: Call) -> str:
    """Return a pattern's prompt, a product's name, or a refinement's operation and what it is made on."""
    body = call.body
    if "selections" in body:
        return str(body["selections"]["name"])
    if "patternId" in body:
        return f"{call.operation} on {body['patternId']}"
    return str(body.get("prompt", call.operation))


def refused(reason: str = "no") -> Answer:
    return _answer(422, {"error": reason})


def failed(reason: str = "the loom broke") -> Shown:
    return {"status": "failed", "error": {"message": reason}}


def made(stage: Stage, result_id: str, **more: str) -> Shown:
    return {"status": "succeeded", "result": {RESULT_FIELDS[stage]: result_id, **more}}
