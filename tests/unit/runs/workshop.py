"""Runs over a real SQLite ledger in a folder, against the service in memory, one after another."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from patternmill.engine.options import RunOptions
from patternmill.identifiers import RunId
from patternmill.ledger.ledger import Ledger, open_ledger
from patternmill.ledger.records import Approval, Attempt, this_process
from patternmill.profiles import Profile
from patternmill.runs.preview import Preview, make_preview
from patternmill.runs.run import Run, RunEnding
from patternmill.runs.spec import RunSpec
from patternmill.settings import Settings
from patternmill.states import AttemptState, Outcome, RowStatus, Stage
from patternmill.tables.catalog import Catalog, read_catalog
from patternmill.tables.checks import check_catalog
from tests.hostile.in_process import Crash, Create, InProcessApi, Service
from tests.row_results import RowResult, row_results

#: Options that are settings of the run.
MAY_SET = ("approve_above_items", "approve_above_cost", "confirm", "environment")
Driving = Callable[[Run], Awaitable[object]]
Watch = Callable[[Run, InProcessApi], Coroutine[Any, Any, None]]


def rows(*pairs: tuple[str, str]) -> str:
    """A catalog of skus and prompts; each product is named by its sku."""
    return "sku,prompt,category,option:name\n" + "".join(
        f"{sku},{prompt},Tote,{sku}\n" for sku, prompt in pairs
    )


def many(count: int) -> str:
    return rows(*((f"S-{number:03}", f"prompt {number:03}") for number in range(count)))


@dataclass(frozen=True)
class Ended:
    """A run that has ended, and how each row stands."""

    ending: RunEnding
    rows: dict[str, RowResult]
    run: Run

    @property
    def outcome(self) -> Outcome:
        return self.ending.outcome

    @property
    def statuses(self) -> dict[str, RowStatus]:
        return {sku: row.status for sku, row in self.rows.items()}

    @property
    def counts(self) -> Counter[RowStatus]:
        return Counter(self.statuses.values())


@dataclass
class Workshop:
    """One home, one catalog, one service; every call is another run of the same command."""

    home: Path
    service: Service
    #: None: SQLite in `home`.
    ledger_url: SecretStr | None = None
    confirm: str | None = None

    @property
    def settings(self) -> Settings:
        return Settings(
            home=self.home,
            profiles={"staging": Profile(url="http://127.0.0.1:9/v1", key=SecretStr("key"))},
            ledger_url=self.ledger_url,
            confirm_above=10**6,
            confirm=self.confirm,
        )

    def spec(self, *, name: str = "spring", **options: Any) -> RunSpec:
        """Return the terms of a run of a catalog by this name; some options are settings."""
        its = {key: options.pop(key) for key in [*options] if key in MAY_SET}
        settings = self.settings.model_copy(update=its)
        prices = {stage: options.pop(f"{stage}_price", 0) for stage in Stage}
        return RunSpec(str(self.home / "spring.csv"), name, settings, RunOptions(prices=prices, **options))

    def previewed(self, catalog: str, **options: Any) -> Preview:
        """Return what a run would begin with; nothing is written."""
        checked = check_catalog(self.file(catalog), self.service.offer)
        return make_preview(self.spec(**options), checked)

    def run(
        self, catalog: str, *, watch: Watch | None = None, driving: Driving | None = None, **begun: Any
    ) -> Ended:
        """A whole run: begun, driven beside `watch` or as `driving` says, and ended."""

        async def main() -> Ended:
            api, run = await self.begin(catalog, **begun)
            watching = asyncio.create_task(watch(run, api)) if watch else None
            await (driving or drive)(run)
            if watching:
                await watching
            ending = await run.end()
            return Ended(ending, self.results(ending), run)

        return asyncio.run(asyncio.wait_for(main(), 120))

    def broken(
        self, catalog: str, error: type[Exception], *, driving: Driving | None = None, **begun: Any
    ) -> str:
        """A run that cannot be ended, for this error; return the code for which it began nothing more."""

        async def main() -> str:
            _, run = await self.begin(catalog, **begun)
            await (driving or drive)(run)
            with pytest.raises(error):
                await run.end()
            assert run.halt.reason is not None
            return run.halt.reason.code

        return asyncio.run(asyncio.wait_for(main(), 120))

    def at(self, number: int, happens: Callable[[], object]) -> None:
        """Have this happen as the service receives its next create of this number, once."""
        left = iter(range(number))

        def received(_: Create) -> None:
            if next(left, -1) == number - 1:
                happens()

        self.service.at_create = received

    def crash(self, catalog: str, **begun: Any) -> None:
        """A run that ends where the service's `at_create` or `at_job_end` raises Crash; nothing is closed."""

        async def main() -> Run:
            api, run = await self.begin(catalog, **begun)
            driving = asyncio.ensure_future(drive(run))
            crashing = asyncio.ensure_future(api.crashed.wait())
            await asyncio.wait([driving, crashing], return_when=asyncio.FIRST_COMPLETED)
            assert api.crashed.is_set(), "the run ended before it crashed"
            return run

        run = asyncio.run(asyncio.wait_for(main(), 120))
        # As the kernel does for a process that has died.
        run.writer._thread.shutdown(wait=True)
        run.writer._ledger.close()
        self.bury()

    def crash_at(self, create: int, catalog: str, **options: Any) -> None:
        """A run whose process dies as the service receives this create, which it does not execute."""
        self.at(create, self._die)
        self.crash(catalog, **options)
        self.service.at_create = lambda _: None

    def _die(self) -> None:
        raise Crash

    async def begin(
        self,
        catalog: str,
        *,
        retries: bool = False,
        refused: Approval | None = None,
        **options: Any,
    ) -> tuple[InProcessApi, Run]:
        spec = replace(self.spec(**options), retries=retries)
        api = InProcessApi(self.service, in_doubt_limit=spec.options.in_doubt_limit)
        checked = check_catalog(self.file(catalog), self.service.offer)
        run = Run(spec, api=api, checked=checked)
        run.refused = refused
        await run.begin()
        return api, run

    def file(self, catalog: str) -> Catalog:
        return read_catalog(catalog.encode(), "spring.csv")

    def bury(self) -> None:
        """The process that held the catalog is dead: seen from the next run, it was another one."""
        dead = json.dumps({**this_process(), "born": "0"})
        with self.ledger() as ledger, ledger.transaction():
            ledger.database.execute("UPDATE leases SET holder = :dead", {"dead": dead})

    def ledger(self) -> Ledger:
        return open_ledger(self.settings)

    def results(self, ending: RunEnding) -> dict[str, RowResult]:
        with self.ledger() as ledger:
            return {row.sku: row for row in row_results(ledger, ending.record)}

    def attempts(self) -> dict[str, list[Attempt]]:
        """By the name of what was to be made."""
        with self.ledger() as ledger:
            attempts: dict[str, list[Attempt]] = {}
            for key, content, sku in ledger.database.rows("SELECT key, content, sku FROM items ORDER BY key"):
                name = json.loads(content).get("prompt") or sku
                attempts.setdefault(name, []).extend(ledger.purchases.attempts_of(key))
            return attempts

    def state(self, name: str) -> AttemptState:
        return self.attempts()[name][-1].state

    def stranded(self) -> int:
        """Rows whose pattern is there and whose product is not, by the ledger."""
        with self.ledger() as ledger:
            ((count,),) = ledger.database.rows(
                "SELECT count(*) FROM items i JOIN attempts p ON p.item_key = i.pattern_key "
                "AND p.state = 'succeeded' WHERE NOT EXISTS "
                "(SELECT 1 FROM attempts q WHERE q.item_key = i.key AND q.state = 'succeeded')"
            )
            return int(count)


def take_over(shop: Workshop) -> None:
    """Another run takes the catalog while this one stands still."""
    with shop.ledger() as ledger, ledger.transaction():
        lease = ledger.catalogs.lease("staging", "spring")
        assert lease is not None
        ledger.catalogs.claim_lease("staging", "spring", RunId("other"), "", over=lease)


async def drive(run: Run) -> None:
    """Drive the rows of a run, as the flow does."""
    await run.engine.drive()


async def until(condition: Callable[[], bool]) -> None:
    """Wait in turns of the loop, without any time of its own."""
    while not condition():
        await asyncio.sleep(0.001)
