"""Limits are spent on whole rows: each bought pattern gets its product, and the plan says how many rows that covers."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from patternmill.ledger.records import SpendingLimits
from patternmill.runs import approval
from patternmill.states import Outcome, RowStatus, Stage
from tasks.run_page import show_ending
from tests.hostile.in_process import Service, failed

from .workshop import Ended, Workshop, drive, many, rows

PRICES: dict[str, Any] = {"pattern_price": 40, "product_price": 10}


def bought(service: Service) -> tuple[int, int]:
    """Patterns and products."""
    patterns = sum(stage is Stage.PATTERN for stage, _ in service.names.values())
    return patterns, len(service.bought) - patterns


def reason(ended: Ended) -> str:
    return ended.ending.record.reason or ""


@pytest.mark.parametrize(
    ("limits", "whole", "message"),
    [
        (SpendingLimits(run_amount=1049), 20, "The budget of 1,049 units reaches to 20 of 60 rows"),
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
    before = shop.previewed(many(60), limits=limits, **PRICES)
    ended = shop.run(many(60), max_in_flight=25, limits=limits, **PRICES)
    assert bought(service) == (whole, whole)
    assert ended.counts[RowStatus.SUCCEEDED] == whole
    assert all(ended.statuses[f"S-{number:03}"] is RowStatus.SUCCEEDED for number in range(whole))
    assert message in str(before.limited or "") and message in reason(ended)
    assert ended.outcome is (Outcome.BUDGET_REACHED if message else Outcome.COMPLETED)
    assert shop.run(many(60), **PRICES).outcome is Outcome.COMPLETED
    assert len(service.bought) == len(set(service.bought)) == 120


@pytest.mark.usefixtures("long_day")
@pytest.mark.parametrize(("budget", "is_told"), [(500, True), (501, False)])
def test_page_says_that_most_of_a_days_budget_is_spent(
    shop: Workshop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, budget: int, is_told: bool
) -> None:
    """From 80 % on."""
    pages: list[str] = []

    async def show(key: str, text: str, title: str) -> None:
        pages.append(text)

    async def main() -> None:
        limits = SpendingLimits(day_amount=budget)
        _, run = await shop.begin(many(8), limits=limits, **PRICES)
        await drive(run)
        results = await run.finish()
        await show_ending(run, run.ended, results)

    monkeypatch.setattr("tasks.run_page.show_text", show)
    monkeypatch.chdir(tmp_path)
    asyncio.run(main())
    (page,) = pages
    note = "> 80 % of today's budget of 500 units is spent or reserved."
    assert (note in page) == is_told and ("today's budget" in page) == is_told


def test_made_and_begun_patterns_get_their_products_first(shop: Workshop, service: Service) -> None:
    """Wherever they are in the file; what is begun costs nothing more."""
    shop.run(rows(("Z-9", "prompt 009")), limits=SpendingLimits(items=2), **PRICES)
    shop.crash_at(1, rows(("S-008", "prompt 008")), **PRICES)
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


def test_limit_and_approval_both_apply(shop: Workshop, service: Service) -> None:
    """Each is asked of what is left after the other."""
    terms: dict[str, Any] = {**PRICES, "approve_above_items": 3}
    approval.approve(shop.settings, shop.previewed(many(10), **terms).proposal, "anna")
    ended = shop.run(many(10), limits=SpendingLimits(run_amount=120), **terms)
    assert bought(service) == (2, 2)
    assert "reaches to 2 of 10 rows" in reason(ended)
    ended = shop.run(many(10), limits=SpendingLimits(run_amount=5000), **terms)
    assert bought(service) == (10, 10)


def test_rest_of_an_approval_buys_whole_rows(shop: Workshop, service: Service) -> None:
    """What further attempts have drawn from it is gone for new patterns."""
    terms: dict[str, Any] = {**PRICES, "approve_above_items": 3, "attempts": 1}
    approval.approve(shop.settings, shop.previewed(many(6), **terms).proposal, "anna")
    service.on_follow["prompt 000"] = [failed()]
    shop.run(many(1), **terms)
    shop.run(many(1), retries=True, **terms)
    ended = shop.run(many(6), max_in_flight=6, **terms)
    assert bought(service) == (6, 5)
    assert shop.stranded() == 0
    assert "the approval of plan" in reason(ended).lower()
