"""Runs over a real SQLite ledger in a folder, against the service in memory, one after another."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from pydantic import SecretStr

from patternmill.catalog.catalog_file import CatalogFile
from patternmill.catalog.row_checks import check_rows
from patternmill.catalog.rows import Row
from patternmill.engine.engine import Make
from patternmill.engine.options import RunOptions
from patternmill.ledger.ledger import Ledger, open_ledger
from patternmill.ledger.records import Attempt
from patternmill.profiles import Profile
from patternmill.results.row_results import RowResult, input_file, row_results
from patternmill.runs.lease import this_process
from patternmill.runs.run import Run, RunEnding
from patternmill.runs.spec import RunSpec
from patternmill.service.studio_api import StudioApi
from patternmill.settings import Settings
from patternmill.sheets.csv_reader import parse_catalog
from patternmill.states import AttemptState, Outcome, RowStatus

from .fake_studio import FakeStudioApi, Service

Watch = Callable[[Run, FakeStudioApi], Coroutine[Any, Any, None]]


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

    @property
    def settings(self) -> Settings:
        return Settings(
            home=self.home,
            profiles={"staging": Profile(url="http://127.0.0.1:9/v1", key=SecretStr("key"))},
            ledger_url=self.ledger_url,
            confirm_above=10**6,
        )

    def spec(self, **options: Any) -> RunSpec:
        above = {name: options.pop(name) for name in [*options] if name.startswith("approve_above")}
        settings = self.settings.model_copy(update=above)
        return RunSpec(self.home / "spring.csv", "spring", settings, RunOptions(**options))

    def run(
        self,
        catalog: str,
        *,
        watch: Watch | None = None,
        make: Make | None = None,
        retry: Callable[[Row], bool] = lambda row: False,
        chance: random.Random | None = None,
        **options: Any,
    ) -> Ended:
        """A whole run: begun, driven beside `watch`, and ended."""

        async def main() -> Ended:
            api, run = await self.begin(catalog, retry=retry, chance=chance, **options)
            watching = asyncio.create_task(watch(run, api)) if watch else None
            await drive(run, make)
            if watching:
                await watching
            ending = await run.end()
            return Ended(ending, self.results(ending), run)

        return asyncio.run(asyncio.wait_for(main(), 30))

    def crash(self, catalog: str, *, chance: random.Random | None = None, **options: Any) -> None:
        """A run that ends where the service's `at_create` or `at_job_end` raises Crash; nothing is closed."""

        async def main() -> Run:
            api, run = await self.begin(catalog, chance=chance, **options)
            driving = asyncio.ensure_future(drive(run))
            crashing = asyncio.ensure_future(api.crashed.wait())
            await asyncio.wait([driving, crashing], return_when=asyncio.FIRST_COMPLETED)
            assert api.crashed.is_set(), "the run ended before it crashed"
            return run

        run = asyncio.run(asyncio.wait_for(main(), 30))
        # As the kernel does for a process that has died.
        run.writer._thread.shutdown(wait=True)
        run.writer._ledger.close()
        self.bury()

    async def begin(
        self,
        catalog: str,
        *,
        retry: Callable[[Row], bool] = lambda row: False,
        chance: random.Random | None = None,
        **options: Any,
    ) -> tuple[FakeStudioApi, Run]:
        spec = replace(self.spec(**options), retry=retry)
        api = FakeStudioApi(self.service, in_doubt_limit=spec.options.in_doubt_limit, chance=chance)
        checked = check_rows(self.file(catalog), self.service.offer, prompt_limit=100)
        return api, await Run.begin(spec, checked, cast(StudioApi, api))

    def file(self, catalog: str) -> CatalogFile:
        return parse_catalog(catalog.encode(), name="spring.csv")

    def bury(self) -> None:
        """The process that held the catalog is dead: seen from the next run, it was another one."""
        dead = json.dumps({**this_process(), "born": "0"})
        with self.ledger() as ledger, ledger.transaction():
            ledger.database.execute("UPDATE leases SET holder = :dead", {"dead": dead})

    def ledger(self) -> _Opened:
        return _Opened(open_ledger(self.settings))

    def results(self, ending: RunEnding) -> dict[str, RowResult]:
        with self.ledger() as ledger:
            found = row_results(ledger, ending.record, input_file(ledger, ending.record))
            return {row.sku: row for row in found}

    def attempts(self) -> dict[str, list[Attempt]]:
        """By the name of what was to be made."""
        with self.ledger() as ledger:
            found: dict[str, list[Attempt]] = {}
            for key, content in ledger.database.rows("SELECT key, content FROM items ORDER BY key"):
                what = json.loads(content)
                name = what.get("prompt") or what["sku"]
                found.setdefault(name, []).extend(ledger.purchases.attempts_of(key))
            return found

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


class _Opened:
    """A ledger that is closed after use."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def __enter__(self) -> Ledger:
        return self._ledger

    def __exit__(self, *_: object) -> None:
        self._ledger.close()


async def drive(run: Run, make: Make | None = None) -> None:
    """Drive the rows of a run, as the flow does."""
    await run.engine.drive(make)


async def until(condition: Callable[[], bool]) -> None:
    """Wait in turns of the loop, without any time of its own."""
    while not condition():
        await asyncio.sleep(0.001)
