"""A service of a few lines that does all that the interface states, and departs from it where a test says so."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from patternmill.conformance.conformance_report import ConformanceReport
from patternmill.conformance.probe import Probe
from patternmill.conformance.session import Session, SpendingLimit
from patternmill.conformance.suite import run_suite
from patternmill.service.outcomes import Answer, ExchangeResult, Trouble

URL = "https://service.example/v1"
CATEGORY = {"categoryId": "cat-1", "name": "Mug", "options": [{"name": "size", "values": ["11oz", "15oz"]}]}


def answered(status: int, body: Any, detail: str = "", retry_after: str | None = None) -> Answer:
    return Answer(ExchangeResult.ANSWERED, Trouble.NONE, detail, status, body, retry_after)


def refused(status: int, message: str) -> Answer:
    return answered(status, {"error": {"message": message}}, message)


@dataclass(frozen=True)
class Asked:
    """One request, as a departure may look at it."""

    operation: str
    body: Any
    #: `own`, `wrong` or `none`.
    key: str
    method: str
    #: How many requests the operation had before.
    number: int


Departure = Callable[[Asked, Callable[[], Answer]], Answer]


@dataclass
class WholeService:
    """`departure` gets each request, and a function that answers it as the interface states."""

    departure: Departure = lambda asked, answer: answer()
    #: What was made: patterns, products.
    made: Counter[str] = field(default_factory=Counter)
    asked: list[Asked] = field(default_factory=list)
    _jobs: dict[str, dict[str, Any]] = field(default_factory=dict)
    _requests: dict[str, str] = field(default_factory=dict)
    _checkouts: dict[str, dict[str, Any]] = field(default_factory=dict)

    async def request(
        self, method: str, operation: str, body: bytes, headers: Mapping[str, str | None]
    ) -> Answer:
        authorization = headers.get("Authorization", "own")
        key = "none" if authorization is None else "wrong" if authorization != "own" else "own"
        try:
            content = json.loads(body) if headers.get("Content-Type") != "text/plain" else None
        except ValueError:
            content = None
        number = sum(one.operation == operation for one in self.asked)
        asked = Asked(operation, content, key, method, number)
        self.asked.append(asked)
        return self.departure(asked, lambda: self.answer(asked))

    def answer(self, asked: Asked) -> Answer:
        """As the interface states, and the rest as most services do."""
        if asked.key != "own":
            return refused(401, f"{asked.key} key")
        return self.served(asked)

    def served(self, asked: Asked) -> Answer:
        """Whatever the key."""
        operation = getattr(self, f"_{asked.operation.replace('/', '_').replace('-', '_')}", None)
        if operation is None:
            return refused(404, f"no operation {asked.operation}")
        if asked.method != "POST":
            return refused(405, "POST alone")
        if not isinstance(asked.body, dict):
            return refused(400, "no JSON object")
        found: Answer = operation(asked.body)
        return found

    def begin_job(self, made: str) -> Answer:
        """A new job, whatever was asked."""
        self.made[made] += 1
        job_id = f"job-{len(self._jobs) + 1}"
        job = {"jobId": job_id, "kind": made, "status": "running", "result": None}
        self._jobs[job_id] = job
        return answered(200, dict(job))

    def _categories_list(self, body: dict[str, Any]) -> Answer:
        return answered(200, {"categories": [{"categoryId": "cat-1", "name": "Mug"}]})

    def _categories_get(self, body: dict[str, Any]) -> Answer:
        known = body.get("categoryId") == "cat-1"
        return answered(200, CATEGORY) if known else refused(404, "unknown category")

    def _patterns_create(self, body: dict[str, Any]) -> Answer:
        return self._create("pattern", body, ("requestId", "prompt"))

    def _products_create(self, body: dict[str, Any]) -> Answer:
        return self._create("product", body, ("requestId", "patternId", "categoryId", "selections"))

    def _create(self, made: str, body: dict[str, Any], required: tuple[str, ...]) -> Answer:
        if any(name not in body for name in required):
            return refused(422, "incomplete")
        known = self._requests.get(body["requestId"])
        if known is not None:
            return answered(200, dict(self._jobs[known]))
        answer = self.begin_job(made)
        self._requests[body["requestId"]] = answer.body["jobId"]
        return answer

    def _jobs_get(self, body: dict[str, Any]) -> Answer:
        job = self._jobs.get(body.get("jobId", ""))
        if job is None:
            return refused(404, "unknown job")
        shown = dict(job)
        job |= {"status": "succeeded", "result": {f"{job['kind']}Id": f"made-{job['jobId']}"}}
        return answered(200, shown)

    def _checkouts_create(self, body: dict[str, Any]) -> Answer:
        if not body.get("requestId") or not body.get("lines"):
            return refused(422, "incomplete")
        number = f"checkout-{len(self._checkouts) + 1}"
        checkout = {"checkoutId": number, "checkoutUrl": f"https://pay.example/{number}"}
        return answered(200, self._checkouts.setdefault(body["requestId"], checkout))

    def _orders_get(self, body: dict[str, Any]) -> Answer:
        return refused(404, "no paid checkout")

    def _models_list(self, body: dict[str, Any]) -> Answer:
        return answered(200, {"models": [{"modelId": "m-1", "name": "Loom"}]})

    def _feedback_create(self, body: dict[str, Any]) -> Answer:
        if not is_report(body):
            return refused(422, "out of bounds")
        return answered(200, {"requestId": body["requestId"]})


def is_report(body: dict[str, Any]) -> bool:
    """Whether each field is within the bounds of the interface."""
    request, response = body.get("request", {}), body.get("response", {})
    if not isinstance(request, dict) or not isinstance(response, dict):
        return False
    status, lasted = response.get("status", 0), response.get("durationMs", 0)
    return (
        _is_text(body.get("requestId"), 1, 128)
        and _is_text(body.get("text"), 1, 4000)
        and _is_text(body.get("procedure", "p"), 1, 200)
        and _is_text(body.get("agent", "a"), 1, 100)
        and _is_text(request.get("userAgent", ""), 0, 500)
        and (isinstance(status, int) and 0 <= status <= 599)
        and lasted >= 0
        and _is_time(body.get("reportedAt", "2030-01-01T00:00:00Z"))
    )


def _is_text(value: Any, least: int, most: int) -> bool:
    return isinstance(value, str) and least <= len(value) <= most


def _is_time(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


class VirtualTime:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def probe_of(service: WholeService, time: VirtualTime | None = None) -> Probe:
    time = time or VirtualTime()
    return Probe(service, clock=time, sleep=time.sleep)


async def checked(service: WholeService, *, spend: int = 0, feedback: bool = False) -> ConformanceReport:
    return await run_suite(Session(probe_of(service), URL, SpendingLimit(spend), feedback))
