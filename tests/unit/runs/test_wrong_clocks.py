"""Clocks that were wrong at an intent, or are at the resume: no doubt is given up, and none is sent again too late."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from patternmill.ledger.reports.requests import unsettled
from patternmill.runs.settlement import Decision, Settlement, settle
from patternmill.service import outcomes
from patternmill.states import AttemptState, RowStatus
from tests.hostile.in_process import Crash, Create, Service

from .workshop import Workshop, rows

ONE = rows(("S-1", "herons"))
HOUR = 3600.0
UNAUTHORIZED = outcomes.Refusal(None, "unauthorized", "401", stops=True)


@pytest.fixture
def executed(shop: Workshop, service: Service) -> Workshop:
    """A pattern that the service has, and whose answer the process did not live to hear."""

    def die(create: Create) -> None:
        service.execute(create)
        raise Crash

    service.at_create = die
    shop.crash(ONE, pattern_price=40)
    service.at_create = lambda create: None
    return shop


def shift(shop: Workshop, seconds: float) -> None:
    """What is on record was written by a clock that was so much ahead."""
    with shop.ledger() as ledger, ledger.transaction():
        ledger.database.execute("UPDATE attempts SET intended_at = intended_at + :by", {"by": seconds})
        ledger.database.execute("UPDATE events SET at = at + :by", {"by": seconds})


@pytest.mark.parametrize("ahead", [-48 * HOUR, HOUR])
def test_request_in_doubt_is_never_withdrawn(executed: Workshop, service: Service, ahead: float) -> None:
    """Whatever the clock was: the service refuses the key, and the doubt and its money stay."""
    shift(executed, ahead)
    service.on_create["herons"] = [UNAUTHORIZED]
    ended = executed.run(ONE, pattern_price=40)
    assert executed.state("herons") is AttemptState.INTENDED
    assert ended.statuses == {"S-1": RowStatus.IN_DOUBT}
    with executed.ledger() as ledger:
        assert sum(ledger.purchases.spent_by_run(run.run_id).amounts[""] for run in ledger.runs.find()) == 40


def test_intent_from_the_future_waits_for_a_decision(executed: Workshop, service: Service) -> None:
    """Its age is unknown, so it is not resent."""
    shift(executed, 13 * HOUR)
    sent = len(service.creates)
    assert executed.run(ONE).statuses == {"S-1": RowStatus.IN_DOUBT}
    assert len(service.creates) == sent
    with executed.ledger() as ledger:
        (item,) = unsettled(ledger, timedelta(hours=12))
        resend = Settlement(Decision.RESEND, "the clock was wrong", "A. Weaver")
        asyncio.run(settle(ledger, [item], resend, limit=timedelta(hours=12)))
    assert executed.run(ONE).statuses == {"S-1": RowStatus.SUCCEEDED}
    assert service.bought.count("herons") == 1


def test_clock_turned_back_since_is_not_trusted(executed: Workshop, service: Service) -> None:
    """The intent looks young once the right clock has caught up with it; later records contradict."""
    shift(executed, 13 * HOUR)
    service.on_create["herons"] = [UNAUTHORIZED]
    executed.run(ONE)
    with executed.ledger() as ledger, ledger.transaction():
        ledger.record_event(ledger.runs.find()[0].run_id, "noted")
        # The right clock, some 13 hours later.
        ledger.database.execute("UPDATE attempts SET intended_at = intended_at - :by", {"by": 13 * HOUR})
    sent = len(service.creates)
    assert executed.run(ONE).statuses == {"S-1": RowStatus.IN_DOUBT}
    assert len(service.creates) == sent


def test_age_is_measured_by_uptime_where_the_clock_was_set(executed: Workshop, service: Service) -> None:
    """Two hours by a clock that was set back, and thirteen by the uptime: a person decides."""
    shift(executed, -2 * HOUR)
    with executed.ledger() as ledger, ledger.transaction():
        ((uptime,),) = ledger.database.rows("SELECT uptime FROM attempts")
        boot, _, seconds = uptime.partition(" ")
        then = f"{boot} {float(seconds) - 13 * HOUR}"
        ledger.database.execute("UPDATE attempts SET uptime = :then", {"then": then})
    sent = len(service.creates)
    assert executed.run(ONE).statuses == {"S-1": RowStatus.IN_DOUBT}
    assert len(service.creates) == sent
