"""One home with one catalog and a service in memory: whole commands on its files, and runs of the engine alone."""

from __future__ import annotations

import asyncio
import csv
import json
import secrets
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from patternmill.engine.options import RunOptions
from patternmill.errors import ConfigurationError
from patternmill.identifiers import RunId
from patternmill.ledger.catalogs import counts_of
from patternmill.ledger.events import Decision, record_decisions
from patternmill.ledger.ledger import Ledger, open_ledger
from patternmill.ledger.records import Approval, Attempt, this_process
from patternmill.ledger.reports.requests import unsettled
from patternmill.planning.items import Item, Scope, pattern_content
from patternmill.planning.rows import Content
from patternmill.profiles import Profile
from patternmill.runs.preview import Preview, make_preview
from patternmill.runs.request import ImportRequest, RefreshRequest, RemakeRequest, RetryRequest
from patternmill.runs.run import Run, RunEnding
from patternmill.runs.settlement import Resolution, Settlement, settle
from patternmill.runs.spec import RunSpec, run_spec
from patternmill.settings import Settings
from patternmill.states import AttemptState, Decided, Outcome, RowStatus, Stage
from patternmill.tables.catalog import Catalog, read_catalog
from patternmill.tables.checks import check_catalog
from tests.hostile.in_process import Crash, Create, InProcessApi, Service
from tests.row_results import RowResult, row_results

Cells = dict[str, str]
Edit = Callable[[list[Cells]], list[Cells]]
Driving = Callable[[Run], Awaitable[object]]
Watch = Callable[[Run, InProcessApi], Coroutine[Any, Any, None]]
COLUMNS = ("sku", "prompt", "category", "option:name")
ADDRESSES = {"staging": "http://127.0.0.1:9/v1", "production": "http://127.0.0.1:10/v1"}
#: The options that are settings of a run.
MAY_SET = ("approve_above_items", "approve_above_cost", "confirm", "environment")


def rows(*pairs: tuple[str, str]) -> str:
    """Return a catalog of skus and prompts, in which each product is named by its sku."""
    return ",".join(COLUMNS) + "\n" + "".join(f"{sku},{prompt},Tote,{sku}\n" for sku, prompt in pairs)


def many(count: int) -> str:
    return rows(*((f"S-{number:03}", f"prompt {number:03}") for number in range(count)))


@dataclass(frozen=True)
class Ended:
    """A run that has ended, and the state of each row."""

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
    """Runs the engine over texts, or commands over files; every call is another run, in a process that may die."""

    home: Path
    service: Service
    #: The address of the ledger; None for SQLite in `home`.
    ledger_url: SecretStr | None = None
    confirm: str | None = None
    #: The folder of the source and the results of commands.
    folder: Path = Path()
    #: The services of the commands in this process, the newest last.
    apis: list[InProcessApi] = field(default_factory=list)
    #: The run of the last command, and the status of each of its rows by sku.
    work: Run = field(init=False, repr=False)
    rows: dict[str, RowStatus] = field(default_factory=dict)
    codes: dict[str, str | None] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    #: The changes that it found in the catalog, where it was a refresh.
    changes: Counter[str] = field(default_factory=Counter)
    #: The IDs of all runs, and whether the process of the last one died.
    runs: list[str] = field(default_factory=list)
    is_dead: bool = False
    #: The limit of items of every command, and the other options that each is given.
    most_items: int | None = None
    terms: dict[str, Any] = field(default_factory=dict)

    @property
    def settings(self) -> Settings:
        return Settings(
            home=self.home,
            profiles={"staging": Profile(url=ADDRESSES["staging"], key=SecretStr("key"))},
            ledger_url=self.ledger_url,
            confirm_above=10**6,
            confirm=self.confirm,
        )

    def ledger(self) -> Ledger:
        return open_ledger(self.settings)

    # -- runs of the engine

    def spec(self, *, name: str = "spring", **options: Any) -> RunSpec:
        """Return the terms of a run of a catalog by this name; some options are settings."""
        its = {key: options.pop(key) for key in [*options] if key in MAY_SET}
        settings = self.settings.model_copy(update=its)
        prices = {stage: options.pop(f"{stage}_price", 0) for stage in Stage}
        return RunSpec(str(self.home / "spring.csv"), name, settings, RunOptions(prices=prices, **options))

    def previewed(self, catalog: str, **options: Any) -> Preview:
        """Return what a run would begin with; nothing is written."""
        checked = check_catalog(self.read(catalog), self.service.offer)
        return make_preview(self.spec(**options), checked)

    def run(
        self, catalog: str, *, watch: Watch | None = None, driving: Driving | None = None, **begun: Any
    ) -> Ended:
        """Make a whole run: begin it, drive it beside `watch` or as `driving` says, and end it."""

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
        """Make a run that this error keeps from ending; return the code for which it began nothing more."""

        async def main() -> str:
            _, run = await self.begin(catalog, **begun)
            await (driving or drive)(run)
            with pytest.raises(error):
                await run.end()
            assert run.halt.reason is not None
            return run.halt.reason.code

        return asyncio.run(asyncio.wait_for(main(), 120))

    def crash(self, catalog: str, **begun: Any) -> None:
        """Make a run that ends where the service's `at_create` or `at_job_end` raises Crash."""

        async def main() -> None:
            api, run = await self.begin(catalog, **begun)
            assert await self._dies(run, drive(run), api), "the run ended before it crashed"

        asyncio.run(asyncio.wait_for(main(), 120))

    def crash_at(self, create: int, catalog: str, **options: Any) -> None:
        """Make a run whose process dies when the service receives this create, which is not executed."""
        self.die_at(create)
        self.crash(catalog, **options)
        self.service.at_create = lambda _: None

    async def begin(
        self, catalog: str, *, retries: bool = False, refused: Approval | None = None, **options: Any
    ) -> tuple[InProcessApi, Run]:
        spec = replace(self.spec(**options), retries=retries)
        api = InProcessApi(self.service, in_doubt_limit=spec.options.in_doubt_limit)
        checked = check_catalog(self.read(catalog), self.service.offer)
        run = Run(spec, api=api, checked=checked)
        run.refused = refused
        await run.begin()
        return api, run

    def read(self, catalog: str) -> Catalog:
        return read_catalog(catalog.encode(), "spring.csv")

    # -- deaths

    def at(self, number: int, happens: Callable[[], object]) -> None:
        """Have this happen once, when the service receives its next create of this number."""
        left = iter(range(number))

        def received(_: Create) -> None:
            if next(left, -1) == number - 1:
                happens()

        self.service.at_create = received

    def die_at(self, create: int) -> None:
        """Have the process of the next run die when the service receives this create, which is not executed."""

        def die() -> None:
            raise Crash

        self.at(create, die)

    async def _dies(self, run: Run, work: Coroutine[Any, Any, object], api: InProcessApi) -> bool:
        """Await the work, or the death of the process if that comes first: then nothing of it is closed."""
        living, dying = asyncio.create_task(work), asyncio.create_task(api.crashed.wait())
        await asyncio.wait([living, dying], return_when=asyncio.FIRST_COMPLETED)
        if not dying.done():
            dying.cancel()
            async with run:
                await living
            return False
        # What is cancelled as the loop ends can write nothing any more.
        run.writer._thread.shutdown(wait=True)
        run.writer._ledger.close()
        self.bury()
        return True

    def bury(self) -> None:
        """Have the process that held the catalog be dead: to the next run it was another one."""
        dead = json.dumps({**this_process(), "born": "0"})
        with self.ledger() as ledger, ledger.transaction():
            ledger.database.execute("UPDATE leases SET holder = :dead", {"dead": dead})

    # -- commands, whose settings are those of the environment

    @property
    def last(self) -> str:
        return self.runs[-1]

    def file(self, text: str, name: str = "spring.csv") -> Path:
        (self.folder / name).write_text(text, encoding="utf-8")
        return self.folder / name

    def saved(self, name: str, at: str, edit: Edit = lambda rows: rows) -> Path:
        """Return a file of the first run as a person edits it, and saves it there."""
        rows = edit(read_rows(self.folder / "results/spring" / self.runs[0] / name))
        file = self.folder / at.replace("RUN", self.runs[0])
        file.parent.mkdir(parents=True, exist_ok=True)
        return write_rows(file, rows)

    def write(self, rows: Mapping[str, Cells], name: str = "spring.csv") -> Path:
        default = dict.fromkeys(COLUMNS, "") | {"category": "Tote"}
        lines = [{**default, "sku": sku, "option:name": sku.lower(), **cells} for sku, cells in rows.items()]
        return write_rows(self.folder / name, lines)

    def refresh(self, rows: Mapping[str, Cells] | None = None, **asked: Any) -> None:
        if rows:
            self.write(rows)
        self.through(self.refresh_work(**asked))

    def refresh_work(self, **asked: Any) -> Run:
        named = {"source": str(self.folder / "spring.csv"), "catalog": "spring"}
        terms = {"retire": 99, "max_items": self.most_items, **named, **self.terms, **asked}
        return Run(run_spec(RefreshRequest(**terms)))

    def load_source(self, rows: Mapping[str, Cells], name: str = "spring.csv", **asked: Any) -> None:
        self.load(self.write(rows, name) if rows else self.folder / name, catalog="spring", **asked)

    def load(self, file: Path | str, **asked: Any) -> None:
        terms = {"max_items": self.most_items, **self.terms, **asked}
        self.through(Run(run_spec(ImportRequest(file=file, **terms))))

    def correct(self, name: str, corrections: Mapping[str, Cells], out: str = "latest") -> None:
        """Import a results file as a person edits it."""
        rows = read_rows(self.folder / "results/spring" / out / name)
        new = corrections.keys() - {row["sku"] for row in rows}
        rows += [dict.fromkeys(rows[0], "") | {"sku": sku, "option:name": sku.lower()} for sku in sorted(new)]
        corrected = [row | corrections.get(row["sku"], {}) for row in rows]
        self.load(write_rows(self.folder / "corrected.csv", corrected))

    def retry(self, run: str = "latest") -> str | None:
        """Retry a run, whose ID is returned; None where nothing of it can be retried."""
        request = RetryRequest(run=run, catalog="spring", max_items=self.most_items, **self.terms)
        spec = run_spec(request)
        if spec.selection is None or not spec.selection.rows:
            return None
        self.through(Run(spec))
        return spec.selection.record.run_id

    def remake(self, *skus: str, **asked: Any) -> bool:
        """Remake rows, and return whether there was anything to remake."""
        terms = {"max_items": self.most_items, **self.terms, **asked}
        request = RemakeRequest(catalog="spring", sku=skus, **terms)
        try:
            spec = run_spec(request)
        except ConfigurationError as refused:
            self.notes = (refused.message,)
            return False
        self.through(Run(spec))
        return True

    def through(self, work: Run) -> None:
        """Carry out a run until its end, or until the service lets the process die."""

        async def main() -> bool:
            return await self._dies(work, work.run_through(), *self.apis[-1:])

        self.work = work
        self.is_dead = asyncio.run(asyncio.wait_for(main(), 120))
        self.runs.append(work.record.run_id)
        if self.is_dead:
            return
        results = self.results(work.ended)
        self.rows = {sku: row.status for sku, row in results.items()}
        self.codes = {sku: row.error_code for sku, row in results.items()}
        record = work.ended.record
        self.notes = tuple(record.options.get("notes", ()))
        counts = counts_of(record) or {}
        self.changes = Counter({kind: count for kind, count in counts.items() if count})

    # -- what a person decides

    def decide(self, verdict: Decided, prompt: str, take: int = 1) -> None:
        """Decide about a take of a prompt, whether it was made or not."""
        item = Item(Stage.PATTERN, Scope("staging", "spring"), pattern_content(prompt, take=take)).key
        decision = Decision(secrets.token_hex(4), item, "", verdict, "", "A. Weaver", datetime.now(UTC))
        with self.ledger() as ledger, ledger.transaction():
            record_decisions(ledger, RunId(self.last), [decision])

    def settle(self, decision: Resolution) -> None:
        """Settle everything that a person may decide about."""
        with self.ledger() as ledger:
            requests, limit = unsettled(ledger, timedelta(0)), timedelta(0)
            asyncio.run(settle(ledger, requests, Settlement(decision, "so", "A. Weaver"), limit=limit))

    # -- what there is

    def results(self, ending: RunEnding) -> dict[str, RowResult]:
        with self.ledger() as ledger:
            return {row.sku: row for row in row_results(ledger, ending.record)}

    def contents(self) -> dict[str, Content]:
        """Return what the product of each sku that the catalog has now is made of."""
        with self.ledger() as ledger:
            rows = ledger.catalogs.rows("staging", "spring")
            return {row.sku: row.content for row in rows if row.retired_at is None}

    def has(self) -> dict[str, str]:
        """Return the prompt of each sku's product."""
        return {sku: content.prompt for sku, content in self.contents().items()}

    def takes(self) -> dict[str, int]:
        """Return the take that each sku's product is built on."""
        return {sku: content.take or 1 for sku, content in self.contents().items()}

    def products(self) -> dict[str, tuple[str, str]]:
        """Return the product of each sku and the pattern of that, including retired ones."""
        with self.ledger() as ledger:
            rows = ledger.catalogs.rows("staging", "spring")
            return {row.sku: (row.product_id, row.pattern_id) for row in rows}

    def attempts(self) -> dict[str, list[Attempt]]:
        """Return the attempts by the name of what was to be made."""
        with self.ledger() as ledger:
            attempts: dict[str, list[Attempt]] = {}
            for key, content, sku in ledger.database.rows("SELECT key, content, sku FROM items ORDER BY key"):
                name = json.loads(content).get("prompt") or sku
                attempts.setdefault(name, []).extend(ledger.purchases.attempts_of(key))
            return attempts

    def state(self, name: str) -> AttemptState:
        return self.attempts()[name][-1].state


def take_over(shop: Workshop) -> None:
    """Have another run take the catalog while this one stands still."""
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


def read_rows(file: Path) -> list[Cells]:
    """Return the rows of a file; none where there is none."""
    if not file.is_file():
        return []
    with file.open(encoding="utf-8-sig", newline="") as lines:
        return list(csv.DictReader(lines))


def write_rows(file: Path, rows: Sequence[Cells]) -> Path:
    """Write rows with every column that one of them has."""
    with file.open("w", encoding="utf-8-sig", newline="") as lines:
        writer = csv.DictWriter(lines, list(dict.fromkeys(name for row in rows for name in row)), restval="")
        writer.writeheader()
        writer.writerows(rows)
    return file
