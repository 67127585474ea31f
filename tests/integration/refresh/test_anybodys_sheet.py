"""One command from anybody's sheet to "24 rows, all accepted", with answers once, a week later none."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli import main
from patternmill.runs.request import ImportRequest
from patternmill.runs.run import Run
from patternmill.runs.spec import run_spec
from patternmill.states import Outcome
from studio.store import read_record
from tests.integration.refresh.conftest import Desk

from .people import ROWS, SHEETS, PeoplesSheet, prompts


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What a person types, one a question; then Enter. What was asked is kept."""
    asked: list[str] = []
    answers: list[str] = []

    def answer(prompt: str) -> str:
        asked.append(prompt)
        return answers.pop(0) if answers else ""

    monkeypatch.setattr("os.isatty", lambda descriptor: True)
    monkeypatch.setattr("click.termui.visible_prompt_func", answer)
    yield answers
    print(asked)


def imported(desk: Desk, file: Path) -> Counter[str]:
    """What was asked of the studio for it, by operation."""

    async def run() -> None:
        async with Run(run_spec(ImportRequest(file=file, catalog=desk.catalog, confirm="staging"))) as work:
            await work.run_through()
            assert work.ended.outcome is Outcome.COMPLETED

    before = len(read_record(desk.studio_record))
    asyncio.run(asyncio.wait_for(run(), 120))
    return Counter(one.operation for one in read_record(desk.studio_record)[before:])


@pytest.mark.parametrize("sheet", SHEETS, ids=lambda sheet: sheet.name)
def test_sheet_is_accepted_by_one_command(
    sheet: PeoplesSheet, desk: Desk, typed: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    file = desk.folder / sheet.name
    file.write_bytes(sheet.write(prompts()))
    typed += sheet.answers
    assert main.run(["check", str(file)]) == 0
    assert f"{sheet.name}: {ROWS} rows, all accepted" in capsys.readouterr().out and not typed
    assert imported(desk, file).total() == 2 * ROWS
    file.write_bytes(sheet.write(prompts(changed=5)))
    assert main.run(["check", str(file)]) == 0
    assert f"{ROWS} rows, all accepted" in (shown := capsys.readouterr().out) and "?" not in shown
    assert sorted(imported(desk, file).values()) == [5, 5]
