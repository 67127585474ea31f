"""Refinements and uploads: nothing promises that these may be sent again, so one that may have been made is held."""

from __future__ import annotations

from collections import Counter

import pytest

from patternmill.runs.plan_text import plan_lines
from tests.hostile.in_process import ANSWER_LOST, Crash, Create, Service
from tests.integrity import problems

from .workshop import Workshop

RECOLOR, UPLOAD = "refine/recolor", "references/create"
PRICES = {"REFERENCE": 1, "PATTERN": 10, "REFINEMENT": 5, "PRODUCT": 3}
REFINED = {f"R-{number}": {"prompt": f"ink {number}", "refine:recolor": "#abc"} for number in range(3)}
GUIDED = {f"R-{number}": {"prompt": f"ink {number}", "reference": "guide.png"} for number in range(2)}


@pytest.fixture(autouse=True)
def prices(shop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    (shop.folder / "guide.png").write_bytes(b"\x89PNG\r\n\x1a\n guide")
    for stage, price in PRICES.items():
        monkeypatch.setenv(f"PATTERNMILL_{stage}_PRICE", str(price))


def lose(service: Service, *names: str) -> None:
    """Have each first answer of these lost from now on, though they are executed."""
    for name in names:
        service.on_create[name] = [ANSWER_LOST]


def sent(service: Service, operation: str) -> Counter[str]:
    """Count the requests of an operation that arrived, by their ID."""
    return Counter(create.request_id for create in service.creates if create.call.operation == operation)


def counts(shop: Workshop) -> Counter[str]:
    with shop.ledger() as ledger:
        assert list(problems(ledger)) == []
    return Counter(shop.rows.values())


def booked(shop: Workshop) -> int:
    with shop.ledger() as ledger:
        return sum(ledger.purchases.spent_by_run(run.run_id).amounts[""] for run in ledger.runs.find())


def test_outage_holds_one_and_buys_it_once(shop: Workshop, service: Service) -> None:
    """The others are left for the next run, which holds one more while the outage lasts; none is ever sent twice."""
    plan = shop.previewed(shop.write(REFINED).read_text("utf-8-sig"))
    assert "3 refinements: each is sent once" in "\n".join(plan_lines(plan))
    lose(service, *(f"{RECOLOR} on pat_job-{number}" for number in range(1, 4)))
    shop.load_source({}, budget="54")
    assert counts(shop) == {"held": 1, "cancelled": 2}
    assert (len(sent(service, RECOLOR)), booked(shop)) == (1, 3 * 10 + 5)
    shop.load_source({})
    assert counts(shop) == {"held": 2, "cancelled": 1}
    service.on_create.clear()
    shop.load_source({})
    assert counts(shop) == {"held": 2, "succeeded": 1}
    assert [*sent(service, RECOLOR).values()] == [1, 1, 1]
    assert booked(shop) == 3 * 10 + 3 * 5 + 3


def test_kill_in_flight_holds_one(shop: Workshop, service: Service) -> None:
    """Of many that are due at once, one is in flight; the next run holds it and makes the others."""

    def die(create: Create) -> None:
        if create.call.operation == RECOLOR:
            service.execute(create)
            raise Crash

    service.at_create = die
    shop.load_source(REFINED)
    assert shop.is_dead
    service.at_create = lambda create: None
    shop.load_source({})
    assert counts(shop) == {"held": 1, "succeeded": 2}
    assert [*sent(service, RECOLOR).values()] == [1, 1, 1]


def test_upload_is_held_and_its_patterns_are_not_begun(shop: Workshop, service: Service) -> None:
    lose(service, UPLOAD)
    for _ in range(2):
        shop.load_source(GUIDED)
        assert counts(shop) == {"held": 2}
    assert (len(service.creates), [*sent(service, UPLOAD).values()]) == (1, [1])
