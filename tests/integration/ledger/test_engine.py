"""The engine over each database: bought once, crash or not, and no connection left behind."""

from __future__ import annotations

import random
from pathlib import Path

from pydantic import SecretStr

from patternmill.ledger.ledger import Limits
from patternmill.states import Outcome, RowStatus
from tests.unit.mill.fake_studio import Crash, Service
from tests.unit.mill.workshop import Workshop, many


def test_crashes_and_limits_on_each_database(url: str, tmp_path: Path) -> None:
    """Crashes at random moments, then a limit, then the rest: everything is bought once."""
    chance = random.Random(3)
    service = Service()
    shop = Workshop(tmp_path / "other-home", service, SecretStr(url))

    def crash(_: object) -> None:
        if chance.random() < 0.2:
            raise Crash

    service.heard, service.told = crash, crash
    for _ in range(3):
        shop.crash(many(20), max_in_flight=4)
    service.heard, service.told = (lambda _: None), (lambda _: None)
    limited = shop.run(many(20), max_in_flight=4, limits=Limits(patterns=3))
    assert limited.outcome is Outcome.BUDGET_REACHED
    assert limited.counts[RowStatus.SUCCEEDED] < 20
    assert shop.run(many(20)).outcome is Outcome.COMPLETED
    assert len(service.bought) == len(set(service.bought)) == 40
    asked = len(service.creates)
    assert shop.run(many(20)).outcome is Outcome.COMPLETED
    assert len(service.creates) == asked
