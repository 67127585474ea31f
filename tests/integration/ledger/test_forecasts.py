"""Forecasts in the ledger: kept before a run, compared with what came, and how well they held, on each database."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from math import log

import pytest

from patternmill.identifiers import RunId
from patternmill.ledger.ledger import Ledger
from patternmill.ledger.records import KeptForecast
from patternmill.ledger.reports.track_record import calibration, calibrations, ended_jobs, misses
from patternmill.states import AttemptState, Stage

from .conftest import Clock
from .samples import RECORD, RUN, begin

FORECAST = KeptForecast(0.8, 40, (60.0, 80.0, 120.0), (500, 520, 600))


def run(ledger: Ledger, number: int, forecast: KeptForecast, *, environment: str = "staging") -> RunId:
    started = RECORD.started_at + timedelta(hours=number)
    run_id = RunId(f"run-{environment}-{number}")
    record = replace(RECORD, run_id=run_id, environment=environment, started_at=started)
    with ledger.transaction():
        ledger.add_run(record, b"")
        ledger.keep_forecast(record.run_id, forecast)
    return record.run_id


def score(ledger: Ledger, run_id: RunId, seconds: float, amount: int) -> None:
    with ledger.transaction():
        ledger.score_forecast(run_id, seconds, amount)


def test_forecasts_are_compared_with_what_came(ledger: Ledger) -> None:
    """The bounds themselves hold. Amounts of 64 bits; a run that was not carried out does not count."""
    large = replace(FORECAST, amount=(2**40, 2**40, 2**41))
    score(ledger, run(ledger, 1, FORECAST), 60.0, 600)
    score(ledger, run(ledger, 2, FORECAST), 121.0, 500)
    score(ledger, run(ledger, 3, large), 90.0, 2**41)
    run(ledger, 4, FORECAST)
    found = calibration(ledger, "staging")
    assert found is not None
    assert (found.forecasts, found.time_held, found.priced, found.money_held) == (3, 2, 3, 3)
    assert str(found) == ("meant to hold in 80 % of runs; the time held in 2 of 3, the money in 3 of 3")


def test_runs_without_prices_have_no_money_to_hold(ledger: Ledger) -> None:
    score(ledger, run(ledger, 1, replace(FORECAST, amount=None)), 80.0, 0)
    assert str(calibration(ledger, "staging")).endswith("the time held in 1 of 1")


def test_environments_are_judged_apart(ledger: Ledger) -> None:
    score(ledger, run(ledger, 1, FORECAST), 80.0, 500)
    score(ledger, run(ledger, 1, FORECAST, environment="production"), 800.0, 500)
    assert [(found.environment, found.time_held) for found in calibrations(ledger)] == [
        ("production", 0),
        ("staging", 1),
    ]
    assert calibration(ledger, "elsewhere") is None


def test_assumptions_that_missed_teach_nothing(ledger: Ledger) -> None:
    """Only forecasts that went by jobs say how far such forecasts are off."""
    score(ledger, run(ledger, 1, replace(FORECAST, jobs=0)), 8000.0, 500)
    score(ledger, run(ledger, 2, FORECAST), 160.0, 500)
    assert misses(ledger, "staging") == pytest.approx([log(2.0)])


def test_jobs_that_ended_in_their_own_run_are_known(ledger: Ledger, clock: Clock) -> None:
    """Also failed ones; not those that another run went on with."""
    for name, ended_by, state in (
        ("a", "run-1", AttemptState.SUCCEEDED),
        ("b", "run-1", AttemptState.FAILED),
        ("c", "run-2", AttemptState.SUCCEEDED),
    ):
        begun = begin(ledger, name, price=10)
        with ledger.transaction():
            ledger.change(RUN, begun.request_id, AttemptState.ACCEPTED, job_id=f"job-{name}")
        clock.now += 30
        learned = {"result_id": f"made-{name}"} if state is AttemptState.SUCCEEDED else {"error_code": "x"}
        with ledger.transaction():
            ledger.change(RunId(ended_by), begun.request_id, state, **learned)
    jobs = ended_jobs(ledger, "staging", Stage.PATTERN)
    assert sorted((job.attempt, job.failed, round(job.seconds)) for job in jobs) == [
        (1, False, 30),
        (1, True, 30),
    ]
