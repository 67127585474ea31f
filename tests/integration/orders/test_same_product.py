"""Results, catalog, order and explain name one product for each sku, however it came about; else nothing is ordered."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from patternmill.errors import InputRefused
from patternmill.runs.request import ImportRequest, RefreshRequest, RemakeRequest, RetryRequest
from patternmill.states import Decided
from tests.integration.orders.shop import CATALOG, Shop

CHANGED = CATALOG.replace("1 blue herons", "1 red herons")
FAILING = {"on": "products/create", "effect": {"kind": "job_fails"}}


def results_of(shop: Shop, run_id: str) -> Path:
    return shop.folder / "results" / "spring" / run_id / "results.csv"


def picks(shop: Shop, run_id: str, *skus: str, column: str = "picked", word: str = "yes") -> Path:
    """A run's results.csv in which a person has picked rows."""
    with results_of(shop, run_id).open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    path = shop.folder / f"picked-{run_id}.csv"
    with path.open("w", newline="") as file:
        written = csv.DictWriter(file, dict.fromkeys([*rows[0], column]))
        written.writeheader()
        written.writerows(row | {column: word if row["sku"] in skus else ""} for row in rows)
    return path


def refused(shop: Shop, *skus: str, **options: object) -> str:
    """Why nothing is ordered; nothing is."""
    with pytest.raises(InputRefused) as error:
        shop.order(*skus, **options)
    assert shop.opened() == []
    return str(error.value)


def ordered(shop: Shop, *skus: str, **options: object) -> dict[str, str]:
    """What an order names, by sku."""
    lines = [line for record in shop.order(*skus, **options).checkouts for line in record.lines]
    return {line.sku: line.product_id for line in lines}


def test_older_results_are_not_ordered_after_a_refresh(shop: Shop) -> None:
    """They name a product that the catalog has replaced: the sku is named, with what to do. Nor are retired rows."""
    first = shop.latest_run()
    before = shop.catalog()
    shop.file.write_text(CHANGED)
    second = shop.run(RefreshRequest(source=str(shop.file), catalog="spring"))
    now = shop.catalog()
    assert before["S-1"] != now["S-1"]
    reason = refused(shop, picks=picks(shop, first, "S-1", "S-2"))
    assert "S-1" in reason and before["S-1"] in reason and now["S-1"] in reason and "S-2" not in reason
    with shop.ledger() as ledger, ledger.transaction():
        ledger.database.execute("UPDATE catalog_rows SET retired_at = 1 WHERE sku = 'S-3'")
    assert "S-3 was retired on" in refused(shop, "S-3").replace("`", "")
    assert ordered(shop, picks=picks(shop, second, "S-1", "S-2")) == {sku: now[sku] for sku in ("S-1", "S-2")}


def test_failed_row_is_ordered_as_the_catalog_has_it(shop: Shop) -> None:
    """Its results name no product; what is ordered is the earlier one, and a note says so."""
    product = shop.catalog()["S-1"]
    shop.studio.faults.use(FAILING)
    second = shop.imported_now(CHANGED)
    shop.studio.faults.clear()
    assert shop.results(second)["S-1"] == ""
    assert shop.catalog()["S-1"] == product
    (note,) = shop.plan(picks=picks(shop, second, "S-1")).notes
    assert "S-1 has an earlier product" in note
    assert ordered(shop, picks=picks(shop, second, "S-1")) == {"S-1": product}


def test_retry_of_an_older_run_changes_no_other_row(shop: Shop) -> None:
    """Nor do its results name one that a later run has otherwise, or the older results order it."""
    shop.studio.faults.use(FAILING)
    failed = shop.imported_now(CATALOG + "S-6,6 blue herons,Cushion,50x50,linen\n")
    shop.studio.faults.clear()
    shop.imported_now(CHANGED)
    now = shop.catalog()
    retried = shop.run(RetryRequest(run=failed))
    results = shop.results(retried)
    assert shop.catalog() == now | {"S-6": results["S-6"]}
    assert results.items() <= shop.catalog().items() and "S-1" not in results
    assert "S-1" in refused(shop, picks=picks(shop, failed, "S-1", "S-2"))
    assert ordered(shop, "S-1", "S-6") == {sku: shop.catalog()[sku] for sku in ("S-1", "S-6")}


def test_remade_take_replaces_the_one_in_a_file(shop: Shop) -> None:
    """Picked there as a product, or by a decision about take 1; and the catalog has take 2 by now."""
    first, before = shop.latest_run(), shop.catalog()["S-1"]
    decided = picks(shop, first, "S-1", column="decision", word="pick")
    decided.rename(shop.folder / "decided.csv")
    shop.run(RemakeRequest(sku=("S-1",), again=True))
    now = shop.catalog()["S-1"]
    assert before != now
    assert "S-1" in refused(shop, picks=picks(shop, first, "S-1"))
    assert "S-1" in refused(shop, picks=shop.folder / "decided.csv")
    assert "one by one and in a file" in refused(shop, "S-2", picks=shop.folder / "decided.csv")
    assert ordered(shop, "S-1") == {"S-1": now}


def test_what_is_picked_is_ordered_where_its_product_shows_it(shop: Shop) -> None:
    """Not where another take was made after the pick, which nobody picked; nor where the pick went back to take 1."""
    for sku in ("S-1", "S-2"):
        shop.decide(sku, Decided.PICK)
    shop.run(RemakeRequest(sku=("S-1",), again=True))
    plan = shop.plan()
    assert [line.sku for line in plan.lines] == ["S-2"] and not plan.left_out
    shop.decide("S-1", Decided.PICK, take=2)
    shop.decide("S-1", Decided.PICK)
    plan = shop.plan()
    assert [line.sku for line in plan.lines] == ["S-2"] and list(plan.left_out) == ["S-1"]


def test_rows_that_are_rejected_or_to_choose_are_left_out(shop: Shop) -> None:
    """However they are named, with a product or without one; where nothing else is, nothing is ordered."""
    shop.decide("S-1", Decided.REJECT)
    shop.run(RemakeRequest(sku=("S-3",), takes=2))
    shop.file.write_text(CATALOG + "S-6,6 blue herons,Cushion,50x50,linen\n")
    shop.run(ImportRequest(file=shop.file, takes=2))
    assert "S-6" not in shop.catalog()
    plan = shop.plan("S-1", "S-2", "S-3", "S-6")
    assert [line.sku for line in plan.lines] == ["S-2"] and list(plan.left_out) == ["S-1", "S-3", "S-6"]
    assert "S-6: its pattern has several takes" in refused(shop, "S-6") and "rejected" in refused(shop, "S-1")
    shop.decide("S-1", Decided.UNDECIDED)
    assert list(ordered(shop, "S-1")) == ["S-1"]
