"""The faults of the present plan: which one fires on a call, counted in the studio's file."""

from __future__ import annotations

from datetime import timedelta

from typing_extensions import TypedDict

from studio.instruments.calls import Call, read_call
from studio.instruments.fates import NEVER, USUAL, Fate
from studio.instruments.fault_plan import FailJob, Fault, FaultPlan, JobEffect, NeverEndJob
from studio.operations.table import operations_of
from studio.requests import CreateBody
from studio.store import Account, Store
from studio.wire import as_sent

SETTING = "faults"


class FaultRecord(TypedDict):
    """How a fault fared. `expected`: how often it has to fire at least to have been of use."""

    name: str
    calls: int
    fired: int
    expected: int


class Faults:
    """A plan, its counts, and what it makes of calls. Both are stored: a killed studio goes on counting."""

    def __init__(self, store: Store, start: FaultPlan) -> None:
        self._store = store
        self._start = start
        self.reload()

    def reload(self) -> None:
        """Go on from what is stored: the state may be another one now."""
        stored = self._store.settings.get(SETTING)
        self.plan = self._start if stored is None else FaultPlan.model_validate_json(stored)
        self._faults = self.plan.named
        #: Calls of all others meet no fault.
        self.operations = frozenset[str]().union(*(operations_of(fault.on) for fault in self._faults))

    def use(self, plan: FaultPlan) -> None:
        """Take another plan; counting begins anew."""
        with self._store.transaction():
            self._store.faults.clear()
            self._store.settings.set(SETTING, plan.model_dump_json())
        self.reload()

    def on_exchange(self, call: Call) -> Fault | None:
        """The fault that fires on this call. All that it fits count it."""
        return self._first([fault for fault in self._faults if not fault.on_job], call)

    def fate_of(self, operation: str, body: CreateBody, account: Account) -> Fate:
        """What becomes of the job that this request starts."""
        faults = [fault for fault in self._faults if fault.on_job]
        if not faults:
            return USUAL
        fault = self._first(faults, read_call(self._store, operation, account, as_sent(body)))
        return USUAL if fault is None else _fate(fault)

    def report(self) -> list[FaultRecord]:
        """All faults of the plan, in its order."""
        totals = self._store.faults.totals()
        return [
            FaultRecord(name=one.name, calls=calls, fired=fired, expected=one.expected)
            for one in self._faults
            for calls, fired in [totals.get(one.name, (0, 0))]
        ]

    def unfired(self) -> list[str]:
        """The names of those that did not fire as often as expected."""
        return [one["name"] for one in self.report() if one["fired"] < one["expected"]]

    def _first(self, faults: list[Fault], call: Call) -> Fault | None:
        counted = [(fault, self._store.faults.add_call(fault.name)) for fault in faults if fault.fits(call)]
        due = next((fault for fault, ordinal in counted if fault.falls_on(ordinal)), None)
        if due is not None:
            self._store.faults.add_firing(due.name)
        return due


def _fate(fault: Fault) -> Fate:
    effect = fault.effect
    assert isinstance(effect, JobEffect)
    if isinstance(effect, FailJob):
        return Fate(failure=effect.message)
    return Fate(takes=NEVER if isinstance(effect, NeverEndJob) else timedelta(seconds=effect.seconds))
