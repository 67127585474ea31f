"""What makes the studio a test double: its clock and its faults.

What is changed while it runs is stored in the studio's file, next to the objects: it survives a `kill -9`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime

from studio.instruments.clock import ClockChoice, make_clock
from studio.instruments.fault_plan import NO_FAULTS, FaultPlan
from studio.instruments.faults import Faults
from studio.store import Store

START = "start"


@dataclass(frozen=True)
class Start:
    """How the instruments are set at the start of the studio, and after each reset."""

    clock: ClockChoice = "real"
    plan: FaultPlan = NO_FAULTS
    #: They may be changed while it runs.
    control: bool = False

    def text(self) -> str:
        """Equal texts are equal starts."""
        plan = self.plan.model_dump_json() if self.plan.faults else ""
        return json.dumps([str(self.clock), plan, self.control])


class Instruments:
    """The instruments of one studio."""

    def __init__(self, store: Store, start: Start) -> None:
        self._store = store
        self._start = start
        self._forget_other_start()
        self.clock = make_clock(start.clock, store.settings)
        self.faults = Faults(store, start.plan)

    @property
    def idle(self) -> bool:
        """Every call is answered as if there were none of them."""
        return not self.faults.operations

    def concern(self, operation: str) -> bool:
        """Whether a fault may fall on its calls."""
        return operation in self.faults.operations

    def reload(self) -> None:
        """The state is another one now: go on from what it has, or from the start."""
        self._store.settings.set(START, self._start.text())
        self.clock.reload()
        self.faults.reload()

    def now(self) -> datetime:
        return self.clock()

    def _forget_other_start(self) -> None:
        """A studio that is started in another way than before is what its options say."""
        settings, text = self._store.settings, self._start.text()
        if settings.get(START) not in (None, text):
            self._store.faults.clear()
            for name in ("clock", "faults"):
                settings.delete(name)
        settings.set(START, text)
