"""What the interface promises, kept honestly: keys, categories, idempotent creates, jobs that outlive the process."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.hostile.plan import REFINE, UPLOAD, Plan, Rule
from tests.hostile.record import Record
from tests.hostile.wire import Answer, json_answer, refusal

NEVER = float("inf")


@dataclass(frozen=True)
class Category:
    category_id: str
    name: str
    options: Mapping[str, tuple[str, ...]]

    @property
    def named(self) -> dict[str, str]:
        return {"categoryId": self.category_id, "name": self.name}


def categories_of(plan: Plan) -> list[Category]:
    """Return the categories of a plan; their IDs differ between environments."""
    return [
        Category(f"{plan.environment[:4]}_{name.lower().replace(' ', '-')}_{number:02}", name, options)
        for number, (name, options) in enumerate(plan.catalog.items(), start=1)
    ]


@dataclass
class Job:
    job_id: str
    key: str
    request_id: str
    operation: str
    body: dict[str, Any]
    #: What is bought, whatever the request was called: the same text is the same thing.
    content: str
    created_at: float
    ends_at: float
    #: None: it succeeds.
    reason: str | None
    ended: bool = False
    reported: bool = False

    @property
    def kind(self) -> str:
        kinds = {"patterns/create": "pattern", "products/create": "product", UPLOAD: "reference"}
        return kinds.get(self.operation, self.operation)

    @property
    def makes(self) -> str:
        return "pattern" if self.operation in REFINE else self.kind

    @property
    def result_id(self) -> str:
        return f"{self.makes[:3]}_{self.job_id.removeprefix('job_')}"

    @property
    def status(self) -> str:
        if not self.ended:
            return "running"
        return "succeeded" if self.reason is None else "failed"

    def to_answer(self) -> Answer:
        done = self.status == "succeeded"
        answer: dict[str, Any] = {
            "jobId": self.job_id,
            "kind": self.kind,
            "status": self.status,
            "result": {f"{self.makes}Id": self.result_id} if done else None,
        }
        if self.status == "failed":
            answer["error"] = {"message": self.reason}
        return json_answer(answer)


@dataclass
class Fate:
    """What becomes of a job, as a rule decided at its creation."""

    #: Why it fails; None: it succeeds.
    reason: str | None = None
    #: How long it takes; None: as the plan says.
    seconds: float | None = None

    @classmethod
    def of(cls, rule: Rule) -> Fate:
        return cls(str(rule.params.get("message", "generation failed")))


@dataclass
class Call:
    """A request as the shop understands it, with all that rules may ask about it."""

    operation: str
    body: dict[str, Any]
    raw: bytes
    key: str
    identity: str
    #: What the request is about, for a person.
    content: str
    job: Job | None = None
    #: A create of a requestId that is known already; None: no create.
    is_repeat: bool | None = None
    #: The rules that fell on it, by their number in the plan.
    rules: list[int] = field(default_factory=list)

    @property
    def request_id(self) -> str | None:
        return _text(self.body.get("requestId"))


class Shop:
    """The durable state and the operations on it. Every change is in the record before it is answered."""

    def __init__(self, plan: Plan, record: Record, clock: Callable[[], float]) -> None:
        self.plan = plan
        self.record = record
        self.clock = clock
        self.jobs: dict[str, Job] = {}
        #: (key, requestId) -> its latest job
        self.requests: dict[tuple[str, str], Job] = {}
        self.made: dict[str, Job] = {}
        self.categories: dict[str, Category] = {
            category.category_id: category for category in categories_of(plan)
        }

    def end(self, job: Job) -> None:
        """End a job; on record it is by the time that was set for it, whoever looks first."""
        if job.ended:
            return
        job.ended = True
        result = job.result_id if job.reason is None else None
        if result is not None:
            self.made[result] = job
        at = min(self.clock(), job.ends_at)
        self.record.write("ended", at, jobId=job.job_id, status=job.status, resultId=result)

    def end_due(self, *jobs: Job | None) -> None:
        """End those of these jobs whose time has come."""
        for job in jobs:
            if job is not None and job.ends_at <= self.clock():
                self.end(job)

    def known(self, call: Call) -> Job | None:
        job = self.requests.get((call.key, call.request_id or ""))
        self.end_due(job)
        return job

    def content_of(self, operation: str, body: dict[str, Any]) -> str:
        """Return what is bought: its parameters and, where it is built on a pattern, that pattern's content."""
        about = {name: value for name, value in body.items() if name != "requestId"}
        if operation == "products/create" or operation in REFINE:
            pattern = self.made.get(str(about.pop("patternId", None)))
            about["pattern"] = pattern.content if pattern else None
            about["operation"] = operation
        return json.dumps(about, sort_keys=True, ensure_ascii=False)

    def create(self, call: Call, fate: Fate, *, forget: bool = False) -> tuple[Answer, Job | None]:
        """Return the answer, and the job if this very call made one."""
        if fault := self.fault_of(call):
            return fault, None
        known = self.known(call)
        if known is not None and not forget:
            if known.operation == call.operation and known.body == call.body:
                return known.to_answer(), None
            return refusal(409, "request_id_reused", "This requestId belongs to another request."), None
        job = self._begin(call, fate)
        return job.to_answer(), job

    def _begin(self, call: Call, fate: Fate) -> Job:
        now = self.clock()
        request_id = call.request_id or ""
        ends_at = now + self._duration(call, fate)
        job = Job(
            self.name_of(call),
            call.key,
            request_id,
            call.operation,
            call.body,
            call.content,
            now,
            ends_at,
            fate.reason,
        )
        self.jobs[job.job_id] = self.requests[job.key, job.request_id] = job
        self.record.write(
            "created", now, operation=job.operation, requestId=request_id, body=job.body, jobId=job.job_id
        )
        return job

    def name_of(self, call: Call) -> str:
        """Return the ID of a job that this request begins."""
        text = f"{self.plan.seed}/{len(self.jobs)}/{call.request_id or ''}"
        return f"job_{hashlib.sha256(text.encode()).hexdigest()[:20]}"

    def _duration(self, call: Call, fate: Fate) -> float:
        if fate.seconds is not None:
            return fate.seconds
        times = self.plan.products if call.operation == "products/create" else self.plan.patterns
        return times.draw(f"{self.plan.seed}/{call.content}")

    def fault_of(self, call: Call) -> Answer | None:
        """Return why a create is refused as invalid; None if it is not."""
        if not call.request_id:
            return refusal(422, "invalid", "requestId must be a text.")
        if call.operation == "patterns/create":
            prompt = _text(call.body.get("prompt"))
            if not prompt or not prompt.strip():
                return refusal(422, "invalid", "prompt must be a text.")
            unknown = [one for one in call.body.get("referenceIds", ()) if one not in self.made]
            return refusal(422, "invalid", "referenceIds are unknown.") if unknown else None
        if call.operation == UPLOAD:
            return None if _text(call.body.get("data")) else refusal(422, "invalid", "data is missing.")
        return self._unknown_pattern(call) or (
            self._invalid_product(call) if call.operation == "products/create" else None
        )

    def _unknown_pattern(self, call: Call) -> Answer | None:
        pattern = self.made.get(_text(call.body.get("patternId")) or "")
        if pattern is None or pattern.key != call.key or pattern.makes != "pattern":
            return refusal(422, "invalid", "patternId is unknown.")
        return None

    def _invalid_product(self, call: Call) -> Answer | None:
        category = self.categories.get(_text(call.body.get("categoryId")) or "")
        if category is None:
            return refusal(422, "invalid", "categoryId is unknown.")
        selections = call.body.get("selections")
        if not isinstance(selections, dict):
            return refusal(422, "invalid", "selections must be an object.")
        wrong = [o for o, value in selections.items() if value not in category.options.get(o, ())]
        if wrong:
            return refusal(422, "invalid", f"not offered: {', '.join(sorted(wrong))}")
        return None

    def get_job(self, call: Call) -> Answer:
        return call.job.to_answer() if call.job else refusal(404, "not_found", "No such job.")

    def list_categories(self, call: Call) -> Answer:
        return json_answer({"categories": [category.named for category in self.categories.values()]})

    def get_category(self, call: Call) -> Answer:
        category = self.categories.get(_text(call.body.get("categoryId")) or "")
        if category is None:
            return refusal(404, "not_found", "No such category.")
        options = [{"name": name, "values": list(values)} for name, values in category.options.items()]
        return json_answer({**category.named, "options": options})

    def understand(self, operation: str, raw: bytes, key: str) -> Call | None:
        """Return the request as a call; None if its body is no JSON object."""
        try:
            body = json.loads(raw)
        except ValueError:
            return None
        if not isinstance(body, dict):
            return None
        return (
            self._jobs_call(body, raw, key)
            if operation == "jobs/get"
            else self._plain_call(operation, body, raw, key)
        )

    def _jobs_call(self, body: dict[str, Any], raw: bytes, key: str) -> Call:
        job_id = _text(body.get("jobId")) or ""
        job = self.jobs.get(job_id)
        self.end_due(job)
        if job is None or job.key != key:
            return Call("jobs/get", body, raw, key, job_id, "")
        return Call("jobs/get", body, raw, key, job_id, job.content, job)

    def _plain_call(self, operation: str, body: dict[str, Any], raw: bytes, key: str) -> Call:
        content = self.content_of(operation, body)
        call = Call(operation, body, raw, key, _text(body.get("requestId")) or "", content)
        call.job = self.known(call)
        call.is_repeat = call.job is not None
        return call


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
