"""Night after night: a catalog follows its source, and only what has changed is made."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from patternmill.ledger.ledger import open_ledger
from patternmill.planning.changes import change_counts
from patternmill.runs.request import RefreshRequest, RetryRequest
from patternmill.runs.results_files import rebuild
from patternmill.runs.run import Run
from patternmill.runs.spec import run_spec
from patternmill.settings import load_settings
from patternmill.states import Outcome
from tests.integration.refresh.conftest import Desk

A1 = "A-1,Blue herons,Cushion,50x50,linen,x"
A2 = "A-2,Blue herons,Cushion,60x40,velvet,x"
A3 = "A-3,Lemon branches,Cushion,40x40,cotton,x"


def many(count: int) -> list[str]:
    return [f"M-{number:02},Blue herons,Cushion,50x50,linen,{number}" for number in range(count)]


def test_second_refresh_without_edits_sends_nothing(desk: Desk) -> None:
    """Reordered rows and columns, another case and other notes: no call, and the same products."""
    first = desk.night(A1, A2, A3)
    assert first.counts == {"added": 3}
    before, products = desk.creates(), desk.products()
    desk.write(
        "y, A-3 ,cotton,40x40,cushion, Lemon branches ",
        "z,A-1,linen,50x50,Cushion,Blue herons",
        "z,A-2,Velvet,60x40,Cushion,Blue herons",
        header="NOTE, Sku,Option: Fabric,option:size,CATEGORY,Prompt",
    )
    second = desk.refresh()
    assert second.counts == {"unchanged": 3}
    assert second.ending.outcome is Outcome.COMPLETED
    assert second.changes() == {}
    assert (desk.creates(), desk.products()) == (before, products)


def test_edits_make_the_least_needed(desk: Desk) -> None:
    """A selection reuses the pattern, a prompt makes one, a new row is added, a missing one is retired."""
    desk.night(A1, A2, A3)
    old, before = desk.state(), desk.creates()
    night = desk.night(
        A1.replace("linen", "cotton"),
        A2.replace("Blue", "Green"),
        "A-4,Blue herons,Cushion,50x50,linen,x",
    )
    assert night.counts == {"added": 1, "changed": 2, "retired": 1}
    new, changes = desk.state(), night.changes()
    assert changes["A-1"]["fields"] == "option:fabric"
    assert changes["A-2"]["fields"] == "prompt"
    for sku in ("A-1", "A-2"):
        assert changes[sku]["old_product_id"] == old[sku].product_id
        assert changes[sku]["new_product_id"] == new[sku].product_id != old[sku].product_id
        assert changes[sku]["old_pattern_id"] == old[sku].pattern_id
        assert changes[sku]["new_pattern_id"] == new[sku].pattern_id
    assert new["A-1"].pattern_id == old["A-1"].pattern_id
    assert new["A-2"].pattern_id != old["A-2"].pattern_id
    assert changes["A-3"]["status"] == "retired"
    assert new["A-3"].retired_at is not None
    # A pattern and three products.
    assert desk.creates() == before + 4


def test_failed_change_keeps_the_old_product(desk: Desk) -> None:
    """What could not be made replaces nothing; it stays failed until it is edited, and going back costs nothing."""
    desk.night(A1, A3)
    old = desk.products()
    failing = A1.replace("Blue herons", "Broken looms [fail]")
    night = desk.night(failing, A3)
    assert night.ending.outcome is Outcome.COMPLETED_WITH_FAILURES
    assert night.changes()["A-1"]["status"] == "failed"
    assert night.changes()["A-1"]["new_product_id"] == ""
    assert desk.products() == old
    before = desk.creates()
    assert desk.night(failing, A3).counts == {"unchanged": 1, "failed_before": 1}
    assert desk.night(A1, A3).counts == {"unchanged": 2}
    assert (desk.creates(), desk.products()) == (before, old)


@pytest.mark.parametrize("left", [0, 1])
def test_suddenly_smaller_source_retires_nothing(desk: Desk, left: int) -> None:
    """Additions are made; retirements wait, and are reported until a person agrees."""
    desk.night(*many(12))
    new = ["N-1,Blue herons,Cushion,50x50,linen,x"] if left else []
    night = desk.night(*many(left), *new)
    assert night.counts.get("withheld") == 12 - left
    assert night.counts.get("added", 0) == len(new)
    assert night.ending.outcome is Outcome.COMPLETED_WITH_FAILURES
    assert f"--retire {12 - left}" in (night.ending.record.reason or "")
    assert len(desk.products()) == 12 + len(new)
    part = desk.refresh(retire=2)
    assert (part.counts["retired"], part.counts["withheld"]) == (2, 10 - left)
    rest = desk.refresh(retire=12)
    assert rest.counts["retired"] == 10 - left
    assert rest.ending.outcome is Outcome.COMPLETED
    assert len(desk.products()) == left + len(new)


def test_results_are_rebuilt_from_the_ledger(desk: Desk, tmp_path: Path) -> None:
    """changes.csv too has the same bytes, whatever has happened since."""
    desk.night(A1, A2)
    night = desk.night(A1.replace("linen", "cotton"), A3)
    desk.night(A1)
    ledger = open_ledger(load_settings())
    try:
        rebuild(ledger, night.ending.record.run_id, tmp_path / "again")
        assert len(ledger.catalogs.changes_of(night.ending.record.run_id)) == 3
    finally:
        ledger.close()
    for file in night.out.iterdir():
        assert (tmp_path / "again" / file.name).read_bytes() == file.read_bytes()
    assert night.manifest()["options"]["changes"]["changed"] == 1


def test_retry_of_an_older_run_restores_no_old_content(desk: Desk) -> None:
    """A retry changes only what it makes: the other rows of its file may be older than the catalog."""
    failing = A3.replace("Lemon branches", "Broken looms [fail]")
    first = desk.night(A1, failing)
    desk.night(A1.replace("Blue", "Green"), failing)
    newer = desk.products()
    request = RetryRequest(run=first.ending.record.run_id, sku=("A-3",))

    async def again() -> None:
        async with Run(run_spec(request)) as work:
            await work.run_through()

    asyncio.run(again())
    assert desk.products() == newer


def test_products_of_a_crashed_refresh_are_in_the_catalog(desk: Desk) -> None:
    """The next refresh resumes what the crashed one left: its products and its retirements."""
    desk.night(A1, A2, A3)
    old = desk.products()
    desk.write(A1.replace("linen", "cotton"), A2)

    async def dies() -> None:
        work = Run(run_spec(RefreshRequest(source=str(desk.source), catalog=desk.catalog)))
        await work.read()
        await work.check()
        await work.begin()
        await work.engine.drive()
        await work._heartbeat.stop()
        await work.writer.run(lambda ledger: ledger.database.execute("UPDATE leases SET holder = ''"))
        await work.writer.close()
        await work._api.close()

    asyncio.run(dies())
    assert desk.products() == old
    before = desk.creates()
    assert desk.refresh().counts == {"changed": 1, "unchanged": 1, "retired": 1}
    assert desk.creates() == before
    assert desk.refresh().counts == {"unchanged": 2}
    assert desk.products().keys() == {"A-1", "A-2"}
    assert desk.products()["A-1"] != old["A-1"]


def test_plan_shows_changes_and_writes_nothing(desk: Desk) -> None:
    """Before anything is spent it is known what would be added, changed and retired."""
    desk.night(A1, A2, A3)
    desk.write(A1.replace("linen", "cotton"), A2)
    before = desk.creates()

    async def look() -> dict[str, int]:
        async with Run(run_spec(RefreshRequest(source=str(desk.source), catalog=desk.catalog))) as work:
            return change_counts((await work.preview()).changes)

    counts = asyncio.run(look())
    assert (counts["changed"], counts["unchanged"], counts["retired"]) == (1, 1, 1)
    assert desk.creates() == before
    assert len(desk.products()) == 3
