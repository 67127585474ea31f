"""The clock and the faults that make the studio a test double.

What is changed while it runs is stored in the studio's file, next to the objects: it survives a `kill -9`.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

from studio.instruments.fault_plan import FaultPlan
from studio.instruments.faults import COUNTS, FAULTS, Faults
from studio.store import Settings, Store

#: The names of the settings.
START = "start"
CLOCK = "clock"
#: The values of `--clock`: `real`, `manual`, or the instant at which a manual clock begins.
ClockChoice = str | datetime


class StudioClock:
    """A clock that returns the present instant in UTC when called. A manual one stands still over a restart, too."""

    def __init__(self, settings: Settings, choice: ClockChoice) -> None:
        self._settings = settings
        self._start = choice if isinstance(choice, datetime) else None
        self.is_manual = choice != "real"
        self.reload()

    def __call__(self) -> datetime:
        return self._now if self.is_manual else datetime.now(UTC)

    def reload(self) -> None:
        """Continue from what is stored, as the state may have been replaced."""
        self._now = self._start or datetime.now(UTC).replace(microsecond=0)
        stored = self._settings.get(CLOCK)
        if stored is not None:
            self._now = datetime.fromisoformat(stored)
        elif self.is_manual:
            self.advance(timedelta())

    def advance(self, time: timedelta) -> None:
        """Move a manual clock. Raises OverflowError beyond the year 9999."""
        self._now += time
        self._settings.set(CLOCK, self._now.isoformat())


def read_clock(text: str) -> ClockChoice:
    """Return the choice that this text stands for. Raises ValueError."""
    if text in ("real", "manual"):
        return text
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except ValueError:
        raise ValueError(f"{text!r} is no clock: write real, manual, or an instant in ISO 8601") from None


class Instruments:
    """The instruments of one studio."""

    def __init__(self, store: Store, clock: ClockChoice, plan: FaultPlan) -> None:
        """Set `clock` and `plan` as they are when the studio starts, and after each reset."""
        self._store = store
        #: The clock and plan that it was started with; another start forgets what the last one counted.
        self._start = json.dumps([str(clock), plan.model_dump_json()])
        self._forget_other_start()
        self.clock = StudioClock(store.settings, clock)
        self.faults = Faults(store, plan)

    def reload(self) -> None:
        """Continue from what another state has, or start anew."""
        self._store.settings.set(START, self._start)
        self.clock.reload()
        self.faults.reload()

    def _forget_other_start(self) -> None:
        """Forget clock, faults and counts of a studio that was started with other options before."""
        settings = self._store.settings
        if settings.get(START) not in (None, self._start):
            for name in (CLOCK, FAULTS, COUNTS):
                settings.delete(name)
        settings.set(START, self._start)
