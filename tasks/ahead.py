"""A run of the command line, which goes ahead of what shows it: its flow joins in once the Prefect server answers."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from typing import Any

from patternmill.engine.engine import Show, show_nothing
from patternmill.errors import LedgerError
from patternmill.runs.pipeline import Pipeline
from patternmill.runs.run import Run


class PipelineAhead(Pipeline):
    """Once it goes ahead, the steps of a flow from the plan on join what is under way."""

    _driving: asyncio.Task[None] | None = None

    async def go_ahead(self) -> None:
        """Plan the checked rows, and begin to drive them and publish their results, whether or not a flow joins in.

        Raises what the plan raises. Not on Dask, where task runs of the flow drive them: then this does nothing.
        """
        if self.spec.settings.dask is None:
            #: What is to be shown once somebody shows it.
            self._begun: list[tuple[Any, asyncio.Task[Any]]] = []
            self._show: Show = lambda *begun: self._begun.append(begun)
            run = await super().plan()
            self._driving = asyncio.create_task(self._drive(run))

    async def _drive(self, run: Run) -> None:
        await run.engine.drive(lambda *begun: self._show(*begun))
        self.finish()

    async def plan(self, prefect_flow_run_id: str | None = None) -> Run:
        """The run, with the flow run that shows it on record, unless it has ended before."""
        if self._driving is None:
            return await super().plan(prefect_flow_run_id)
        run = self.begun
        run.record = record = replace(run.record, prefect_flow_run_id=prefect_flow_run_id)
        if self._finishing is None:
            with suppress(LedgerError):
                await run.writer.write(lambda ledger: ledger.runs.update(record))
        return run

    async def drive(self, show: Show = show_nothing) -> None:
        """Have all shown that was begun, and is from now on, and wait until all rows are driven."""
        if self._driving is not None:
            self._show = show
            while self._begun:
                show(*self._begun.pop(0))
        await (asyncio.shield(self._driving) if self._driving is not None else super().drive(show))

    async def come_to_its_end(self) -> None:
        """Wait for the results of a run that went ahead, whatever became of its flow."""
        if self._driving is not None:
            await self.drive()
            await self.finish()
