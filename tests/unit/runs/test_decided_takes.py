"""Decisions about takes: what each is recorded against, and which rows it counts for."""

from __future__ import annotations

import asyncio
import csv
from pathlib import Path

import pytest

from cli.main import run
from patternmill.errors import InputRefused
from patternmill.identifiers import RunId
from patternmill.ledger.events import last_decisions
from patternmill.ledger.ledger import Ledger, open_ledger
from patternmill.runs.catalog_takes import CatalogTakes
from patternmill.runs.decision_files import DecisionsFile, keep_decisions, read_decisions
from patternmill.runs.preview import Preview
from patternmill.runs.request import ImportRequest
from patternmill.runs.run import Run
from patternmill.runs.spec import run_spec
from patternmill.settings import load_settings
from patternmill.states import Stage

from .shop import Shop
from .shop import shop as shop

#: Two rows share a pattern, one of them in another colour; the third has one of its own.
ROWS = {
    "a": {"prompt": "herons"},
    "b": {"prompt": "herons", "refine:recolor": "#abc"},
    "c": {"prompt": "ferns"},
}


def results(shop: Shop, **decisions: str) -> Path:
    """The results file of the last run, with decisions in it."""
    folder = shop.folder / "results" / "spring" / "latest"
    rows = list(csv.DictReader((folder / "results.csv").read_text("utf-8-sig").splitlines()))
    path = shop.folder / "decided.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(row | {"decision": decisions.get(row["sku"], "")} for row in rows)
    return path


def read(shop: Shop, ledger: Ledger, path: Path) -> DecisionsFile:
    record = ledger.runs.get(RunId(shop.last))
    assert record is not None
    return read_decisions(ledger, record, path)


def decide_in_sheet(shop: Shop, **decisions: str) -> str:
    path = results(shop, **decisions)
    with open_ledger(load_settings()) as ledger:
        record = ledger.runs.get(RunId(shop.last))
        assert record is not None
        return keep_decisions(ledger, record, read(shop, ledger, path))


def decided(shop: Shop) -> dict[tuple[str, int], str]:
    """By prompt and take, what was decided last; about patterns alone."""
    with open_ledger(load_settings()) as ledger:
        verdicts = {}
        for item, decision in last_decisions(ledger, "staging", "spring").items():
            stage, content = ledger.purchases.item(item)
            assert stage is Stage.PATTERN
            verdicts[content["prompt"], content.get("take", 1)] = decision.verdict.value
    return verdicts


def test_decision_in_a_sheet_is_about_the_take_before_any_refinement(shop: Shop) -> None:
    """So it counts for the rows that share the take, which are named."""
    shop.refresh(ROWS)
    text = decide_in_sheet(shop, b="reject")
    assert (
        "1 decision recorded" in text
        and "They count for rows that share these patterns, too: also a." in text
    )
    assert decided(shop) == {("herons", 1): "reject"}
    assert "also" not in decide_in_sheet(shop, a="pick", b="pick")


def test_again_in_a_sheet_is_about_the_highest_take_of_then(shop: Shop) -> None:
    """Takes that were made after the sheet was written came after it; and what was asked for since is named."""
    shop.load_source({"a": {"prompt": "herons"}}, takes=3)
    path = results(shop, a="again")
    with open_ledger(load_settings()) as ledger:
        record = ledger.runs.get(RunId(shop.last))
        assert record is not None and record.ended_at is not None
        (decision,) = read_decisions(ledger, record, path).decisions
        assert ledger.purchases.item(decision.item)[1]["take"] == 3
    shop.remake("a")
    with open_ledger(load_settings()) as ledger:
        takes = CatalogTakes(ledger, "staging", "spring")
        then, now = (
            takes.highest_made(decision.item, until) for until in (record.ended_at.timestamp(), None)
        )
        assert (then, ledger.purchases.item(now)[1]["take"]) == (decision.item, 4)
        assert read_decisions(ledger, record, path).left == ("a",)


def test_sheet_does_not_choose_between_takes_that_it_does_not_show(shop: Shop) -> None:
    shop.load_source({"a": {"prompt": "herons"}}, takes=2)
    for word in ("pick", "reject"):
        with pytest.raises(InputRefused, match=r"`a` has several takes; decide with `patternmill look`"):
            decide_in_sheet(shop, a=word)
    assert decided(shop) == {}
    assert "1 decision" in decide_in_sheet(shop, a="again")
    assert decided(shop) == {("herons", 2): "again"}


def test_plan_of_a_results_file_follows_the_decisions_in_it(shop: Shop) -> None:
    """What a person agrees to is what the run buys: its decisions are recorded only as it begins."""
    shop.refresh(ROWS)
    work = Run(run_spec(ImportRequest(file=results(shop, c="again"))))
    planned = asyncio.run(closed(work)).plan.purchases()
    assert decided(shop) == {}
    had = len(shop.service.bought)
    shop.load(results(shop, c="again"))
    assert shop.service.bought[had:] == ["ferns", "c"]
    assert (planned[Stage.PATTERN], planned[Stage.PRODUCT]) == (1, 1)


async def closed(work: Run) -> Preview:
    async with work:
        return await work.preview()


def test_decisions_of_a_file_are_recorded_as_the_remake_begins(shop: Shop) -> None:
    """Not by its plan; and also where nothing is to be made by them."""
    shop.refresh(ROWS)
    file = results(shop, a="reject", b="reject", c="pick")
    assert run(("remake", "--picks", str(file), "--plan-only")) == 0
    assert decided(shop) == {}
    had = len(shop.service.bought)
    assert shop.remake(picks=file) and not shop.remake(picks=file)
    assert decided(shop) == {("herons", 1): "reject", ("ferns", 1): "pick"}
    assert len(shop.service.bought) == had
