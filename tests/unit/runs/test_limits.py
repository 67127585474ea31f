"""Limits are spent on whole rows: each bought pattern gets its product, and the plan says how many rows that covers."""

from __future__ import annotations

from typing import Any

import pytest

from patternmill.catalog.row_checks import check_rows
from patternmill.ledger.records import SpendingLimits
from patternmill.runs import approval
from patternmill.runs.preview import Preview, preview
from patternmill.states import Outcome, RowStatus, Stage

from .fake_studio import Crash, Create, Service, failed
from .workshop import Ended, Workshop, many, rows

PRICES: dict[str, Any] = {"pattern_price": 40, "product_price": 10}


def bought(service: Service) -> tuple[int, int]:
    """Patterns and products."""
    patterns = sum(
        stage is Stage.PATTERN for stage, _ in map(service.names.__getitem__, service.jobs.values())
    )
    return patterns, len(service.bought) - patterns


def reason(ended: Ended) -> str:
    return ended.ending.record.reason or ""


def seen(shop: Workshop, catalog: str, **options: Any) -> Preview:
    checked = check_rows(shop.file(catalog), shop.service.offer, prompt_limit=100)
    return preview(shop.spec(**options), checked)


@pytest.mark.parametrize(
    ("limits", "whole", "message"),
    [
        (SpendingLimits(run_amount=1000), 20, "The budget of 1,000 units reaches to 20 of 60 rows"),
        (SpendingLimits(run_amount=1049), 20, "The budget of 1,049 units reaches to 20 of 60 rows"),
        (SpendingLimits(day_amount=1000), 20, "reaches to 20 of 60 rows"),
        (SpendingLimits(items=15), 7, "The limit of 15 items reaches to 7 of 60 rows"),
        (SpendingLimits(items=18, run_amount=300), 6, "The budget of 300 units reaches to 6 of 60 rows"),
        (SpendingLimits(run_amount=0), 0, "The budget of 0 units reaches to 0 of 60 rows"),
        (SpendingLimits(run_amount=3000), 60, ""),
    ],
)
def test_limit_buys_whole_rows(
    shop: Workshop, service: Service, limits: SpendingLimits, whole: int, message: str
) -> None:
    """The first rows of the file, each with pattern and product; the plan shows how many, and the run agrees."""
    before = seen(shop, many(60), limits=limits, **PRICES)
    ended = shop.run(many(60), max_in_flight=25, limits=limits, **PRICES)
    assert bought(service) == (whole, whole)
    assert ended.counts[RowStatus.SUCCEEDED] == whole
    assert all(ended.statuses[f"S-{number:03}"] is RowStatus.SUCCEEDED for number in range(whole))
    assert message in str(before.limited or "") and message in reason(ended)
    assert ended.outcome is (Outcome.BUDGET_REACHED if message else Outcome.COMPLETED)
    assert shop.run(many(60), **PRICES).outcome is Outcome.COMPLETED
    assert len(service.bought) == len(set(service.bought)) == 120


@pytest.mark.usefixtures("long_day")
def test_rest_of_the_daily_budget_buys_whole_rows(shop: Workshop, service: Service) -> None:
    """Each run of a day begins with what the ones before it left."""
    day = SpendingLimits(day_amount=500)
    assert shop.run(many(4), limits=day, **PRICES).outcome is Outcome.COMPLETED
    ended = shop.run(many(60), max_in_flight=25, limits=day, **PRICES)
    assert bought(service) == (10, 10)
    assert "of which 200 units is spent or reserved, reaches to 6 of 56 rows" in reason(ended)


def test_made_and_begun_patterns_get_their_products_first(shop: Workshop, service: Service) -> None:
    """Wherever they are in the file; what is begun costs nothing more."""
    shop.run(rows(("Z-9", "prompt 009")), limits=SpendingLimits(items=2), **PRICES)
    received: list[Create] = []

    def crash(create: Create) -> None:
        received.append(create)
        raise Crash

    service.at_create = crash
    shop.crash(rows(("S-008", "prompt 008")), **PRICES)
    service.at_create = lambda create: None
    before = bought(service)
    ended = shop.run(many(10), max_in_flight=4, limits=SpendingLimits(run_amount=75), **PRICES)
    made = {sku for sku, status in ended.statuses.items() if status is RowStatus.SUCCEEDED}
    assert made == {"S-000", "S-008", "S-009"}
    assert bought(service)[0] - before[0] <= 2


def test_cheaper_row_after_one_over_the_limit_is_bought(shop: Workshop, service: Service) -> None:
    """Rows that share a pattern cost only their product."""
    catalog = rows(("A-1", "herons"), ("B-1", "ferns"), ("A-2", "herons"), ("A-3", "herons"), ("C-1", "owls"))
    ended = shop.run(catalog, limits=SpendingLimits(run_amount=75), **PRICES)
    assert {sku for sku, status in ended.statuses.items() if status is RowStatus.SUCCEEDED} == {
        "A-1",
        "A-2",
        "A-3",
    }
    assert "reaches to 3 of 5 rows" in reason(ended)
    assert bought(service) == (1, 3)


def test_second_attempt_leaves_the_money_of_products(shop: Workshop, service: Service) -> None:
    """A pattern that fails leaves its own product's money over, and no other row without its product."""
    service.on_follow["prompt 003"] = [failed()]
    ended = shop.run(many(60), max_in_flight=25, limits=SpendingLimits(run_amount=1000), **PRICES)
    assert ended.counts[RowStatus.SUCCEEDED] == 19
    assert ended.statuses["S-003"] is RowStatus.FAILED
    assert ended.outcome is Outcome.BUDGET_REACHED
    assert bought(service) == (20, 19)
    assert shop.stranded() == 0


def test_money_of_failed_rows_buys_second_attempts(shop: Workshop, service: Service) -> None:
    """Every other pattern fails once: what products of lost rows would have cost buys other rows' second attempts."""
    for number in range(0, 60, 2):
        service.on_follow[f"prompt {number:03}"] = [failed()]
    ended = shop.run(many(60), max_in_flight=25, limits=SpendingLimits(run_amount=1000), **PRICES)
    patterns, products = bought(service)
    assert 40 * patterns + 10 * products <= 1000
    assert products == patterns - 10 >= 11
    assert shop.stranded() == 0
    assert ended.counts[RowStatus.SUCCEEDED] == products


def test_attempt_over_the_limit_ends_as_budget_reached(shop: Workshop, service: Service) -> None:
    """The plan fits to the last unit, and one pattern fails: raising the limit is the remedy."""
    service.on_follow["prompt 001"] = [failed()]
    ended = shop.run(many(3), limits=SpendingLimits(run_amount=150), **PRICES)
    assert ended.outcome is Outcome.BUDGET_REACHED
    assert "--budget" in reason(ended)
    assert ended.counts == {RowStatus.SUCCEEDED: 2, RowStatus.FAILED: 1}
    assert shop.run(many(3), **PRICES).outcome is Outcome.COMPLETED


def test_limit_and_approval_both_apply(shop: Workshop, service: Service) -> None:
    """Each is asked of what is left after the other."""
    terms: dict[str, Any] = {**PRICES, "approve_above_items": 3}
    its = shop.spec(**terms)
    checked = check_rows(shop.file(many(10)), service.offer, prompt_limit=100)
    approval.approve(its.settings, preview(its, checked).proposal, "anna")
    ended = shop.run(many(10), limits=SpendingLimits(run_amount=120), **terms)
    assert bought(service) == (2, 2)
    assert "reaches to 2 of 10 rows" in reason(ended)
    ended = shop.run(many(10), limits=SpendingLimits(run_amount=5000), **terms)
    assert bought(service) == (10, 10)


def test_rest_of_an_approval_buys_whole_rows(shop: Workshop, service: Service) -> None:
    """What further attempts have drawn from it is gone for new patterns."""
    terms: dict[str, Any] = {**PRICES, "approve_above_items": 3, "attempts": 1}
    its = shop.spec(**terms)
    checked = check_rows(shop.file(many(6)), service.offer, prompt_limit=100)
    approval.approve(its.settings, preview(its, checked).proposal, "anna")
    service.on_follow["prompt 000"] = [failed()]
    shop.run(many(1), **terms)
    shop.run(many(1), retry=lambda row: True, **terms)
    ended = shop.run(many(6), max_in_flight=6, **terms)
    assert bought(service) == (6, 5)
    assert shop.stranded() == 0
    assert "the approval of plan" in reason(ended).lower()
