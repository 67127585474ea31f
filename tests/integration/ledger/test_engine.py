"""The engine over each database: bought once, crash or not, and no connection left behind."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from patternmill.ledger.records import SpendingLimits
from patternmill.states import Outcome, RowStatus
from tests.unit.runs.conftest import long_day as long_day
from tests.unit.runs.fake_studio import Crash, Service, failed
from tests.unit.runs.workshop import Workshop, many


def test_crashes_and_limits_buy_everything_once(url: str, tmp_path: Path) -> None:
    """Crashes at random moments, then a limit, then the rest."""
    chance = random.Random(3)
    service = Service()
    shop = Workshop(tmp_path / "other-home", service, SecretStr(url))

    def crash(_: object) -> None:
        if chance.random() < 0.2:
            raise Crash

    service.at_create, service.at_job_end = crash, crash
    for _ in range(3):
        shop.crash(many(20), max_in_flight=4)
    service.at_create, service.at_job_end = (lambda _: None), (lambda _: None)
    limited = shop.run(many(20), max_in_flight=4, limits=SpendingLimits(items=6))
    assert limited.outcome is Outcome.BUDGET_REACHED
    assert limited.counts[RowStatus.SUCCEEDED] < 20
    assert shop.run(many(20)).outcome is Outcome.COMPLETED
    assert len(service.bought) == len(set(service.bought)) == 40
    asked = len(service.creates)
    assert shop.run(many(20)).outcome is Outcome.COMPLETED
    assert len(service.creates) == asked


@pytest.mark.usefixtures("long_day")
def test_limits_buy_whole_rows(url: str, tmp_path: Path) -> None:
    """A day's budget over two runs, with patterns that fail: no pattern without its product, to the last row."""
    service = Service()
    shop = Workshop(tmp_path / "other-home", service, SecretStr(url))
    for name in ("prompt 001", "prompt 004"):
        service.on_follow[name] = [failed()]
    terms: dict[str, Any] = {"pattern_price": 40, "product_price": 10, "max_in_flight": 25}
    first = shop.run(many(60), limits=SpendingLimits(run_amount=300, day_amount=1000), **terms)
    assert first.counts == {RowStatus.SUCCEEDED: 4, RowStatus.FAILED: 2, RowStatus.NOT_STARTED: 54}
    rest = shop.run(many(60), limits=SpendingLimits(day_amount=1000), **terms)
    assert rest.outcome is Outcome.BUDGET_REACHED
    assert "reaches to 14 of 56 rows" in (rest.ending.record.reason or "")
    # What failed is tried again after all other rows, which the budget does not reach.
    assert rest.counts == {RowStatus.SUCCEEDED: 18, RowStatus.FAILED: 2, RowStatus.NOT_STARTED: 40}
    assert shop.stranded() == 0
