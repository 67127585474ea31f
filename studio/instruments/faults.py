"""The faults of the present plan: which one fires on a call, counted in the studio's file."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from studio.instruments.fault_plan import Call, Effect, FailJob, Fault, FaultPlan, NeverEndJob, TimeJob
from studio.operations.context import Caller, Fate
from studio.requests import CreateBody
from studio.store import Store
from studio.wire import as_sent

FAULTS = "faults"
COUNTS = "fault counts"
#: The duration of a job that never ends.
NEVER = timedelta(days=365_000)


class Faults:
    """A plan, its counts, and what it makes of calls. Both are stored: a killed studio goes on counting."""

    def __init__(self, store: Store, start: FaultPlan) -> None:
        self._store = store
        self._start = start
        self.reload()

    def reload(self) -> None:
        """Continue from what is stored, as the state may have been replaced."""
        settings = self._store.settings
        stored = settings.get(FAULTS)
        plan = self._start if stored is None else FaultPlan.model_validate_json(stored)
        self._faults = plan.named
        #: The number of calls that matched each fault, and how often it fired.
        self._counts = defaultdict(lambda: [0, 0], json.loads(settings.get(COUNTS) or "{}"))
        #: The operations whose calls may meet a fault.
        self.operations = frozenset[str]().union(*(fault.operations for fault in self._faults))

    def use(self, plan: FaultPlan) -> None:
        """Take another plan; counting begins anew."""
        with self._store.transaction():
            self._store.settings.delete(COUNTS)
            self._store.settings.set(FAULTS, plan.model_dump_json())
        self.reload()

    def on_exchange(self, caller: Caller, body: Mapping[str, object]) -> Effect | None:
        """Return the effect of the fault that fires on this call. Every fault that the call fits counts it."""
        return self._first([fault for fault in self._faults if not fault.on_job], caller, body)

    def fate_of(self, body: CreateBody, caller: Caller) -> Fate:
        """Return what becomes of the job that this request starts."""
        faults = [fault for fault in self._faults if fault.on_job]
        match self._first(faults, caller, as_sent(body)) if faults else None:
            case FailJob(message=message):
                return Fate(failure=message)
            case NeverEndJob():
                return Fate(takes=NEVER)
            case TimeJob(seconds=seconds):
                return Fate(takes=timedelta(seconds=seconds))
        return Fate()

    def report(self) -> list[dict[str, Any]]:
        """Return how each fault fared. `expected`: how often it has to fire at least to have been of use."""
        return [
            {"name": one.name, "calls": calls, "fired": fired, "expected": one.expected}
            for one in self._faults
            for calls, fired in [self._counts[one.name]]
        ]

    def unfired(self) -> list[str]:
        """Return the names of those that did not fire as often as expected."""
        return [one["name"] for one in self.report() if one["fired"] < one["expected"]]

    def _first(self, faults: list[Fault], caller: Caller, body: Mapping[str, object]) -> Effect | None:
        call = read_call(self._store, caller, body)
        due: Effect | None = None
        for fault in faults:
            if fault.fits(call):
                counts = self._counts[fault.name]
                counts[0] += 1
                if due is None and fault.falls_on(counts[0]):
                    counts[1] += 1
                    due = fault.effect
        self._store.settings.set(COUNTS, json.dumps(self._counts))
        return due


def read_call(store: Store, caller: Caller, body: Mapping[str, object]) -> Call:
    """Return the call with this body; what cannot be read of it is left empty."""
    fields = {name: value for name, value in body.items() if isinstance(value, str)}
    if caller.operation == "jobs/get":
        job = store.jobs.one(job_id=fields.get("jobId", ""), account=caller.account)
        if job is not None:
            return Call(caller.operation, job.request_id, job.subject.design.prompt)
    pattern = store.jobs.one(result_id=fields.get("patternId", ""), account=caller.account, kind="pattern")
    prompts = (fields.get("prompt"), None if pattern is None else pattern.subject.design.prompt)
    request_id = fields.get("requestId", "")
    request = store.requests.one(account=caller.account, request_id=request_id)
    repeated = request is not None and request.operation == caller.operation
    return Call(caller.operation, request_id, "\n".join(filter(None, prompts)), repeated)
