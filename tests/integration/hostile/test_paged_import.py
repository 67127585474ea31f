"""Whole imports from services whose categories come in pages: what is on the last page is bought like the rest."""

from __future__ import annotations

import asyncio
import csv
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from cli.commands.check import command as check
from patternmill.runs.pipeline import Pipeline
from patternmill.runs.request import ImportRequest
from patternmill.runs.spec import import_spec
from patternmill.states import Stage
from tests.hostile import Hostile, Plan
from tests.hostile.shapes import PAGED

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
    hostile = Hostile(Plan(), folder / "service")
    yield hostile
    hostile.stop()


@pytest.fixture
def begin(service: Hostile, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Starts the service, or starts it again at the same address, with a shape of its own."""

    def begin(shape: str) -> None:
        service.stop()
        service.plan = Plan(shape=shape)
        service.start()
        for name, value in service.environment.items():
            monkeypatch.setenv(name, value)

    return begin


def bought(service: Hostile) -> int:
    return sum(line["event"] == "created" for line in service.lines())


def import_spring(folder: Path) -> dict[str, tuple[str, str]]:
    """How each row ended, by sku, with its error code."""

    async def main() -> None:
        async with Pipeline(
            import_spec(ImportRequest(file=folder / "spring.csv", out=folder / "out"))
        ) as work:
            await work.run_through()

    asyncio.run(asyncio.wait_for(main(), 60))
    with (folder / "out" / "results.csv").open(encoding="utf-8-sig", newline="") as file:
        return {row["sku"]: (row["status"], row["error_code"]) for row in csv.DictReader(file)}


def planned(folder: Path) -> tuple[int, int]:
    async def main() -> tuple[int, int]:
        async with Pipeline(import_spec(ImportRequest(file=folder / "spring.csv"))) as work:
            await work.read()
            await work.check()
            bought = (await work.preview()).plan.purchases()
            return bought[Stage.PATTERN], bought[Stage.PRODUCT]

    return asyncio.run(asyncio.wait_for(main(), 30))


DONE = ("succeeded", "")


@pytest.mark.parametrize("shape", [shape for shape in PAGED if shape != "paged_silent"])
def test_rows_of_every_page_are_made(folder: Path, begin: Callable[[str], None], shape: str) -> None:
    """By name and by ID; and a mistake in an option of the last page's category is found before it is paid for."""
    begin(shape)
    printed = CliRunner().invoke(check, ["spring.csv"], standalone_mode=False)
    assert "5 rows, 4 accepted, 1 refused" in printed.output
    assert planned(folder) == (2, 4)
    assert import_spring(folder) == {
        **dict.fromkeys(("C-1", "T-1", "W-1", "W-2"), DONE),
        "W-3": ("refused", "unknown_value"),
    }


def test_nothing_is_bought_for_unreadable_pages(
    folder: Path, begin: Callable[[str], None], service: Hostile
) -> None:
    """A category that the service knows by its ID is accepted, with its name and options; check, plan and run agree."""
    begin("paged_silent")
    printed = CliRunner().invoke(check, ["spring.csv"], standalone_mode=False)
    assert "5 rows, 3 accepted, 2 refused" in printed.output
    assert "in part only" in printed.output
    assert planned(folder) == (2, 3)
    assert import_spring(folder) == {
        **dict.fromkeys(("C-1", "W-1", "W-2"), DONE),
        "T-1": ("refused", "unlisted_category"),
        "W-3": ("refused", "unknown_value"),
    }
    assert bought(service) == 5


def test_remembered_offer_replaces_unreadable_pages(
    folder: Path, begin: Callable[[str], None], service: Hostile
) -> None:
    """The second day sees the first page alone: nothing is bought again, nothing is newly refused; check agrees."""
    begin("paged")
    first, before = import_spring(folder), bought(service)
    begin("paged_silent")
    printed = CliRunner().invoke(check, ["spring.csv"], standalone_mode=False)
    assert "5 rows, 4 accepted, 1 refused" in printed.output
    assert "Not in that part, and used as read on" in printed.output
    assert planned(folder) == (0, 0)
    assert import_spring(folder) == first
    assert bought(service) == before
