"""What is open at the service: jobs are followed to their end, and doubt is resent in time or never."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from cli.commands.settle import waiting_sections
from cli.commands.status import Status
from cli.json_output import text_of
from patternmill.ledger.reports.requests import in_doubt, unsettled
from patternmill.runs.settlement import Resolution, Settlement, settle
from patternmill.service.outcomes import GAVE_UP, Refusal
from patternmill.states import AttemptState, Outcome, RowStatus
from tests.hostile.in_process import ANSWER_LOST, Crash, Create, Service
from tests.integrity import problems

from .workshop import Workshop, rows

HERONS, OWLS = rows(("H-1", "herons")), rows(("H-1", "owls"))
LIMIT = timedelta(hours=12)
HOUR = 3600.0
RESEND = Settlement(Resolution.RESEND, "so", "A. Weaver")


@pytest.mark.parametrize("text", [OWLS, rows(("O-1", "owls"))], ids=["edited", "another row"])
def test_job_that_no_row_names_is_followed_to_its_end(shop: Workshop, service: Service, text: str) -> None:
    service.on_follow["herons"] = [GAVE_UP]
    shop.run(HERONS)
    assert shop.state("herons") is AttemptState.ACCEPTED
    assert shop.run(text).outcome is Outcome.COMPLETED
    assert shop.state("herons") is AttemptState.SUCCEEDED
    with shop.ledger() as ledger:
        assert list(problems(ledger)) == []


def test_product_that_another_run_followed_is_the_catalogs(shop: Workshop, service: Service) -> None:
    """The run that asked for it gave up waiting, and the sheet of the one that follows its job lacks its row."""
    service.on_follow["H-1"] = [GAVE_UP]
    shop.run(HERONS)
    shop.run(rows(("O-1", "owls")))
    assert shop.products().keys() == {"H-1", "O-1"}


def test_doubt_that_no_row_names_is_listed_and_not_resent(shop: Workshop, service: Service) -> None:
    """It keeps its price; to send it again is no decision, as no run would; a row that comes back resumes it."""
    service.on_create["herons"] = [ANSWER_LOST]
    shop.run(HERONS)
    with shop.ledger() as ledger:
        assert (len(in_doubt(ledger, LIMIT)), unsettled(ledger, LIMIT)) == (1, [])
    shop.run(OWLS)
    assert [create.name for create in service.creates] == ["herons", "owls", "H-1"]
    with shop.ledger() as ledger:
        (item,) = unsettled(ledger, LIMIT)
        assert (item.attempt.state, in_doubt(ledger, LIMIT)) == (AttemptState.INTENDED, [])
        assert "no row names it any more" in text_of(waiting_sections(ledger, [item], []))
        assert "To decide: patternmill settle" in text_of(Status(ledger, shop.settings).sections())
        (why,) = asyncio.run(settle(ledger, [item], RESEND, limit=LIMIT)).values()
        assert "no run would send it again" in str(why)
    assert shop.run(HERONS).outcome is Outcome.COMPLETED
    assert [create.name for create in service.creates][3:] == ["herons", "H-1"]
    assert len(service.bought) == 4


# -- clocks that were wrong at an intent, or are at the resume


@pytest.fixture
def executed(shop: Workshop, service: Service) -> Workshop:
    """Return a workshop with a pattern that the service made, and whose answer the process died before it got."""

    def die(create: Create) -> None:
        service.execute(create)
        raise Crash

    service.at_create = die
    shop.crash(HERONS, pattern_price=40)
    service.at_create = lambda create: None
    return shop


def shift(shop: Workshop, hours: float, *tables: str) -> None:
    """Change the record to what a clock that was this many hours ahead would have written."""
    with shop.ledger() as ledger, ledger.transaction():
        for table in tables or ("attempts.intended_at", "events.at"):
            name, _, column = table.partition(".")
            ledger.database.execute(f"UPDATE {name} SET {column} = {column} + :by", {"by": hours * HOUR})


def refuse_key(service: Service) -> None:
    service.on_create["herons"] = [Refusal(None, "unauthorized", "401", stops=True)]


def assert_left_in_doubt(shop: Workshop) -> None:
    """Require that the next run does not send the request again."""
    sent = len(shop.service.creates)
    assert shop.run(HERONS).statuses == {"H-1": RowStatus.IN_DOUBT}
    assert len(shop.service.creates) == sent


@pytest.mark.parametrize("ahead", [-48, 1])
def test_request_in_doubt_is_never_withdrawn(executed: Workshop, service: Service, ahead: float) -> None:
    """Whatever the clock was: the service refuses the key, and the doubt and its money stay."""
    shift(executed, ahead)
    refuse_key(service)
    assert executed.run(HERONS, pattern_price=40).statuses == {"H-1": RowStatus.IN_DOUBT}
    assert executed.state("herons") is AttemptState.INTENDED
    with executed.ledger() as ledger:
        assert sum(ledger.purchases.spent_by_run(run.run_id).amounts[""] for run in ledger.runs.find()) == 40


def test_intent_from_the_future_waits_for_a_decision(executed: Workshop, service: Service) -> None:
    """Its age is unknown, so it is not resent."""
    shift(executed, 13)
    assert_left_in_doubt(executed)
    with executed.ledger() as ledger:
        (item,) = unsettled(ledger, LIMIT)
        asyncio.run(settle(ledger, [item], RESEND, limit=LIMIT))
    assert executed.run(HERONS).statuses == {"H-1": RowStatus.SUCCEEDED}
    assert service.bought.count("herons") == 1


def test_clock_turned_back_since_is_not_trusted(executed: Workshop, service: Service) -> None:
    """The intent looks young once the right clock has caught up with it; later records contradict."""
    shift(executed, 13)
    refuse_key(service)
    executed.run(HERONS)
    with executed.ledger() as ledger, ledger.transaction():
        ledger.record_event(ledger.runs.find()[0].run_id, "noted")
    # The right clock, some 13 hours later.
    shift(executed, -13, "attempts.intended_at")
    assert_left_in_doubt(executed)


def test_age_is_measured_by_uptime_where_the_clock_was_set(executed: Workshop) -> None:
    """Two hours by a clock that was set back, and thirteen by the uptime: a person decides."""
    shift(executed, -2)
    with executed.ledger() as ledger, ledger.transaction():
        ((uptime,),) = ledger.database.rows("SELECT uptime FROM attempts")
        boot, _, seconds = uptime.partition(" ")
        then = f"{boot} {float(seconds) - 13 * HOUR}"
        ledger.database.execute("UPDATE attempts SET uptime = :then", {"then": then})
    assert_left_in_doubt(executed)
