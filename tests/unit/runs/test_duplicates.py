"""A file under another name: what another catalog has is not bought once more without a confirmation."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest
from pydantic import SecretStr

from patternmill.errors import ConfigurationError
from patternmill.profiles import Profile
from patternmill.runs import approval
from patternmill.runs.plan_text import plan_lines
from patternmill.states import Outcome
from tests.hostile.in_process import ANSWER_LOST, Service

from .workshop import Workshop, drive, many, rows

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
    assert "bought once more" in "\n".join(plan_lines(plan))
    approval.approve(shop.spec(**terms).settings, plan.proposal, "anna")
    assert shop.run(SIX, **terms).outcome is Outcome.COMPLETED


@pytest.mark.parametrize("row", [("S-000", "another prompt"), ("T-000", "prompt 000")])
def test_sku_or_prompt_alone_is_no_product(shop: Workshop, row: tuple[str, str]) -> None:
    shop.run(SIX)
    assert shop.previewed(rows(row), name="spring-1").duplicates is None
    shop.run(rows(row), name="spring-1")


def test_duplicates_in_another_environment_are_bought(
    shop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A catalog is made in staging first, then in production."""
    shop.run(SIX)
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
