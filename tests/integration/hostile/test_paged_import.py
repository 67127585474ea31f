"""Whole imports from services whose categories come in pages: what is on the last page is bought like the rest."""

from __future__ import annotations

import asyncio
import csv
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from cli.commands.check import command as check
from patternmill.runs.pipeline import Pipeline
from patternmill.runs.request import ImportRequest
from patternmill.runs.spec import run_spec
from patternmill.states import Stage
from tests.hostile import Hostile, Plan

ROWS = (
    "sku,prompt,category,option:size,option:finish\n"
    "C-1,blue herons,Cushion,50x50,\n"
    "T-1,blue herons,tote bag,Small,\n"
    "W-1,green ferns,Wallpaper,,matte\n"
    "W-2,green ferns,stag_wallpaper_04,,satin\n"
    "W-3,blue herons,Wallpaper,,glossy\n"
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "spring.csv").write_text(ROWS, encoding="utf-8")
    return tmp_path


@pytest.fixture
def service(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hostile]:
    with Hostile(Plan(shape="paged"), folder / "service") as hostile:
        for name, value in hostile.environment.items():
            monkeypatch.setenv(name, value)
        yield hostile


def bought(service: Hostile) -> int:
    return sum(line["event"] == "created" for line in service.lines())


def import_spring(folder: Path) -> dict[str, tuple[str, str]]:
    """How each row ended, by sku, with its error code."""

    async def main() -> None:
        async with Pipeline(run_spec(ImportRequest(file=folder / "spring.csv", out=folder / "out"))) as work:
            await work.run_through()

    asyncio.run(asyncio.wait_for(main(), 60))
    with (folder / "out" / "results.csv").open(encoding="utf-8-sig", newline="") as file:
        return {row["sku"]: (row["status"], row["error_code"]) for row in csv.DictReader(file)}


def planned(folder: Path) -> tuple[int, int]:
    async def main() -> tuple[int, int]:
        async with Pipeline(run_spec(ImportRequest(file=folder / "spring.csv"))) as work:
            await work.read()
            await work.check()
            bought = (await work.preview()).plan.purchases()
            return bought[Stage.PATTERN], bought[Stage.PRODUCT]

    return asyncio.run(asyncio.wait_for(main(), 30))


DONE = ("succeeded", "")


def test_list_that_does_not_lead_to_its_end_is_not_checked(folder: Path, service: Hostile) -> None:
    """Rows go out as they are written: IDs are made, and names are refused by the service, as no product."""
    service.change(Plan(shape="paged_silent"))
    printed = CliRunner().invoke(check, ["spring.csv"], standalone_mode=False)
    assert "5 rows, all accepted" in printed.output
    assert "more pages than its answers lead to" in printed.output
    assert planned(folder) == (2, 5)
    ended = import_spring(folder)
    assert ended.pop("W-2") == DONE
    assert {status for status, _ in ended.values()} == {"failed"}
    assert bought(service) == 3


def test_remembered_offer_replaces_unreadable_pages(folder: Path, service: Hostile) -> None:
    """The first day reads every page; on the second, on which no page leads on, nothing is bought or newly refused."""
    printed = CliRunner().invoke(check, ["spring.csv"], standalone_mode=False)
    assert "5 rows, 4 accepted, 1 refused" in printed.output
    assert planned(folder) == (2, 4)
    first, before = import_spring(folder), bought(service)
    assert first == {
        **dict.fromkeys(("C-1", "T-1", "W-1", "W-2"), DONE),
        "W-3": ("refused", "unknown_value"),
    }
    service.change(Plan(shape="paged_silent"))
    printed = CliRunner().invoke(check, ["spring.csv"], standalone_mode=False)
    assert "5 rows, 4 accepted, 1 refused" in printed.output
    assert "those read on" in printed.output
    assert planned(folder) == (0, 0)
    assert import_spring(folder) == first
    assert bought(service) == before
