"""The jobs of a catalog that nothing of a run's plan waits for: followed to their end while the run lasts."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from patternmill.engine.engine import Engine
from patternmill.ledger.ledger import Ledger
from patternmill.ledger.records import Attempt
from patternmill.ledger.reports.items import items_with_attempt
from patternmill.planning.items import Item
from patternmill.planning.plan import TO_DO, Plan

#: Seconds between two rounds, and for how long a run that has nothing else to do waits for the first one.
_ROUND, _FIRST_ROUND = 10.0, 10.0


def open_jobs(ledger: Ledger, plan: Plan) -> list[tuple[Item, Attempt]]:
    """Return the jobs of the plan's catalog that the plan does not follow: of edited rows, other takes, other rows."""
    scope = {"environment": plan.scope.environment, "catalog": plan.scope.catalog}
    where = "a.state = 'accepted' AND i.environment = :environment AND i.catalog = :catalog"
    return [
        (Item(one.stage, plan.scope, one.content), one.attempt)
        for one in items_with_attempt(ledger, where, scope)
        if one.key not in plan.items or plan.items[one.key].reason not in TO_DO
    ]


class OpenJobs:
    """Asks for each of them in rounds, until they have ended or the run has."""

    def __init__(self, engine: Engine, jobs: list[tuple[Item, Attempt]]) -> None:
        self._engine, self._jobs = engine, jobs
        self._asked = asyncio.Event()
        self._following = asyncio.create_task(self._follow())

    async def _follow(self) -> None:
        while self._jobs:
            asking = (self._engine.ask_once(*job) for job in self._jobs)
            ended = await asyncio.gather(*asking, return_exceptions=True)
            # What cannot be asked or recorded is for the next run.
            self._jobs = [job for job, end in zip(self._jobs, ended, strict=True) if end is False]
            self._asked.set()
            await asyncio.sleep(_ROUND)
        self._asked.set()

    async def stop(self) -> None:
        """Follow them no longer; each has been asked for once, unless the run was halted."""
        if self._engine.halt.reason is None:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._asked.wait(), _FIRST_ROUND)
        self._following.cancel()
        await asyncio.gather(self._following, return_exceptions=True)
