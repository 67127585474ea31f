"""A file under another name: what another catalog has is not bought once more without a confirmation."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from pydantic import SecretStr

from patternmill.catalog.row_checks import check_rows
from patternmill.errors import ConfigurationError
from patternmill.profiles import Profile
from patternmill.runs import approval
from patternmill.runs.plan_text import plan_lines
from patternmill.runs.preview import Preview, preview
from patternmill.runs.run import Run, RunEnding
from patternmill.runs.spec import RunSpec

from .fake_studio import ANSWER_LOST, Crash, Create, FakeStudioApi, Service
from .workshop import Workshop, drive, many, rows

SIX = many(6)


def spec(shop: Workshop, catalog: str = "spring-1", confirm: str | None = None, **options: Any) -> RunSpec:
    its = shop.spec(**options)
    return replace(its, catalog=catalog, settings=its.settings.model_copy(update={"confirm": confirm}))


def run(shop: Workshop, its: RunSpec, text: str) -> RunEnding:
    async def main() -> RunEnding:
        api: Any = FakeStudioApi(shop.service)
        checked = check_rows(shop.file(text), shop.service.offer, prompt_limit=100)
        begun = await Run.begin(its, checked, api)
        await drive(begun)
        return await begun.end()

    return asyncio.run(asyncio.wait_for(main(), 30))


def previewed(shop: Workshop, its: RunSpec, text: str) -> tuple[Preview, str]:
    checked = check_rows(shop.file(text), shop.service.offer, prompt_limit=100)
    found = preview(its, checked)
    return found, "\n".join(plan_lines(found))


def test_same_rows_in_another_catalog_are_refused(shop: Workshop, service: Service) -> None:
    """Before anything is spent; both remedies are named, and the preview agrees."""
    shop.run(SIX)
    before = len(service.creates)
    with pytest.raises(ConfigurationError, match="6 of 6 rows to buy") as caught:
        run(shop, spec(shop), SIX)
    assert "--catalog spring`" in caught.value.remedy
    assert "--confirm duplicates" in caught.value.remedy
    assert (
        "catalog 'spring' has, had or is making: they would be bought once more"
        in previewed(shop, spec(shop), SIX)[1]
    )
    with shop.ledger() as ledger:
        assert len(ledger.runs.find()) == 1
    assert len(service.creates) == before


def test_same_rows_imported_at_once_are_bought_once(shop: Workshop, service: Service) -> None:
    """Both plans are made before either is on record; whichever is recorded second is refused."""

    async def main() -> list[object]:
        async def one(catalog: str) -> object:
            checked = check_rows(shop.file(SIX), service.offer, prompt_limit=100)
            api: Any = FakeStudioApi(service)
            try:
                begun = await Run.begin(spec(shop, catalog), checked, api)
            except ConfigurationError as refused:
                return refused.code
            await drive(begun)
            return (await begun.end()).outcome

        return list(await asyncio.gather(one("spring"), one("spring-1")))

    assert sorted(map(str, asyncio.run(main()))) == ["Completed", "duplicates"]
    assert len(service.bought) == 12


def test_confirmed_duplicates_are_bought(shop: Workshop, service: Service) -> None:
    """In another catalog they are other products; `production` is another confirmation."""
    shop.run(SIX)
    with pytest.raises(ConfigurationError, match="bought once more"):
        run(shop, spec(shop, confirm="production"), SIX)
    run(shop, spec(shop, confirm="production,duplicates"), SIX)
    assert len(service.bought) == 24
    # What exists is no purchase, and needs no confirmation.
    run(shop, spec(shop), SIX)
    run(shop, shop.spec(), SIX)
    assert len(service.bought) == 24


def test_approved_plan_needs_no_confirmation(shop: Workshop) -> None:
    """The person has seen the sentence."""
    shop.run(SIX)
    its = spec(shop, approve_above_items=0)
    found, text = previewed(shop, its, SIX)
    assert "bought once more" in text
    assert text.endswith(f"Digest of this plan: {found.proposal.digest[:12]}")
    approval.approve(its.settings, found.proposal, "anna")
    assert run(shop, its, SIX).outcome == "Completed"


def test_one_row_is_asked_about_too(shop: Workshop) -> None:
    shop.run(many(1))
    with pytest.raises(ConfigurationError, match="1 of 6 rows to buy"):
        run(shop, spec(shop), SIX)


@pytest.mark.parametrize("row", [("S-000", "another prompt"), ("T-000", "prompt 000")])
def test_sku_or_prompt_alone_is_no_product(shop: Workshop, row: tuple[str, str]) -> None:
    shop.run(SIX)
    assert previewed(shop, spec(shop), rows(row))[0].duplicates is None
    run(shop, spec(shop), rows(row))


def test_duplicates_in_another_environment_are_bought(shop: Workshop) -> None:
    """A catalog is made in staging first, then in production."""
    shop.run(SIX)
    settings = shop.settings.model_copy(update={"environment": "production"}).at(
        Profile(url="https://p/v1", key=SecretStr("key"))
    )
    run(shop, replace(shop.spec(), settings=settings), SIX)


def _retired(shop: Workshop) -> str:
    shop.run(SIX)
    with shop.ledger() as ledger, ledger.transaction():
        ledger.database.execute("UPDATE catalog_rows SET retired_at = 1")
        ledger.database.execute("UPDATE source_rows SET gone_at = 1")
    return SIX


def _crashed(shop: Workshop) -> str:
    """Its catalog is updated by the next run; until then the ledger's attempts show what was requested."""
    left = iter(range(5))

    def received(create: Create) -> None:
        if next(left, None) is None:
            raise Crash

    shop.service.at_create = received
    shop.crash(SIX)
    shop.service.at_create = lambda create: None
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
    assert len(shop.service.bought) == 6
    return SIX


@pytest.mark.parametrize("before", [_crashed, _retired, _spelled_otherwise, _in_doubt])
def test_what_may_exist_is_refused(shop: Workshop, before: Callable[[Workshop], str]) -> None:
    text = before(shop)
    with pytest.raises(ConfigurationError, match="bought once more"):
        run(shop, spec(shop), text)


def test_catalog_with_most_duplicates_is_named(shop: Workshop) -> None:
    """Rows count once, in however many catalogs they are."""
    run(shop, spec(shop, "few"), many(5))
    run(shop, spec(shop, "most", confirm="duplicates"), many(8))
    found = previewed(shop, spec(shop, "third"), many(9))[0].duplicates
    assert found is not None
    assert "8 of 9 rows" in found.message and "catalog 'most'" in found.message
