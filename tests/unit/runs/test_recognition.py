"""What exists is recognised: when less is known of the offer than before, or nothing but the spelling differs."""

from __future__ import annotations

import pytest

from patternmill.catalog.offer import Category, Offer, Option
from patternmill.service import outcomes
from patternmill.states import AttemptState, RowStatus

from .fake_studio import Service
from .workshop import Workshop

OPTIONS = (
    Option("name", ("S-1", "S-2", "s-1")),
    Option("size", ("50x50", "70x70"), labels=(("large", "70x70"),)),
    Option("fabric", ("linen", "silk")),
)
KNOWN = Offer((Category("cat_tote", "Tote", OPTIONS),), None)
#: The options of the one category could not be read, or the list of categories.
HALF = Offer((Category("cat_tote", "Tote", None),), "no options")
BLIND = Offer(None, "no categories", False)


def row(sku: str = "S-1", prompt: str = "herons", category: str = "tote", size: str = "50X50") -> str:
    header = "sku,prompt,category,option:name,option:size,option:fabric"
    return f'{header}\n{sku},"{prompt}",{category},{sku},{size},Linen\n'


@pytest.mark.parametrize(
    ("first", "later"), [(KNOWN, HALF), (HALF, KNOWN), (KNOWN, BLIND), (BLIND, KNOWN), (HALF, BLIND)]
)
def test_same_row_buys_nothing_with_or_without_an_offer(
    shop: Workshop, service: Service, first: Offer, later: Offer
) -> None:
    """Whichever run knew more; and the catalog still has one product for the sku."""
    service.offer, size = first, "Large"
    assert shop.run(row(size=size)).statuses == {"S-1": RowStatus.SUCCEEDED}
    service.offer = later
    ended = shop.run(row(size=size))
    assert ended.statuses == {"S-1": RowStatus.SUCCEEDED}
    assert ended.rows["S-1"].product_id
    assert service.bought == ["herons", "S-1"]


def test_other_spelling_of_the_same_offer_buys_nothing(shop: Workshop, service: Service) -> None:
    """The category by its other case, the values as the offer has them; nor does it without an offer."""
    service.offer = KNOWN
    shop.run(row())
    shop.run(row(category="TOTE", size="50x50"))
    service.offer = BLIND
    shop.run(row(category="TOTE", size="50x50"))
    assert service.bought == ["herons", "S-1"]


@pytest.mark.parametrize(("first", "later"), [(KNOWN, KNOWN), (KNOWN, BLIND), (BLIND, KNOWN), (HALF, BLIND)])
def test_changed_selection_is_bought(shop: Workshop, service: Service, first: Offer, later: Offer) -> None:
    """Another size is another product, known or not."""
    service.offer = first
    shop.run(row())
    service.offer = later
    assert shop.run(row(size="70x70")).statuses == {"S-1": RowStatus.SUCCEEDED}
    assert len(service.bought) == 3


def test_refused_row_is_sent_in_the_offers_spelling(shop: Workshop, service: Service) -> None:
    """Nothing was made for it, so its content is what is known now."""
    service.offer = BLIND
    service.on_create["S-1"] = [outcomes.No(AttemptState.REJECTED, "invalid_request", "no such category")]
    assert shop.run(row()).statuses == {"S-1": RowStatus.FAILED}
    service.offer = KNOWN
    assert shop.run(row()).statuses == {"S-1": RowStatus.SUCCEEDED}


def test_row_in_doubt_is_recognised(shop: Workshop, service: Service) -> None:
    """The same request is resent, and no other."""
    service.offer = BLIND
    service.on_create["S-1"] = [outcomes.No(None, "in_doubt", "lost")]
    shop.run(row())
    service.offer = KNOWN
    assert shop.run(row()).statuses == {"S-1": RowStatus.SUCCEEDED}
    products = [create.request_id for create in service.creates if create.name == "S-1"]
    assert len(set(products)) == 1


@pytest.mark.parametrize("sku", ["s-1", "S -1"])
def test_case_and_spaces_of_a_sku_are_no_difference(shop: Workshop, service: Service, sku: str) -> None:
    """Within one file they are duplicates, so they are between two runs; the catalog keeps its spelling."""
    one = row()
    shop.run(one)
    ended = shop.run(one.replace("S-1,", f"{sku},", 1))
    assert service.bought == ["herons", "S-1"]
    assert ended.statuses == {"S-1": RowStatus.SUCCEEDED}
    with shop.ledger() as ledger:
        assert ledger.database.rows("SELECT sku FROM catalog_rows") == [("S-1",)]
    assert shop.state("S-1") is AttemptState.SUCCEEDED


@pytest.mark.parametrize("later", ["a\u00a0heron", "a\r\n heron"])
def test_what_cannot_be_seen_in_a_prompt_is_no_difference(
    shop: Workshop, service: Service, later: str
) -> None:
    """Kinds of spaces, zero-width characters, line ends."""
    shop.run(row(prompt="a\n heron" if "\r" in later else "a heron"))
    shop.run(row(prompt=later))
    assert len(service.bought) == 2


def test_jobs_of_two_environments_may_have_the_same_id(
    shop: Workshop, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.run(row())
    with shop.ledger() as ledger, ledger.transaction():
        ledger.database.execute("UPDATE items SET environment = 'production'")
        ledger.database.execute("UPDATE runs SET environment = 'production'")
    service.jobs.clear()
    service.names.clear()
    assert shop.run(row(sku="S-2")).statuses == {"S-2": RowStatus.SUCCEEDED}
