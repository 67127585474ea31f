"""What runs were expected to take and to spend, and what came; how well that held is read in `track_record`."""

from __future__ import annotations

from patternmill.identifiers import RunId
from patternmill.ledger.database import Tables
from patternmill.ledger.records import KeptForecast


class ForecastTable(Tables):
    """One forecast a run, from before its first purchase."""

    def keep_forecast(self, run_id: RunId, forecast: KeptForecast) -> None:
        low, middle, high = forecast.seconds
        amounts = forecast.amount or (None, None, None)
        self._insert(
            "forecasts",
            run_id=run_id,
            confidence=forecast.confidence,
            jobs=forecast.jobs,
            seconds_low=low,
            seconds_middle=middle,
            seconds_high=high,
            **dict(zip(("amount_low", "amount_middle", "amount_high"), amounts, strict=True)),
        )

    def score_forecast(self, run_id: RunId, seconds: float, amount: int) -> None:
        """What came, of a run that carried out its plan. Nothing, where it has no forecast."""
        self._update("forecasts", {"run_id": run_id}, seconds=seconds, amount=amount)
