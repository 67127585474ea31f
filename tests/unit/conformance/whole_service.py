"""A service of a few lines that does all that the interface states, and departs from it where a test says so."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from patternmill.conformance.checks import CheckOutcome, check_lines
from patternmill.conformance.session import Session
from patternmill.planning.unstated import UNSTATED, Unstated
from patternmill.service.outcomes import Answer, ExchangeResult, Trouble

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
    #: How many requests the operation had before.
    number: int


Departure = Callable[[Asked, Callable[[], Answer]], Answer]


@dataclass
class WholeService:
    """`departure` gets each request, and a function that answers it as the interface states."""

    departure: Departure = lambda asked, answer: answer()
    #: What was made: patterns, products, refinements.
    made: Counter[str] = field(default_factory=Counter)
    asked: list[Asked] = field(default_factory=list)
    #: In seconds.
    slept: list[float] = field(default_factory=list)
    _jobs: dict[str, dict[str, Any]] = field(default_factory=dict)
    _requests: dict[str, str] = field(default_factory=dict)
    _checkouts: dict[str, dict[str, Any]] = field(default_factory=dict)

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)

    async def request(self, operation: str, body: bytes, headers: Mapping[str, str] | None = None) -> Answer:
        key = "own" if headers is None else "wrong" if headers else "none"
        number = sum(one.operation == operation for one in self.asked)
        asked = Asked(operation, json.loads(body), key, number)
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

    def _refine_recolor(self, body: dict[str, Any]) -> Answer:
        return self._create("refinement", body, ("requestId", "patternId", "palette"))

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


async def checked(
    service: WholeService, *, spend: int = 0, unstated: Unstated = UNSTATED
) -> dict[str, tuple[CheckOutcome, str]]:
    """How each check ended."""
    session = Session(service.request, spend, unstated=unstated, sleep=service.sleep)
    return {name: (outcome, detail) async for name, outcome, detail in check_lines(session)}
