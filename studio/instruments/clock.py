"""The studio's clock: the real one, or one that stands still until it is moved by hand."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from studio.store.feedback_table import SettingTable

SETTING = "clock"


class RealClock:
    """The computer's own. Called, it is the present instant, aware of its time zone."""

    #: Whether it is moved by hand.
    manual = False

    def __call__(self) -> datetime:
        return datetime.now(UTC)

    def reload(self) -> None:
        """Go on from what is stored: the state may be another one now."""


class ManualClock:
    """Time stands still, also over a restart. `start` is where it begins in a new state; None: now."""

    manual = True

    def __init__(self, settings: SettingTable, start: datetime | None = None) -> None:
        self._settings = settings
        self._start = start
        self.reload()

    def __call__(self) -> datetime:
        return self._now

    def reload(self) -> None:
        stored = self._settings.get(SETTING)
        self._now = (
            datetime.fromisoformat(stored)
            if stored
            else self._start or datetime.now(UTC).replace(microsecond=0)
        )
        if stored is None:
            self._settings.set(SETTING, self._now.isoformat())

    def advance(self, time: timedelta) -> None:
        """Raises OverflowError beyond the year 9999."""
        self._now += time
        self._settings.set(SETTING, self._now.isoformat())


#: What `--clock` takes: `real`, `manual`, or the instant at which a manual one begins.
ClockChoice = str | datetime


def read_clock(text: str) -> ClockChoice:
    """Raises ValueError."""
    if text in ("real", "manual"):
        return text
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except ValueError:
        raise ValueError(f"{text!r} is no clock: write real, manual, or an instant in ISO 8601") from None


def make_clock(choice: ClockChoice, settings: SettingTable) -> RealClock | ManualClock:
    if choice == "real":
        return RealClock()
    return ManualClock(settings, choice if isinstance(choice, datetime) else None)
