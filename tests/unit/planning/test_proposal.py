"""The plan that a person decides about: its digest, what it may cost, and what an approval of N items covers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patternmill.planning.items import Scope
from patternmill.planning.plan import TO_DO, Cost, Plan, Reason, restricted
from patternmill.planning.proposal import Proposal
from patternmill.states import AttemptState, Stage

from .test_plan import FERN, HERON, HERON_MUG, REFUSED, Past, plan

PRICES = {Stage.PATTERN: 50, Stage.PRODUCT: 200}


def proposal(
    planned: Plan, prices: Mapping[Stage, int] = PRICES, attempts: int = 2, edition: str | None = None
) -> Proposal:
    return Proposal(planned, prices, attempts, edition)


def test_digest_covers_items_reasons_and_prices() -> None:
    """Stable for the same plan in any order; another for any other item, reason, scope, edition or price."""
    past = Past().left(HERON, AttemptState.SUCCEEDED)
    proposals = [
        proposal(plan(HERON, FERN)),
        proposal(plan(HERON)),
        proposal(plan(HERON, FERN, past=past)),
        proposal(plan(HERON, FERN, scope=Scope("production", "spring"))),
        proposal(plan(HERON, FERN, edition="2"), edition="2"),
        proposal(plan(HERON, FERN), {Stage.PATTERN: 51, Stage.PRODUCT: 200}),
    ]
    digests = [found.digest() for found in proposals]
    assert len(set(digests)) == len(digests)
    assert digests[0] == proposal(plan(FERN, HERON)).digest()


def test_digest_of_a_retry_is_of_one_attempt() -> None:
    """The same command, repeated after all has failed again, asks for another approval."""

    def retried(attempt: int) -> str:
        past = Past().left(HERON, AttemptState.SUCCEEDED, AttemptState.FAILED)
        past.last_attempts |= {
            key: replace(last, attempt=attempt) for key, last in past.last_attempts.items()
        }
        return proposal(plan(HERON, past=past, retry=lambda row: True)).digest()

    assert retried(2) == retried(2)
    assert retried(2) != retried(4)


def test_digest_ignores_made_and_refused_rows() -> None:
    """Rows that cost nothing may come and go."""
    past = Past().left(HERON, AttemptState.SUCCEEDED, AttemptState.SUCCEEDED)
    assert proposal(plan(HERON, FERN, REFUSED, past=past)).digest() == proposal(plan(FERN)).digest()


def test_digest_is_pinned() -> None:
    """What is approved today may be bought by a newer program tomorrow."""
    assert proposal(plan(HERON)).digest().startswith("58903795eb6b")


def test_worst_cost_has_the_attempts_left_of_what_was_begun() -> None:
    """A job that runs is paid for, and the attempt after its failure is not."""
    past = Past().left(HERON, AttemptState.ACCEPTED)
    assert proposal(plan(HERON, past=past)).cost == Cost(200, 450)


def test_expected_and_worst_cost() -> None:
    """Two patterns and three products; at worst each has two attempts."""
    found = proposal(plan(HERON, HERON_MUG, FERN))
    assert (found.items, found.cost) == (5, Cost(700, 1400))
    assert str(found) == "5 items for at least 700 minor units, at most 1,400 minor units if jobs fail"


def test_cost_is_in_the_configured_currency() -> None:
    """For a person; what an approval is bound to does not change. Without prices no money is shown."""
    found = proposal(plan(HERON, HERON_MUG, FERN))
    euros = replace(found, currency="EUR")
    assert str(euros) == "5 items for at least €7.00, at most €14.00 if jobs fail"
    assert euros.digest() == found.digest()
    assert str(replace(found, prices=dict.fromkeys(Stage, 0))) == "5 items"


@pytest.mark.parametrize(
    ("most", "items", "skus"),
    [
        (None, 5, ["H-1", "H-2", "F-1"]),
        (5, 5, ["H-1", "H-2", "F-1"]),
        (4, 3, ["H-1", "H-2"]),
        (2, 2, ["H-1"]),
        (1, 0, []),
        (0, 0, []),
    ],
)
def test_approval_covers_whole_rows(most: int | None, items: int, skus: list[str]) -> None:
    """The first ones of the file, each with its pattern: a pattern without a product would be bought for nothing."""
    found = proposal(plan(HERON, HERON_MUG, FERN))
    coverage = found.coverage(most)
    assert coverage.items == items
    assert [row.sku for row in restricted(found.plan, coverage.keys).to_do()] == skus


def test_ceiling_has_room_for_every_attempt() -> None:
    """An approved item whose job fails is retried without another approval."""
    coverage = proposal(plan(HERON, HERON_MUG, FERN)).coverage(3)
    assert (coverage.purchases, coverage.amount) == (6, 2 * (50 + 2 * 200))


def test_begun_items_are_covered_and_cost_further_attempts_only() -> None:
    """Its first attempt is paid for already."""
    past = Past().left(HERON, AttemptState.SUCCEEDED, AttemptState.ACCEPTED)
    found = proposal(plan(HERON, FERN, past=past))
    coverage = found.coverage(0)
    assert (coverage.items, coverage.purchases, coverage.amount) == (0, 1, 200)
    assert [row.sku for row in restricted(found.plan, coverage.keys).to_do()] == ["H-1"]


def test_rows_left_out_are_marked() -> None:
    """The pattern that one alone needs is left out with it."""
    planned = plan(HERON, FERN)
    cut = restricted(planned, proposal(planned).coverage(2).keys)
    assert (
        cut.reasons_of(Stage.PRODUCT) == cut.reasons_of(Stage.PATTERN) == {Reason.NEW: 1, Reason.LEFT_OUT: 1}
    )
    assert cut.purchases() == {Stage.PATTERN: 1, Stage.PRODUCT: 1}


states = st.none() | st.sampled_from(AttemptState)


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.sampled_from("abcd"), states, states), min_size=1, max_size=10), st.integers(0, 12)
)
def test_plan_never_exceeds_its_coverage(
    rows: list[tuple[str, AttemptState | None, AttemptState | None]], most: int
) -> None:
    """After any history: what is left of the plan buys at most the approved number, and every pattern has a product."""
    lines = [f"S-{n},prompt {prompt},Mug,11oz,," for n, (prompt, _, _) in enumerate(rows)]
    past = Past()
    for line, (_, pattern, product) in zip(lines, rows, strict=True):
        past.left(line, pattern, product)
    found = proposal(plan(*lines, past=past))
    cut = restricted(found.plan, found.coverage(most).keys)
    assert cut.purchases().total() <= most
    to_do = {key for key, planned in cut.of_stage(Stage.PATTERN).items() if planned.reason in TO_DO}
    assert to_do <= {row.pattern for row in cut.to_do()}
    assert list(restricted(found.plan, found.coverage().keys).to_do()) == list(found.plan.to_do())
