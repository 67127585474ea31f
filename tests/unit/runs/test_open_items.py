"""What is open at the service and no row names any more: jobs are followed to their end, doubt is a person's."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from cli.commands.settle import waiting_sections
from cli.commands.status import Status
from cli.json_output import text_of
from patternmill.ledger.reports.requests import in_doubt, unsettled
from patternmill.runs.settlement import Decision, Settlement, settle
from patternmill.service.outcomes import GAVE_UP
from patternmill.states import AttemptState, Outcome
from tests.hostile.in_process import ANSWER_LOST, Service
from tests.integrity import problems

from .workshop import Workshop, rows

HERONS, OWLS = rows(("H-1", "herons")), rows(("H-1", "owls"))
LIMIT = timedelta(hours=12)


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
    with shop.ledger() as ledger:
        assert {row.sku for row in ledger.catalogs.rows("staging", "spring")} == {"H-1", "O-1"}


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
        resend = Settlement(Decision.RESEND, "so", "A. Weaver")
        (why,) = asyncio.run(settle(ledger, [item], resend, limit=LIMIT)).values()
        assert "no run would send it again" in str(why)
    assert shop.run(HERONS).outcome is Outcome.COMPLETED
    assert [create.name for create in service.creates][3:] == ["herons", "H-1"]
    assert len(service.bought) == 4
