"""What is open at the service and no row names any more: jobs are followed to their end, doubt is a person's."""

from __future__ import annotations

import time
from datetime import timedelta

import pytest

from patternmill.service.outcomes import GAVE_UP
from patternmill.states import AttemptState, Outcome
from tests.integrity import problems

from .fake_studio import Service
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


def test_finished_run_does_not_wait_for_what_no_row_names(shop: Workshop, service: Service) -> None:
    """The next run asks again, also one that has nothing else to do."""
    service.on_follow["herons"] = [GAVE_UP] * 2
    shop.run(HERONS)
    begun = time.monotonic()
    assert shop.run(OWLS).outcome is Outcome.COMPLETED
    assert time.monotonic() - begun < 5
    assert shop.state("herons") is AttemptState.ACCEPTED
    assert shop.run(OWLS).outcome is Outcome.COMPLETED
    assert shop.state("herons") is AttemptState.SUCCEEDED
