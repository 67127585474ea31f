"""The jobs of a catalog that no row of a run's plan waits for: followed to their ends while the run lasts."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from patternmill.engine.engine import Engine
from patternmill.ledger.ledger import Ledger
from patternmill.ledger.records import Attempt
from patternmill.ledger.reports.requests import items_with_attempt
from patternmill.planning.items import Item
from patternmill.planning.plan import TO_DO, Plan
from patternmill.states import Outcome

#: Seconds between two rounds, and how many a run that has nothing else to do waits for the first one.
_ROUND, _FIRST_ROUND = 10.0, 10.0


def open_jobs(ledger: Ledger, plan: Plan) -> list[tuple[Item, Attempt]]:
    """Return the jobs of a catalog that its plan does not follow: of rows edited or gone since, and of other takes."""
    scope = {"environment": plan.scope.environment, "catalog": plan.scope.catalog}
    where = "a.state = 'accepted' AND i.environment = :environment AND i.catalog = :catalog"
    return [
        (Item(item.stage, plan.scope, item.content), item.attempt)
        for item in items_with_attempt(ledger, where, **scope)
        if item.key not in plan.items or plan.items[item.key].reason not in TO_DO
    ]


class OpenJobs:
    """Asks for these jobs in rounds, until they have ended or the run has."""

    def __init__(self, engine: Engine, jobs: list[tuple[Item, Attempt]]) -> None:
        self._engine, self._jobs = engine, jobs
        self._asked = asyncio.Event()
        self._following = asyncio.create_task(self._follow())

    async def _follow(self) -> None:
        while self._jobs:
            asking = (self._engine.ask_once(*job) for job in self._jobs)
            ended = await asyncio.gather(*asking, return_exceptions=True)
            # The next run asks about what could not be asked or recorded.
            self._jobs = [job for job, end in zip(self._jobs, ended, strict=True) if end is False]
            self._asked.set()
            await asyncio.sleep(_ROUND)
        self._asked.set()

    async def stop(self) -> None:
        """Stop asking; each job has been asked for once by then, unless the run was halted for more than a pause."""
        halt = self._engine.halt.reason
        if halt is None or halt.outcome is Outcome.PAUSED:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._asked.wait(), _FIRST_ROUND)
        self._following.cancel()
        await asyncio.gather(self._following, return_exceptions=True)
