"""The plan that a person decides about: its digest, and what it may cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from patternmill.planning.items import Scope
from patternmill.planning.plan import Cost, Plan
from patternmill.planning.proposal import Proposal, proposal_of
from patternmill.states import AttemptState, Stage

from .test_plan import FERN, HERON, HERON_MUG, REFUSED, Past, plan

PRICES = {Stage.PATTERN: 50, Stage.PRODUCT: 200}


def proposal(
    planned: Plan,
    prices: Mapping[Stage, int] = PRICES,
    currency: str | None = None,
) -> Proposal:
    return proposal_of(planned, prices, 2, currency)


def test_digest_covers_items_reasons_and_prices() -> None:
    """Stable for the same plan in any order; another for any other item, reason, scope or price."""
    past = Past().left(HERON, AttemptState.SUCCEEDED)
    proposals = [
        proposal(plan(HERON, FERN)),
        proposal(plan(HERON)),
        proposal(plan(HERON, FERN, past=past)),
        proposal(plan(HERON, FERN, scope=Scope("production", "spring"))),
        proposal(plan(HERON, FERN), {Stage.PATTERN: 51, Stage.PRODUCT: 200}),
        proposal(plan(HERON, FERN), currency="EUR"),
    ]
    digests = [found.digest for found in proposals]
    assert len(set(digests)) == len(digests)
    assert digests[0] == proposal(plan(FERN, HERON)).digest


def test_digest_of_a_retry_is_of_one_attempt() -> None:
    """The same command, repeated after all has failed again, asks for another approval."""

    def retried(attempt: int) -> str:
        past = Past().left(HERON, AttemptState.SUCCEEDED, AttemptState.FAILED)
        past.last_attempts |= {
            key: replace(last, attempt=attempt) for key, last in past.last_attempts.items()
        }
        return proposal(plan(HERON, past=past, retry=lambda row: True)).digest

    assert retried(2) == retried(2)
    assert retried(2) != retried(4)


def test_digest_ignores_made_and_refused_rows() -> None:
    """Rows that cost nothing may come and go."""
    past = Past().left(HERON, AttemptState.SUCCEEDED, AttemptState.SUCCEEDED)
    assert proposal(plan(HERON, FERN, REFUSED, past=past)).digest == proposal(plan(FERN)).digest


def test_digest_is_pinned() -> None:
    """What is approved today may be bought by a newer program tomorrow."""
    assert proposal(plan(HERON)).digest.startswith("098799b1ba16")


def test_worst_cost_has_the_attempts_left_of_what_was_begun() -> None:
    """A job that runs is paid for, and the attempt after its failure is not."""
    past = Past().left(HERON, AttemptState.ACCEPTED)
    assert proposal(plan(HERON, past=past)).cost == Cost(200, 450)


def test_expected_and_worst_cost() -> None:
    """Two patterns and three products; at worst each has two attempts."""
    found = proposal(plan(HERON, HERON_MUG, FERN))
    assert (found.items, found.cost) == (5, Cost(700, 1400))
    assert str(found) == "5 items for at least 700 units, at most 1,400 units if jobs fail"


def test_cost_is_in_the_configured_currency() -> None:
    """Without prices no money is shown."""
    planned = plan(HERON, HERON_MUG, FERN)
    euros = proposal(planned, currency="EUR")
    assert str(euros) == "5 items for at least €7.00, at most €14.00 if jobs fail"
    assert str(proposal(planned, dict.fromkeys(Stage, 0))) == "5 items"


def test_every_attempt_is_a_request() -> None:
    """Of what was begun before, the first is sent already."""
    assert proposal(plan(HERON, HERON_MUG, FERN)).most_purchases == 10
    past = Past().left(HERON, AttemptState.SUCCEEDED, AttemptState.ACCEPTED)
    assert proposal(plan(HERON, FERN, past=past)).most_purchases == 4 + 1
