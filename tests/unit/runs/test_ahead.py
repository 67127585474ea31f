"""A run that goes ahead of the flow that shows it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from patternmill.ledger.ledger import open_ledger
from patternmill.service.studio_api import StudioApi
from patternmill.states import Outcome
from tasks.ahead import PipelineAhead

from .fake_studio import FakeStudioApi
from .test_pipeline import FOUR
from .workshop import Workshop


@pytest.fixture
def ahead(shop: Workshop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PipelineAhead:
    monkeypatch.setattr(StudioApi, "from_settings", lambda settings: FakeStudioApi(shop.service))
    (tmp_path / "four.csv").write_text(FOUR)
    return PipelineAhead(replace(shop.spec(), source=tmp_path / "four.csv", out=tmp_path / "out"))


@pytest.mark.parametrize("has_ended", [False, True])
async def test_late_flow_shows_what_was_begun(ahead: PipelineAhead, has_ended: bool) -> None:
    """Every item once; and the flow run is on record, if the run goes on."""
    shown: list[str] = []
    async with ahead as work:
        await work.read()
        await work.check()
        await work.go_ahead()
        while has_ended and not work.is_finished:
            await asyncio.sleep(0.01)
        run = await work.plan("flow-run")
        await work.drive(lambda what, driving: shown.append(what.describe()))
        await work.come_to_its_end()
        assert run.record.prefect_flow_run_id == "flow-run"
    assert len(shown) == len(set(shown)) == 3 + 4 + len(ahead.begun.engine.groups)
    assert ahead.ended.outcome is Outcome.COMPLETED
    with open_ledger(ahead.spec.settings) as ledger:
        record = ledger.runs.get(ahead.ended.record.run_id)
    assert record and record.prefect_flow_run_id == (None if has_ended else "flow-run")
