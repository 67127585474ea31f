"""What makes the studio a test double: its clock, faults, answer shapes and limits, changed while it runs.

What is changed is stored in the studio's file, next to the objects: it survives a `kill -9`, and a snapshot has it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from studio.instruments.answer_shapes import NATIVE, Shapes, may_be_shaped
from studio.instruments.clock import ClockChoice, make_clock
from studio.instruments.fault_plan import NO_FAULTS, FaultPlan
from studio.instruments.faults import Faults
from studio.limits import Limit, Limits
from studio.store import Store

SHAPES = "shapes"
LIMITS = "limits"
START = "start"


@dataclass(frozen=True)
class Start:
    """How the instruments are set at the start of the studio, and after each reset."""

    clock: ClockChoice = "real"
    plan: FaultPlan = NO_FAULTS
    shapes: Shapes = NATIVE
    limits: Sequence[Limit] = ()
    #: They may be changed while it runs.
    control: bool = False

    def text(self) -> str:
        """Equal texts are equal starts."""
        shapes, plan = self.shapes.model_dump(), self.plan.model_dump_json() if self.plan.faults else ""
        return json.dumps([str(self.clock), plan, shapes, [vars(one) for one in self.limits], self.control])


class Instruments:
    """The instruments of one studio. `limits` is what its service goes by."""

    def __init__(self, store: Store, start: Start) -> None:
        self._store = store
        self._start = start
        self._forget_other_start()
        self.clock = make_clock(start.clock, store.settings)
        self.faults = Faults(store, self.clock, start.plan)
        self.limits = Limits()
        self._reload_own()

    @property
    def idle(self) -> bool:
        """Every call is answered as if there were none of them."""
        return not self.faults.operations and self.shapes == NATIVE

    def concern(self, operation: str) -> bool:
        """Whether a fault may fall on its calls, or its answers may have another shape."""
        return operation in self.faults.operations or may_be_shaped(self.shapes, operation)

    def reload(self) -> None:
        """The state is another one now: go on from what it has, or from the start."""
        self._store.settings.set(START, self._start.text())
        self.clock.reload()
        self.faults.reload()
        self._reload_own()

    def use_shapes(self, shapes: Shapes) -> None:
        self._store.settings.set(SHAPES, shapes.model_dump_json())
        self.shapes = shapes

    def use_limits(self, limits: Sequence[Limit]) -> None:
        """Nothing is used of them but the jobs that are running."""
        self._store.settings.set(LIMITS, json.dumps([vars(one) for one in limits]))
        self._reload_own()

    def now(self) -> datetime:
        return self.clock()

    def _reload_own(self) -> None:
        shapes, limits = self._store.settings.get(SHAPES), self._store.settings.get(LIMITS)
        self.shapes = self._start.shapes if shapes is None else Shapes.model_validate_json(shapes)
        self.held = self._start.limits if limits is None else [Limit(**one) for one in json.loads(limits)]
        self.limits.change(self.held, self._store.jobs.ends_after(self.clock()) if self.held else ())

    def _forget_other_start(self) -> None:
        """A studio that is started in another way than before is what its options say."""
        settings, text = self._store.settings, self._start.text()
        if settings.get(START) not in (None, text):
            self._store.faults.clear()
            for name in ("clock", "faults", SHAPES, LIMITS):
                settings.delete(name)
        settings.set(START, text)
