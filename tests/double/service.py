"""A service that makes each request ID once, behind weather; it keeps a record of all that it was asked and did."""

import asyncio
import json
import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.double.weather import DELAYED, HARMLESS, ODD_ENDS, REMEMBERED, STATUSES, UNEXECUTED, WORDS, Weather

#: The free option `label` makes two rows that are alike two products, as their skus do for the program.
CATEGORIES = {"cat_tote": "Tote", "cat_mug": "Mug"}
OPTIONS = [{"name": "size", "values": ["s", "m", "xl"]}, {"name": "label"}]
#: A size that is offered and not made, and words in a prompt: refused at once, and refused by its job.
NOT_MADE, REFUSED, UNSAFE = "xl", "[refused]", "[unsafe]"
_STAGES = {
    "patterns/create": "pattern", "products/create": "product", "checkouts/create": "checkout",
    "references/create": "reference", "refine/recolor": "refinement",
}  # fmt: skip
_KINDS = {"refinement": "pattern"}
#: What is made at once, and is answered with no job.
_AT_ONCE = frozenset({"checkout", "reference"})


@dataclass(frozen=True)
class Reply:
    """What comes back. `trouble` is what a client meets in place of an answer: `unreachable` or `cut`."""

    status: int = 200
    body: Any = None
    retry_after: str = ""
    trouble: str = ""

    @property
    def content(self) -> bytes:
        return self.body.encode() if isinstance(self.body, str) else json.dumps(self.body).encode()


_PAGE = "<html><body>Checking your browser</body></html>"
#: What comes in place of the answer, by fault and spell.
_INSTEAD = {
    **{spell: Reply(status, {"error": spell}) for spell, status in STATUSES.items()},
    "firewall": Reply(403, _PAGE),
    "asked_to_wait": Reply(503, {"error": "Maintenance."}, retry_after="30"),
    **dict.fromkeys(("unreachable", "away"), Reply(trouble="unreachable")),
    **dict.fromkeys(("reset", "lost"), Reply(trouble="cut")),
    "html": Reply(200, _PAGE),
    "nameless": Reply(200, {"status": "running"}),
    "error_in_200": Reply(200, {"success": False, "error": "Something went wrong. Try again."}),
    "no_content": Reply(204, ""),
}


@dataclass
class Job:
    """A job that somebody paid for. `reason` says why it fails, and `odd` what is strange about its end."""

    job: str
    at: float
    stage: str
    request: str
    body: dict[str, Any]
    ends_at: float
    result: str
    reason: str = ""
    odd: str = ""


class Double:
    """The service. `clock` gives its time; with a `file`, the record is there too, as JSON lines."""

    def __init__(
        self,
        weather: Weather = Weather(),  # noqa: B008
        seed: str = "0",
        clock: Callable[[], float] = time.time,
        file: Path | None = None,
    ) -> None:
        self.weather, self._seed, self._clock = weather, seed, clock
        self._chance = random.Random(f"{seed}/service")
        self._file = file
        self.record: list[dict[str, Any]] = []
        #: Every job by its ID, and the one of each request ID.
        self.jobs: dict[str, Job] = {}
        self.requests: dict[str, Job] = {}
        #: How often each fault, spell and dialect came up.
        self.fired: Counter[str] = Counter()
        #: Requests that a client may rightly leave to a person.
        self.doubtful: set[str] = set()
        #: Checkouts that a person has paid.
        self.paid: set[str] = set()
        self._answers: dict[str, Reply] = {}
        self._tokens, self._filled_at = 0.0, 0.0
        self._later: set[asyncio.Task[Any]] = set()

    def note(self, event: str, **facts: Any) -> None:
        """Put an event on record."""
        self.record.append({"event": event, "at": self._clock(), **facts})
        if self._file:
            with self._file.open("a") as file:
                print(json.dumps(self.record[-1]), file=file)

    # The way there and back

    async def exchange(self, operation: str, raw: bytes) -> Reply:
        """Carry a request to the service and its answer back, through the weather."""
        body = json.loads(raw)
        name = body.get("requestId") or body.get("jobId") or operation
        fault = self._spell(operation, name) or self._fault()
        if operation == name and fault in ("nameless", "error_in_200"):
            fault = ""  # that would be an offer in a shape that nobody can read
        self._count(fault, name)
        self.note("request", operation=operation, name=name, fault=fault, body=raw.decode())
        await self._pass(1.1, 3.0) if fault == "late" else await asyncio.sleep(self._latency())
        honest = (
            await self._arrive(operation, body) if fault not in (*UNEXECUTED, *STATUSES, "away") else Reply()
        )
        reply = self._spoiled(fault, honest)
        if name in self.requests and (reply is honest or fault == "failed_after"):
            self._answers.setdefault(name, reply)
        if fault == "twice":
            self._start_later(operation, body)
        await self._pass(0.05, 0.8) if fault == "slow" else await asyncio.sleep(self._latency())
        if (
            reply is honest
            and fault != "late"
            and isinstance(honest.body, dict)
            and honest.body.get("status") == "failed"
        ):
            self.note("told", job=honest.body["jobId"].removesuffix("-again"))
        return reply

    async def _pass(self, least: float, most: float) -> None:
        """Let a part of the client's patience pass."""
        await asyncio.sleep(self._chance.uniform(least, most) * self.weather.timeout)

    def _start_later(self, operation: str, body: dict[str, Any]) -> None:
        async def again() -> None:
            await self._pass(0, 3)
            await self._arrive(operation, body)

        self._later.add(task := asyncio.create_task(again()))
        task.add_done_callback(self._later.discard)

    def _latency(self) -> float:
        return self.weather.latency * self._chance.uniform(0.5, 1.5)

    def _fault(self) -> str:
        left = self._chance.random()
        for fault, share in self.weather.faults.items():
            left -= share
            if left < 0:
                return fault
        return ""

    def _spell(self, operation: str, name: str) -> str:
        """Return what an exchange meets that is about this name. Reads are spared, or little would be begun at all."""
        for spell in self.weather.spells:
            met = random.Random(f"{self._seed}/{spell.kind}/{name}").random() < spell.share
            if (spell.kind in STATUSES or spell.kind == "away") and met and self._is_on(spell.kind):
                return spell.kind if operation != name else ""
        return ""

    def _is_on(self, kind: str) -> bool:
        return any(
            spell.kind == kind and spell.begins <= self._clock() < spell.ends for spell in self.weather.spells
        )

    def _count(self, what: str, name: str) -> None:
        """Count what happened to a request or job; what is not harmless may leave it to a person."""
        if what:
            self.fired[what] += 1
        if what not in HARMLESS:
            self.doubtful.add(self.jobs[name].request if name in self.jobs else name)

    def _spoiled(self, fault: str, honest: Reply) -> Reply:
        """Return what becomes of an honest answer on its way."""
        draw = self._chance.choice
        if fault in ("", *DELAYED):
            return honest
        if fault == "half":
            return Reply(honest.status, honest.content.decode()[: len(honest.content) // 2])
        if fault in ("failed", "failed_after"):
            return Reply(draw([500, 502, 504]), "Something went wrong.")
        if fault == "busy":
            return Reply(503, {"error": "Busy."}, retry_after=draw(["", "2"]))
        if fault == "limited":
            return Reply(429, {"error": "Too fast."}, retry_after=draw(["1", "0", "", "soon", "-5"]))
        return _INSTEAD[fault]

    # The service itself

    async def _arrive(self, operation: str, body: dict[str, Any]) -> Reply:
        """Do what a request asks for, and return the honest answer."""
        if operation in _STAGES:
            return await self._create(operation, body)
        if operation == "jobs/get":
            return self._poll(body["jobId"])
        if operation == "orders/get":
            checkout = body["checkoutId"]
            order = {"orderId": f"ord_{checkout}", "checkoutId": checkout, "status": "in production"}
            return Reply(body=order) if checkout in self.paid else Reply(404, {"error": "Not paid yet."})
        if operation == "feedback/create":
            return Reply(body={"requestId": body["requestId"]})
        if operation == "categories/list":
            return Reply(
                body={"categories": [{"categoryId": one, "name": name} for one, name in CATEGORIES.items()]}
            )
        if operation == "categories/get" and (name := CATEGORIES.get(body["categoryId"])):
            return Reply(body={"categoryId": body["categoryId"], "name": name, "options": OPTIONS})
        return Reply(404, {"error": "No such thing."})

    async def _create(self, operation: str, body: dict[str, Any]) -> Reply:
        request, dialect = body["requestId"], self.weather.dialect
        if not self._takes_one_more():
            self.fired["over_the_rate"] += 1
            return Reply(429, {"error": "Too fast."}, retry_after="1")
        if refusal := self._refusal(operation, body):
            return refusal
        known = self.requests.get(request)
        if dialect == "looks up":
            await asyncio.sleep(self.weather.timeout * self._chance.uniform(0.005, 0.03))
        if known and dialect == "forgets" and self._clock() - known.at > REMEMBERED:
            self.fired["forgotten"] += 1
            known = None
        if known:
            return self._repeated(known)
        return self._view(self._begin(operation, body), running=True)

    def _takes_one_more(self) -> bool:
        """Take a token from the bucket of creates, which fills at a rate that the client does not know."""
        if self.weather.rate is None:
            return True
        now = self._clock()
        self._tokens = min(self.weather.rate, self._tokens + (now - self._filled_at) * self.weather.rate)
        self._filled_at = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True

    def _refusal(self, operation: str, body: dict[str, Any]) -> Reply | None:
        """Return why a create is refused, before it is looked at whether it is known."""
        if self._is_on("no_more"):
            self._count("no_more", body["requestId"])
            return Reply(422, {"error": "The plan has none left."})
        if body.get("selections", {}).get("size") == NOT_MADE:
            return self._refused("selections.size", f"Size {NOT_MADE} is not made.")
        if operation == "products/create" and body["categoryId"] not in CATEGORIES:
            return self._refused("categoryId", "No such category.")
        if REFUSED in body.get("prompt", ""):
            return self._refused("prompt", "prompt holds a word that is not allowed")
        if operation == "products/create" and not self._pattern(body["patternId"]):
            self.note(
                "offence", text=f"{body['requestId']} is built on {body['patternId']}, which is no pattern"
            )
            return Reply(422, {"error": "No such pattern."})
        return None

    def _refused(self, field: str, text: str) -> Reply:
        self.fired["row_refused"] += 1
        return Reply(422, {"error": {"field": field, "message": text}})

    def _pattern(self, pattern_id: str) -> Job | None:
        return next((job for job in self.jobs.values() if job.result == pattern_id and not job.reason), None)

    def _begin(self, operation: str, body: dict[str, Any]) -> Job:
        """Begin the job of a new request, whose length and end follow from the seed and the request ID."""
        stage, number, weather, now = _STAGES[operation], len(self.jobs) + 1, self.weather, self._clock()
        fate, request = random.Random(f"{self._seed}/{body['requestId']}"), body["requestId"]
        lasts = (weather.pattern_time if stage == "pattern" else weather.product_time) * fate.lognormvariate(
            0, weather.spread
        )
        reason = (
            "internal generator error"
            if fate.random() < weather.jobs_fail or self._is_on("jobs_fail")
            else ""
        )
        if UNSAFE in body.get("prompt", ""):
            reason = "Rejected by the safety policy: the prompt has to be changed."
        if fate.random() < weather.jobs_stuck:
            self.fired["stuck"] += 1
            lasts = fate.uniform(2000, 5000)
        odd = fate.choice(ODD_ENDS) if fate.random() < weather.jobs_odd and not reason else ""
        job = Job(
            f"job_{number}", now, stage, request, body, now + lasts, f"{stage[:3]}_{number}", reason, odd
        )
        self.jobs[job.job] = self.requests[request] = job
        self.note("job", **asdict(job))
        return job

    def _repeated(self, job: Job) -> Reply:
        """Answer a request ID that is known, in the dialect of this service."""
        dialect = self.weather.dialect
        self.fired[dialect] += 1
        if dialect in WORDS or dialect in ("another job", "failed as a duplicate"):
            self.doubtful.add(job.request)
        if dialect in WORDS:
            return Reply(*WORDS[dialect])
        if dialect == "another job":
            return self._view(job, name=f"{job.job}-again", running=True)
        if dialect == "failed as a duplicate":
            return self._duplicate(f"{job.job}-dup", job.stage)
        if dialect == "in progress" and self._clock() - job.at < 60 and self._clock() < job.ends_at:
            return Reply(409, {"error": "Another request with this ID is in progress. Try again later."})
        if dialect == "stored answer" and (first := self._answers.get(job.request)):
            if first.status >= 400:
                self.doubtful.add(job.request)
            return first
        return self._view(job)

    def _duplicate(self, name: str, kind: str) -> Reply:
        error = {"message": "Duplicate request: this requestId was already processed."}
        return Reply(body={"jobId": name, "kind": kind, "status": "failed", "result": None, "error": error})

    def _poll(self, name: str) -> Reply:
        job, weather = self.jobs.get(name.removesuffix("-again").removesuffix("-dup")), self.weather
        if job is None:
            self.note("offence", text=f"{name} was asked for, and is no job")
            return Reply(404, {"error": "No such job."})
        if name.endswith("-dup"):
            return self._duplicate(name, job.stage)
        others = [one for one in self.jobs.values() if one.stage == job.stage and one is not job]
        if others and self._chance.random() < weather.crossed:
            self._count("crossed", name)
            other = self._chance.choice(others)
            return self._view(other, name=name if weather.echoes and self._chance.random() < 0.5 else "")
        if self._clock() - job.at < 5 and self._chance.random() < weather.unknown:
            self.fired["unknown"] += 1
            return Reply(404, {"error": "No such job."})
        reply = self._view(job, name=name)
        if self._chance.random() < weather.pondering:
            self.fired["pondering"] += 1
            reply.body.update(status="pondering", result=None)
        return reply

    def _view(self, job: Job, *, name: str = "", running: bool = False) -> Reply:
        """Return what is shown of a job, or of what was made at once."""
        if job.stage in _AT_ONCE:
            url = {"checkoutUrl": f"https://pay.example/{job.result}"} if job.stage == "checkout" else {}
            return Reply(body={f"{job.stage}Id": job.result, **url})
        body: dict[str, Any] = {
            "jobId": name or job.job,
            "kind": _KINDS.get(job.stage, job.stage),
            "status": "running",
            "result": None,
        }
        if self.weather.echoes:
            body["input"] = job.body
        if self._is_on("read_failed") and not running:
            self._count("read_failed", job.job)
            return Reply(body=body | {"status": "failed", "error": {"message": "internal generator error"}})
        if running or self._clock() < job.ends_at:
            return Reply(body=body)
        if job.reason:
            body |= {"status": "failed", "error": {"message": job.reason}}
        else:
            body |= {"status": "succeeded", "result": {f"{_KINDS.get(job.stage, job.stage)}Id": job.result}}
        return Reply(body=body | self._odd_end(job))

    def _odd_end(self, job: Job) -> dict[str, Any]:
        """Return what is strange about the end of a job."""
        if job.odd:
            self._count(job.odd, job.job)
        named, other = f"{job.stage}Id", "patternId" if job.stage == "product" else "productId"
        broke: dict[str, Any] = {"status": "failed", "error": {"message": "it broke"}}
        return {
            "failed_with_result": broke | {"result": {named: job.result}},
            "without_result": {"result": {}},
            "of_another_kind": {"result": {other: job.result}},
            "shapeless": {"result": {"asset": {"uid": job.result}}},
        }.get(job.odd, {})
