"""How jobs went in an environment, and how well the forecasts of its runs held."""

from __future__ import annotations

from dataclasses import dataclass
from math import log

from patternmill.ledger.ledger import Ledger
from patternmill.states import WRITTEN_OFF, AttemptState, Stage

#: The latest jobs of a stage that forecasts go by, and the latest forecasts that they are judged by.
MOST_JOBS = 300
MOST_FORECASTS = 50


@dataclass(frozen=True, slots=True)
class EndedJob:
    """One attempt that led to a job which ended. `seconds`: from its intent to its end, within one run."""

    attempt: int
    failed: bool
    seconds: float


@dataclass(frozen=True)
class Calibration:
    """Of the latest forecasts of an environment whose runs carried out their plans, how many held."""

    environment: str
    confidence: float
    forecasts: int
    time_held: int
    #: Those with prices.
    priced: int
    money_held: int

    def __str__(self) -> str:
        """`meant to hold in 80 % of runs; the time held in 8 of 10, the money in 9 of 10`."""
        money = f", the money in {self.money_held:,} of {self.priced:,}" if self.priced else ""
        return (
            f"meant to hold in {self.confidence * 100:.0f} % of runs; the time held in {self.time_held:,} of "
            f"{self.forecasts:,}{money}"
        )


def ended_jobs(ledger: Ledger, environment: str, stage: Stage) -> list[EndedJob]:
    """The latest jobs of a stage that ended in the run which began them: others were not watched all the time."""
    rows = ledger.database.rows(
        "SELECT a.attempt, a.state, a.ended_at - a.intended_at FROM ("
        "SELECT b.request_id, b.run_id, b.attempt, b.state, b.intended_at, b.ended_at FROM attempts b "
        "JOIN items i ON i.key = b.item_key WHERE i.environment = :environment AND i.stage = :stage "
        "AND b.state IN ('succeeded', 'failed') AND b.ended_at IS NOT NULL "
        "AND coalesce(b.error_code, '') <> :written_off "
        "ORDER BY b.ended_at DESC LIMIT :most) a WHERE EXISTS (SELECT 1 FROM events e "
        "WHERE e.request_id = a.request_id AND e.run_id = a.run_id AND e.kind = a.state)",
        {"environment": environment, "stage": stage.value, "written_off": WRITTEN_OFF, "most": MOST_JOBS},
    )
    return [
        EndedJob(attempt, state == AttemptState.FAILED, max(0.0, seconds)) for attempt, state, seconds in rows
    ]


def misses(ledger: Ledger, environment: str) -> list[float]:
    """How far the latest forecasts of time that went by jobs were off, as logarithms of came over expected."""
    rows = ledger.database.rows(
        "SELECT f.seconds, f.seconds_middle FROM forecasts f JOIN runs r ON r.run_id = f.run_id "
        "WHERE r.environment = :environment AND f.jobs > 0 AND f.seconds > 0 AND f.seconds_middle > 0 "
        "ORDER BY r.started_at DESC LIMIT :most",
        {"environment": environment, "most": MOST_FORECASTS},
    )
    return [log(came / expected) for came, expected in rows]


def calibration(ledger: Ledger, environment: str) -> Calibration | None:
    """None while there is nothing to compare."""
    rows = ledger.database.rows(
        "SELECT f.confidence, f.seconds BETWEEN f.seconds_low AND f.seconds_high, "
        "f.amount BETWEEN f.amount_low AND f.amount_high FROM forecasts f JOIN runs r ON r.run_id = f.run_id "
        "WHERE r.environment = :environment AND f.seconds IS NOT NULL ORDER BY r.started_at DESC LIMIT :most",
        {"environment": environment, "most": MOST_FORECASTS},
    )
    if not rows:
        return None
    money = [bool(held) for _, _, held in rows if held is not None]
    times = sum(bool(held) for _, held, _ in rows)
    return Calibration(environment, rows[0][0], len(rows), times, len(money), sum(money))


def calibrations(ledger: Ledger) -> list[Calibration]:
    """Of every environment that has any, by name."""
    names = ledger.database.rows(
        "SELECT DISTINCT r.environment FROM forecasts f JOIN runs r ON r.run_id = f.run_id "
        "WHERE f.seconds IS NOT NULL ORDER BY r.environment"
    )
    return [found for (name,) in names if (found := calibration(ledger, name)) is not None]
