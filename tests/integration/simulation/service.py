"""The service of a simulation: it lives outside of the client, in messages that take their time, and keeps a record."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

from patternmill.service.client import Look
from patternmill.service.outcomes import Answer, Trouble
from patternmill.service.redaction import reason_in
from tests.dialects import DIALECTS, UNKNOWN
from tests.hostile.in_process import KEY, QuietShop
from tests.hostile.shop import Call, Fate, Job
from tests.integration.simulation.loop import SimulationLoop
from tests.integration.simulation.weather import FINAL, NOT_MADE, SPELLS, Weather

POLL, LOOK_UP, REFINE = "jobs/get", "jobs/find", "refine/recolor"
ACCOUNT_LIMIT = "The plan has none left."
#: The client's time-out for one exchange, in seconds.
TIMEOUT = 30.0
EPOCH = datetime(2030, 1, 1, tzinfo=UTC)
#: The suffix of the other name of a job.
RENAMED = "-again"
#: Faults that the service itself never sees.
UNEXECUTED = {"failed_unexecuted", "limited", *SPELLS} - {"redirect_302", "redirect_303"}
_NOT_SENT = {"no_name": Trouble.NAME_NOT_FOUND, "tls": Trouble.TLS}
#: The codes under which a job with an odd end is rightly held.
_ODD = {"result_missing", "job_of_another_kind", "job_of_another_pattern", "failed_with_result"}


@dataclass(frozen=True)
class Asked:
    """One exchange as the client sees it. `fault` is what the network or the service did to it, if anything."""

    at: float
    life: int
    operation: str
    #: The request ID of a create, the job ID of a poll.
    name: str
    fault: str
    body: bytes


@dataclass
class Limit:
    """A token bucket that the client does not know."""

    rate: float | None
    tokens: float = 0.0
    filled_at: float = 0.0

    def takes(self, now: float) -> bool:
        if self.rate is None:
            return True
        self.tokens = min(self.rate, self.tokens + (now - self.filled_at) * self.rate)
        self.filled_at = now
        if self.tokens < 1:
            return False
        self.tokens -= 1
        return True


@dataclass
class SimulatedService:
    """A service that makes each request ID once. A job's length and its end follow from the seed and its request ID."""

    seed: str
    weather: Weather
    loop: SimulationLoop
    asked: list[Asked] = field(default_factory=list)
    #: Requests that were refused, because it has them or for a limit of the account.
    refused: set[str] = field(default_factory=set)
    #: The codes for which each request may rightly be held, as it was answered.
    may_be_held: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    fired: Counter[str] = field(default_factory=Counter)
    #: What the client must never do, as sentences.
    offences: list[str] = field(default_factory=list)
    #: When each job was first reported as failed, and what is odd about its end.
    failure_told: dict[str, float] = field(default_factory=dict)
    odd: dict[str, str] = field(default_factory=dict)
    #: The bytes of each request.
    bodies: dict[str, bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.chance = random.Random(f"{self.seed}/service")
        self.shop = QuietShop(self.loop.time)
        creates = Limit(self.weather.create_rate, self.weather.create_rate or 0.0)
        polls = Limit(self.weather.poll_rate, self.weather.poll_rate or 0.0)
        self.limits = {POLL: polls, LOOK_UP: polls}
        self.limits |= {"patterns/create": creates, "products/create": creates, REFINE: creates}

    @property
    def jobs(self) -> dict[str, Job]:
        """Return the job that each create was charged as."""
        return self.shop.jobs

    # -- the transport

    def send(self, operation: str, body: bytes, life: int, answer: asyncio.Future[Answer]) -> None:
        """One exchange, from the moment at which the client sends it."""
        fields = json.loads(body)
        name = fields.get("requestId") or fields["jobId"]
        fault = self._spell(name) or self._fault()
        self.asked.append(Asked(self.loop.time(), life, operation, name, fault, body))
        if fault:
            self.fired[fault] += 1
        there, back = self._latency(), self._latency()
        self._after(TIMEOUT, answer, Answer(Trouble.TIMEOUT))
        match fault:
            case "refused" | "unconnected" | "no_name" | "tls":
                self._after(there, answer, Answer(_NOT_SENT.get(fault, Trouble.CONNECT)))
                if fault in SPELLS:
                    self.may_be_held[name].add("no_clear_answer")
            case "reset_before":
                self._after(there, answer, Answer(Trouble.RESET))
            case "late":
                self.loop.call_later(TIMEOUT + self.chance.uniform(0, 60), self._arrive, operation, body)
            case _:
                self.loop.call_later(there, self._exchange, operation, body, fault, back, answer)

    def _exchange(
        self, operation: str, body: bytes, fault: str, back: float, answer: asyncio.Future[Answer]
    ) -> None:
        """The request has arrived, intact or as `fault` changes it."""
        if fault in SPELLS:
            self._expect_doubt(operation, json.loads(body), fault)
        is_executed = fault not in UNEXECUTED and (fault != "redirect_302" or self.chance.random() < 0.5)
        reply = self._arrive(operation, body) if is_executed else make_answer(500)
        if fault.startswith(("status", "redirect")):
            reply = make_answer(int(fault[-3:]))
        elif mishap := _MISHAPS.get(fault):
            reply = mishap(self)
        if fault == "twice":
            self.loop.call_later(self.chance.uniform(0, 90), self._arrive, operation, body)
        delay = self.chance.uniform(1, 25) if fault == "slow" else back
        self._after(delay, answer, reply)

    def _after(self, delay: float, answer: asyncio.Future[Answer], reply: Answer) -> None:
        self.loop.call_later(delay, lambda: None if answer.done() else answer.set_result(reply))

    def _latency(self) -> float:
        return self.weather.latency * self.chance.uniform(0.5, 1.5)

    def _expect_doubt(self, operation: str, fields: dict[str, Any], fault: str) -> None:
        """A refusal of what may have been executed before is for a person, and so is a job that is denied."""
        if operation == POLL and fault == "status_404":
            job = self.jobs[fields["jobId"].removesuffix(RENAMED)]
            self.may_be_held[job.request_id].add("job_unknown")
        elif operation != POLL:
            self.may_be_held[fields["requestId"]].add("refused_in_doubt")

    def _spell(self, name: str) -> str:
        """What an exchange meets that is about this request, or this job."""
        for spell in self.weather.spells:
            met = random.Random(f"{self.seed}/{spell.kind}/{name}").random() < spell.share
            if met and spell.begins <= self.loop.time() < spell.ends:
                return spell.kind
        return ""

    def _fault(self) -> str:
        left = self.chance.random()
        for fault, share in self.weather.faults.items():
            left -= share
            if left < 0:
                return fault
        return ""

    # -- the service itself

    def _arrive(self, operation: str, body: bytes) -> Answer:
        now = self.loop.time()
        if _is_within(now, self.weather.outages):
            self.fired["outage"] += 1
            return make_answer(self.chance.choice([500, 502, 503, 504]))
        if not self.limits[operation].takes(now):
            self.fired["over_the_limit"] += 1
            return self.limited()
        self.shop.end_due(*self.jobs.values())
        call = self.shop.understand(operation, body, KEY)
        assert call is not None
        if operation == LOOK_UP:
            self.fired["looked_up"] += 1
            return make_answer(200, self._job_json(call.job)) if call.job else make_answer(404)
        return self._job_answer(call.body["jobId"]) if operation == POLL else self._create(call)

    def _create(self, call: Call) -> Answer:
        operation, fields, request_id = call.operation, call.body, call.identity
        job = call.job
        if fields.get("selections", {}).get("size") == NOT_MADE:
            self.fired["row_refused"] += 1
            self.may_be_held[request_id].add("refused_in_doubt")
            return make_answer(422, {"error": f"Size {NOT_MADE} is not made."})
        if operation == "products/create" and _is_within(self.loop.time(), self.weather.limits):
            self.fired["account_limit"] += 1
            self.refused.add(request_id)
            return make_answer(422, {"error": ACCOUNT_LIMIT}, detail=ACCOUNT_LIMIT)
        is_known = job is not None
        if job is None:
            job = self._charge(call)
            if job is None:
                return make_answer(422)
            is_known = (
                random.Random(f"{self.seed}/elsewhere/{request_id}").random() < self.weather.sent_elsewhere
            )
            self.fired["sent_elsewhere"] += is_known
        elif self.bodies[request_id] != call.raw or job.operation != operation:
            self.offences.append(f"request {request_id} was sent again with other bytes")
        if is_known and self.weather.dialect:
            self.refused.add(request_id)
            self.fired["refused_as_known"] += 1
            status, said = (DIALECTS | UNKNOWN)[self.weather.dialect]
            detail = reason_in(said)
            if self.chance.random() < self.weather.named_in_refusals:
                self.fired["named_in_refusal"] += 1
                said = (said or {}) | self._job_json(job, running=True)
            return make_answer(status, said, detail=detail)
        if self.chance.random() < self.weather.renamed and job.reported:
            self.fired["renamed"] += 1
            self.may_be_held[request_id].add("second_job")
            return make_answer(200, self._job_json(job, running=True) | {"jobId": f"{job.job_id}{RENAMED}"})
        job.reported = True
        # For a known request it may report the present state of the job.
        return make_answer(200, self._job_json(job, running=self.chance.random() < 0.5))

    def _charge(self, call: Call) -> Job | None:
        """Begin a job for a new request; None: it builds on what is not there."""
        request_id, weather = call.identity, self.weather
        fate = random.Random(f"{self.seed}/{request_id}")
        typical = weather.pattern_time if call.operation.startswith("patterns") else weather.product_time
        lasting, drawn = typical * fate.lognormvariate(0, weather.spread), fate.random()
        reason = None
        if drawn < weather.jobs_fail:
            reason = "the loom broke"
        elif drawn < weather.jobs_fail + weather.jobs_refused:
            reason = f"{FINAL}: a trademark"
        if fate.random() < weather.jobs_stuck:
            self.fired["job_stuck"] += 1
            lasting = fate.uniform(2400, 4000)
        answer, job = self.shop.create(call, Fate(reason=reason, seconds=lasting))
        if job is None:
            self.offences.append(f"request {request_id} was refused: {answer.body.decode()}")
            return None
        odd = random.Random(f"{self.seed}/odd/{request_id}")
        if odd.random() < weather.jobs_odd:
            is_odd = "failed_with_result" if reason else odd.choice(["without_result", "of_another_kind"])
            self.odd[job.job_id] = is_odd
            self.may_be_held[request_id] |= _ODD
        self.bodies[request_id] = call.raw
        return job

    def _job_answer(self, job_id: str) -> Answer:
        job = self.jobs.get(job_id.removesuffix(RENAMED))
        if job is None:
            self.offences.append(f"{job_id} was asked for, and was never issued")
            return make_answer(404)
        if self.chance.random() < self.weather.polls_mixed and len(self.jobs) > 1:
            self.fired["polls_mixed"] += 1
            self.may_be_held[job.request_id].add("wrong_job")
            return make_answer(200, self._job_json(next(one for one in self.jobs.values() if one is not job)))
        age, named = self.loop.time() - job.created_at, {"jobId": job_id}
        if age < 5 and self.chance.random() < self.weather.jobs_unknown:
            self.fired["job_unknown"] += 1
            return make_answer(404)
        # Not for so long that the client would leave it to a person.
        if age < 600 and self.chance.random() < self.weather.status_unknown:
            self.fired["status_unknown"] += 1
            return make_answer(200, self._job_json(job, running=True) | named | {"status": "pondering"})
        return make_answer(200, self._job_json(job) | named)

    def _job_json(self, job: Job, *, running: bool = False) -> dict[str, Any]:
        body: dict[str, Any] = json.loads(job.to_answer().body)
        if running or not job.ended:
            body.pop("error", None)
            return body | {"status": "running", "result": None}
        odd = self.odd.get(job.job_id, "")
        self.fired[odd] += bool(odd)
        if odd == "without_result":
            body["result"] = {}
        elif odd:
            is_product = (job.makes == "product") ^ (odd == "of_another_kind")
            body["result"] = {"productId" if is_product else "patternId": job.result_id}
        if job.reason is not None and job.job_id not in self.failure_told:
            self.failure_told[job.job_id] = self.loop.time()
            self.fired["job_refused" if FINAL in job.reason else "job_failed"] += 1
        return body

    def limited(self) -> Answer:
        """429, with one of the forms of Retry-After."""
        now = EPOCH + timedelta(seconds=self.loop.time())
        body = self.chance.choice(["1", "0", "", "soon", "2.5", format_datetime(now + timedelta(seconds=2))])
        return make_answer(429, retry_after=body, date=format_datetime(now))


def _is_within(now: float, spans: Iterable[tuple[float, float]]) -> bool:
    return any(begin <= now < end for begin, end in spans)


def make_answer(status: int, body: Any = None, **more: Any) -> Answer:
    return Answer(status=status, body=body, **more)


#: The answers that are given instead, by fault.
_MISHAPS: dict[str, Callable[[SimulatedService], Answer]] = {
    "reset_after": lambda service: Answer(Trouble.RESET),
    "failed_unexecuted": lambda service: make_answer(service.chance.choice([500, 502, 503, 504])),
    "failed_executed": lambda service: make_answer(service.chance.choice([500, 502, 503, 504])),
    "limited": lambda service: service.limited(),
    "unreadable": lambda service: make_answer(200, trouble=Trouble.HTML),
    "nameless": lambda service: make_answer(200, {"status": "running"}),
    "item_failed": lambda service: make_answer(503),
    "asked_to_wait": lambda service: make_answer(429, retry_after="4000"),
    "proxy_page": lambda service: make_answer(400, trouble=Trouble.HTML),
}


class SimulatedClient:
    """The client side of the wire, for one life of the process."""

    def __init__(self, service: SimulatedService, life: int) -> None:
        self._service, self._loop, self._life = service, service.loop, life

    async def post(self, operation: str, body: bytes, look: Look | None = None) -> Answer:
        if look is not None:
            await look()
        answer: asyncio.Future[Answer] = self._loop.create_future()
        if self._loop.moment():
            self._service.send(operation, body, self._life, answer)
            self._loop.moment()
        return await answer

    async def close(self) -> None:
        """Do nothing: the client keeps nothing open."""
