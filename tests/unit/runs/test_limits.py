"""Limits are spent on whole rows, as the plan says; what another catalog has is bought again by confirmation alone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from patternmill.engine.options import RunOptions
from patternmill.errors import ConfigurationError
from patternmill.ledger.records import SpendingLimits
from patternmill.profiles import Profile
from patternmill.runs import approval
from patternmill.runs.plan_text import plan_lines
from patternmill.settings import Settings
from patternmill.states import Outcome, RowStatus, Stage
from tasks.run_page import show_ending
from tests.hostile.in_process import ANSWER_LOST, Service, failed

from .workshop import Ended, Workshop, drive, many, rows

PRICES: dict[str, Any] = {"pattern_price": 40, "product_price": 10}


def bought(service: Service) -> tuple[int, int]:
    """Return the numbers of patterns and products that were bought."""
    patterns = sum(stage is Stage.PATTERN for stage, _ in service.names.values())
    return patterns, len(service.bought) - patterns


def made(ended: Ended) -> set[str]:
    return {sku for sku, status in ended.statuses.items() if status is RowStatus.SUCCEEDED}


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
    """It says so from 80 % on."""
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
    assert made(ended) == {"S-000", "S-008", "S-009"}
    assert bought(service)[0] - before[0] <= 2


def test_cheaper_row_after_one_over_the_limit_is_bought(shop: Workshop, service: Service) -> None:
    """Rows that share a pattern cost only their product."""
    catalog = rows(("A-1", "herons"), ("B-1", "ferns"), ("A-2", "herons"), ("A-3", "herons"), ("C-1", "owls"))
    ended = shop.run(catalog, limits=SpendingLimits(run_amount=75), **PRICES)
    assert made(ended) == {"A-1", "A-2", "A-3"}
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
    assert not [row.sku for row in ended.rows.values() if row.pattern_id and not row.product_id]
    assert "the approval of plan" in reason(ended).lower()


def test_limit_of_money_needs_prices() -> None:
    """Without them it would never be reached."""
    with pytest.raises(ConfigurationError, match="no prices"):
        RunOptions.from_settings(Settings(approve_above_cost=100))


# -- a file under another name: what another catalog has is not bought once more without a confirmation

SIX = many(6)


def test_same_rows_in_another_catalog_are_refused_until_they_are_confirmed(
    shop: Workshop, service: Service
) -> None:
    """Before anything is spent; both remedies are named, and the preview agrees. Then they are other products."""
    shop.run(SIX)
    for confirm in (None, "production"):
        with pytest.raises(ConfigurationError, match="6 of 6 rows to buy") as caught:
            shop.run(SIX, name="spring-1", confirm=confirm)
    assert "--catalog spring`" in caught.value.remedy and "--confirm duplicates" in caught.value.remedy
    text = "\n".join(plan_lines(shop.previewed(SIX, name="spring-1")))
    assert "catalog 'spring' has, had or is making: they would be bought once more" in text
    with shop.ledger() as ledger:
        assert len(ledger.runs.find()) == 1
    assert len(service.creates) == 12
    shop.run(SIX, name="spring-1", confirm="production,duplicates")
    # What exists is no purchase, and needs no confirmation.
    shop.run(SIX, name="spring-1")
    shop.run(SIX)
    assert len(service.bought) == 24


def test_same_rows_imported_at_once_are_bought_once(shop: Workshop, service: Service) -> None:
    """Both plans are made before either is on record; whichever is recorded second is refused."""

    async def one(catalog: str) -> str:
        try:
            _, run = await shop.begin(SIX, name=catalog)
        except ConfigurationError as refused:
            return refused.code
        await drive(run)
        return (await run.end()).outcome

    async def main() -> list[str]:
        return sorted(await asyncio.gather(one("spring"), one("spring-1")))

    assert asyncio.run(main()) == ["Completed", "duplicates"]
    assert len(service.bought) == 12


def test_approved_plan_needs_no_confirmation(shop: Workshop) -> None:
    """The person has seen the sentence."""
    shop.run(SIX)
    terms = {"name": "spring-1", "approve_above_items": 0}
    plan = shop.previewed(SIX, **terms)
    approval.approve(shop.spec(**terms).settings, plan.proposal, "anna")
    assert shop.run(SIX, **terms).outcome is Outcome.COMPLETED


def test_what_is_no_product_of_another_catalog_is_bought(
    shop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sku or a prompt alone; nor one of another environment: a catalog is made in staging first."""
    shop.run(SIX)
    for row in (("S-000", "another prompt"), ("T-000", "prompt 000")):
        assert shop.previewed(rows(row), name="spring-1").duplicates is None
        shop.run(rows(row), name="spring-1")
    profile = Profile(url="https://p/v1", key=SecretStr("key"))
    settings = shop.settings.model_copy(update={"environment": "production"}).at(profile)
    spec = replace(shop.spec(), settings=settings)
    monkeypatch.setattr(shop, "spec", lambda: spec)
    assert shop.run(SIX).outcome is Outcome.COMPLETED


def _retired(shop: Workshop) -> str:
    shop.run(SIX)
    with shop.ledger() as ledger, ledger.transaction():
        ledger.database.execute("UPDATE catalog_rows SET retired_at = 1, gone_at = 1")
    return SIX


def _crashed(shop: Workshop) -> str:
    """Its catalog is updated by the next run; until then the ledger's attempts show what was requested."""
    shop.crash_at(6, SIX)
    return SIX


def _spelled_otherwise(shop: Workshop) -> str:
    """Case of a sku, and invisible characters of a prompt."""
    shop.run(SIX)
    return SIX.replace("S-0", "s-0", 6).replace("prompt 00", "prompt\u00a000")


def _in_doubt(shop: Workshop) -> str:
    """The run has ended, and its patterns may be made."""
    for number in range(6):
        shop.service.on_create[f"prompt {number:03}"] = [ANSWER_LOST]
    shop.run(SIX)
    return SIX


def _one_row(shop: Workshop) -> str:
    shop.run(many(1))
    return SIX


@pytest.mark.parametrize("before", [_crashed, _retired, _spelled_otherwise, _in_doubt, _one_row])
def test_what_may_exist_is_refused(shop: Workshop, before: Callable[[Workshop], str]) -> None:
    text = before(shop)
    with pytest.raises(ConfigurationError, match="bought once more"):
        shop.run(text, name="spring-1")


def test_catalog_with_most_duplicates_is_named(shop: Workshop) -> None:
    """Rows count once, in however many catalogs they are."""
    shop.run(many(5), name="few")
    shop.run(many(8), name="most", confirm="duplicates")
    duplicates = shop.previewed(many(9), name="third").duplicates
    assert duplicates is not None
    assert "8 of 9 rows" in duplicates.message and "catalog 'most'" in duplicates.message


@pytest.mark.parametrize(
    ("limit", "failed", "ended", "stops"),
    [
        (None, 30, 30, False),
        ("4", 4, 4, False),
        ("4", 5, 5, True),
        ("10%", 3, 19, False),
        ("10%", 2, 20, False),
        ("10%", 3, 20, True),
    ],
)
def test_failures_are_limited_by_a_count_or_a_share(
    limit: str | None, failed: int, ended: int, stops: bool
) -> None:
    """A share counts from the twentieth item on."""
    options = RunOptions.from_settings(Settings(), max_failures=limit)
    assert options.too_many(failed, ended) is stops
