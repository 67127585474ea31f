"""The plan or order that a person decides about: its digest, and what it may cost."""

from __future__ import annotations

from collections.abc import Mapping

from patternmill.planning.items import Scope, checkout_item
from patternmill.planning.plan import Cost, Plan
from patternmill.planning.proposal import Proposal, order_proposal, proposal_of
from patternmill.states import AttemptState, Stage

from .test_plan import FAILED, FERN, HERON, HERON_MUG, MADE, REFUSED, Past, plan

PRICES = {Stage.PATTERN: 50, Stage.PRODUCT: 200}


def proposal(planned: Plan, prices: Mapping[Stage, int] = PRICES, currency: str | None = None) -> Proposal:
    return proposal_of(planned, prices, 2, currency)


def test_digest_covers_items_reasons_and_prices() -> None:
    """It is the same for a plan in any order, made and refused rows aside, and another one for anything else."""

    def retried(attempt: int) -> Plan:
        past = Past().left(HERON, MADE, FAILED)
        past.last_attempts = {key: last._replace(attempt=attempt) for key, last in past.last_attempts.items()}
        return plan(HERON, past=past, retry=lambda row: True)

    proposals = [
        proposal(plan(HERON, FERN)),
        proposal(plan(HERON)),
        proposal(plan(HERON, FERN, past=Past().left(HERON, MADE))),
        proposal(plan(HERON, FERN, scope=Scope("production", "spring"))),
        proposal(plan(HERON, FERN), PRICES | {Stage.PATTERN: 51}),
        proposal(plan(HERON, FERN), currency="EUR"),
        proposal(retried(2)),
        proposal(retried(4)),
    ]
    digests = [one.digest for one in proposals]
    assert len(set(digests)) == len(digests)
    assert digests[0] == proposal(plan(FERN, HERON)).digest
    past = Past().left(HERON, MADE, MADE)
    assert proposal(plan(HERON, FERN, REFUSED, past=past)).digest == proposal(plan(FERN)).digest


def test_digest_is_pinned() -> None:
    """What is approved today may be bought by a newer program tomorrow."""
    assert proposal(plan(HERON)).digest.startswith("30d47c1d137e")


def test_costs_and_requests_are_counted_with_every_attempt() -> None:
    """A job that runs is paid for and its request is sent; the attempt after its failure is not."""
    whole = proposal(plan(HERON, HERON_MUG, FERN))
    assert (whole.items, whole.cost, whole.most_purchases) == (5, Cost(700, 1400), 10)
    begun = proposal(plan(HERON, past=Past().left(HERON, AttemptState.ACCEPTED)))
    assert (begun.items, begun.cost, begun.most_purchases) == (1, Cost(200, 450), 3)


def test_costs_are_shown_in_the_configured_currency() -> None:
    """Without prices no money is shown."""
    planned = plan(HERON, HERON_MUG, FERN)
    assert str(proposal(planned)) == "5 items for at least 700 units, at most 1,400 units if jobs fail"
    euros = proposal(planned, currency="EUR")
    assert str(euros) == "5 items for at least €7.00, at most €14.00 if jobs fail"
    assert str(proposal(planned, dict.fromkeys(Stage, 0))) == "5 items"


def test_order_is_counted_in_pieces_and_its_digest_is_of_what_is_left_to_do() -> None:
    """So a request in doubt is in the digest, and counts no pieces."""
    scope = Scope("staging", "spring").of_orders
    first = checkout_item(scope, "samples", [("prd_1", 2), ("prd_2", 1)])
    whole = order_proposal(scope, "samples", [first, checkout_item(scope, "samples", [("prd_3", 4)])])
    assert (whole.items, str(whole), whole.most_purchases) == (7, "7 pieces in 2 checkouts", 2)
    assert not whole.exceeds(7, None) and whole.exceeds(6, None)
    assert whole.exceeds(None, 10**9), "what it costs is not known"
    doubt = order_proposal(scope, "samples", [], [first])
    assert doubt.items == 0 and doubt.to_do == {first.key} and not doubt.to_buy
    assert doubt.digest == order_proposal(scope, "samples", [first]).digest
    assert doubt.digest != order_proposal(scope, "samples-2", [first]).digest
