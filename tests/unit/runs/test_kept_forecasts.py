"""A run's forecast: kept as it begins, and compared with what came when the run carried out its plan."""

from __future__ import annotations

from patternmill.ledger.records import SpendingLimits
from patternmill.runs.run import Run
from patternmill.states import Outcome

from .fake_studio import FakeStudioApi, Service, failed
from .workshop import Workshop, many, rows, until

PRICES = {"pattern_price": 50, "product_price": 10}


def kept(shop: Workshop) -> list[tuple[object, ...]]:
    """What was expected at the least, and what came, run by run."""
    with shop.ledger() as ledger:
        return ledger.database.rows(
            "SELECT f.jobs, f.amount_low, f.amount, f.seconds FROM forecasts f JOIN runs r ON r.run_id = f.run_id "
            "ORDER BY r.number"
        )


def test_completed_run_is_compared(shop: Workshop) -> None:
    """With what it reserved, and for how long it drove rows; the next one goes by its jobs."""
    first = shop.run(many(10), **PRICES)
    assert first.run.forecast is not None and first.run.forecast.jobs == 0
    ((jobs, low, amount, seconds),) = kept(shop)
    assert (jobs, low, amount) == (0, 600, 600)
    assert seconds == first.ending.worked > 0
    assert first.ending.calibration is not None and first.ending.calibration.money_held == 1
    again = shop.run(rows(*((f"T-{number}", f"other {number}") for number in range(4))), **PRICES)
    assert again.run.forecast is not None and again.run.forecast.jobs == 20
    assert again.ending.calibration is not None and again.ending.calibration.forecasts == 2


def test_failures_are_what_a_forecast_is_about(shop: Workshop, service: Service) -> None:
    service.on_follow["prompt 003"] = [failed(), failed()]
    ended = shop.run(many(5), **PRICES)
    assert ended.outcome is Outcome.COMPLETED_WITH_FAILURES
    assert kept(shop)[0][2] == 6 * 50 + 4 * 10


def test_stopped_run_is_not_compared(shop: Workshop, service: Service) -> None:
    """It did not do what the forecast was about; neither did the one that crashed. The next one has its own."""

    async def stop(run: Run, api: FakeStudioApi) -> None:
        await until(lambda: len(service.jobs) >= 2)
        run.stop("a person pressed Ctrl-C")

    ended = shop.run(many(10), max_in_flight=2, watch=stop, **PRICES)
    assert ended.outcome is Outcome.CANCELLED
    assert ended.ending.calibration is None
    shop.run(many(10), **PRICES)
    assert [amount is None for _, _, amount, _ in kept(shop)] == [True, False]


def test_run_within_a_limit_is_compared(shop: Workshop) -> None:
    """Its forecast was of the rows that the limit covers."""
    ended = shop.run(many(10), limits=SpendingLimits(run_amount=180), **PRICES)
    assert ended.outcome is Outcome.BUDGET_REACHED
    assert kept(shop)[0][1:3] == (180, 180)


def test_nothing_to_do_is_no_forecast(shop: Workshop) -> None:
    shop.run(many(3))
    again = shop.run(many(3))
    assert again.run.forecast is None
    assert len(kept(shop)) == 1
