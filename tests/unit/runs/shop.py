"""A catalog that is kept up to date by commands, one after another, against the service in memory."""

from __future__ import annotations

import asyncio
import csv
import json
import secrets
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from patternmill.errors import ConfigurationError
from patternmill.identifiers import RunId
from patternmill.ledger.catalogs import counts_of
from patternmill.ledger.events import Decision, record_decisions
from patternmill.ledger.ledger import open_ledger
from patternmill.ledger.records import this_process
from patternmill.ledger.reports.requests import unsettled
from patternmill.planning.items import Item, Scope, pattern_content
from patternmill.planning.offer import Offer
from patternmill.runs.request import ImportRequest, RefreshRequest, RemakeRequest, RetryRequest
from patternmill.runs.run import Run
from patternmill.runs.settlement import Decision as Settled
from patternmill.runs.settlement import Settlement, settle
from patternmill.runs.spec import run_spec
from patternmill.service.studio_api import StudioApi
from patternmill.settings import Settings, load_settings
from patternmill.states import Decided, RowStatus, Stage
from tests.hostile.in_process import Crash, Create, InProcessApi, Service

Cells = dict[str, str]
Edit = Callable[[list[Cells]], list[Cells]]
COLUMNS = ("sku", "prompt", "category", "option:name")


@dataclass
class Shop:
    """A folder with the source of one catalog, and its results."""

    folder: Path
    service: Service
    #: Of the runs in this process, the newest last.
    apis: list[InProcessApi] = field(default_factory=list)
    #: The last run; by sku, what it had.
    work: Run = field(init=False, repr=False)
    rows: dict[str, RowStatus] = field(default_factory=dict)
    codes: dict[str, str | None] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    #: What it found to differ from the catalog, where it was a refresh.
    changes: Counter[str] = field(default_factory=Counter)
    #: The IDs of all runs, and of the last; and whether its process died.
    runs: list[str] = field(default_factory=list)
    is_dead: bool = False
    #: The limit of items of every run, and what else each is asked with.
    most_items: int | None = None
    terms: dict[str, Any] = field(default_factory=dict)

    @property
    def last(self) -> str:
        return self.runs[-1]

    def die_after(self, creates: int) -> None:
        """The process of the next run dies as the service receives so many requests; the last is not executed."""
        left = iter(range(creates - 1))

        def at_create(create: Create) -> None:
            if next(left, None) is None:
                self.service.at_create = lambda create: None
                raise Crash

        self.service.at_create = at_create

    def offer(self, now: Offer) -> None:
        """Have this read from now on; what was read before is remembered."""
        self.service.offer = now

    def file(self, text: str, name: str = "spring.csv") -> Path:
        (self.folder / name).write_text(text, encoding="utf-8")
        return self.folder / name

    def saved(self, name: str, at: str, edit: Edit = lambda rows: rows) -> Path:
        """Return a file of the first run as a person edits it, and saves it there."""
        rows = edit(read_rows(self.folder / "results/spring" / self.runs[0] / name))
        file = self.folder / at.replace("RUN", self.runs[0])
        file.parent.mkdir(parents=True, exist_ok=True)
        write_rows(file, rows)
        return file

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
        """A results file as a person edits it, and imports it."""
        rows = read_rows(self.folder / "results/spring" / out / name)
        new = corrections.keys() - {row["sku"] for row in rows}
        rows += [dict.fromkeys(rows[0], "") | {"sku": sku, "option:name": sku.lower()} for sku in sorted(new)]
        corrected = [row | corrections.get(row["sku"], {}) for row in rows]
        file = write_rows(self.folder / "corrected.csv", corrected)
        self.load(file)

    def retry(self, run: str = "latest") -> str | None:
        """Retry a run, whose ID is returned; None where nothing of it can be retried."""
        request = RetryRequest(run=run, catalog="spring", max_items=self.most_items, **self.terms)
        spec = run_spec(request)
        if spec.selection is None or not spec.selection.rows:
            return None
        self.through(Run(spec))
        return spec.selection.record.run_id

    def remake(self, *skus: str, **asked: Any) -> bool:
        """Whether there was anything to remake."""
        terms = {"max_items": self.most_items, **self.terms, **asked}
        request = RemakeRequest(catalog="spring", sku=skus, **terms)
        try:
            spec = run_spec(request)
        except ConfigurationError as refused:
            self.notes = (refused.message,)
            return False
        self.through(Run(spec))
        return True

    def decide(self, verdict: Decided, prompt: str, take: int = 1) -> None:
        """On a take of a prompt, that was made or not."""
        item = Item(Stage.PATTERN, Scope("staging", "spring"), pattern_content(prompt, take=take)).key
        decision = Decision(secrets.token_hex(4), item, "", verdict, "", "A. Weaver", datetime.now(UTC))
        with open_ledger(load_settings()) as ledger, ledger.transaction():
            record_decisions(ledger, RunId(self.last), [decision])

    def takes(self) -> dict[str, int]:
        """By sku, the take that the product of the catalog is built on."""
        with open_ledger(load_settings()) as ledger:
            rows = ledger.catalogs.rows("staging", "spring")
            return {row.sku: row.content.take or 1 for row in rows if row.retired_at is None}

    def settle(self, decision: Settled) -> None:
        """Everything that a person may decide about."""
        with open_ledger(load_settings()) as ledger:
            requests, limit = unsettled(ledger, timedelta(0)), timedelta(0)
            asyncio.run(settle(ledger, requests, Settlement(decision, "so", "A. Weaver"), limit=limit))

    def through(self, work: Run) -> None:
        """Carry out a run until its end, or until the service lets the process die."""

        async def main() -> None:
            through = asyncio.create_task(work.run_through())
            dying = asyncio.create_task(self.apis[-1].crashed.wait())
            await asyncio.wait([through, dying], return_when=asyncio.FIRST_COMPLETED)
            if dying.done():
                # Nothing is closed, and what is cancelled as the loop ends can write nothing any more.
                self._bury(work)
                return
            dying.cancel()
            async with work:
                await through

        self.work = work
        asyncio.run(asyncio.wait_for(main(), 120))
        self.runs.append(work.record.run_id)
        self.is_dead = self.apis[-1].crashed.is_set()
        if self.is_dead:
            return
        with open_ledger(load_settings()) as ledger:
            record = work.ended.record
            rows = ledger.runs.rows_of(record.run_id)
            outcomes = {row.sku: json.loads(row.outcome or "{}") for row in rows}
            self.rows = {sku: RowStatus(outcome["status"]) for sku, outcome in outcomes.items()}
            self.codes = {sku: outcome["error_code"] for sku, outcome in outcomes.items()}
        self.notes = tuple(record.options.get("notes", ()))
        counts = counts_of(record) or {}
        self.changes = Counter({kind: count for kind, count in counts.items() if count})

    def _bury(self, work: Run) -> None:
        """As the kernel does for a process that has died."""
        work.writer._thread.shutdown(wait=True)
        work.writer._ledger.close()
        dead = json.dumps({**this_process(), "born": "0"})
        with open_ledger(load_settings()) as ledger, ledger.transaction():
            ledger.database.execute("UPDATE leases SET holder = :dead", {"dead": dead})

    def has(self) -> dict[str, str]:
        """What the catalog has now: by sku, the prompt of its product."""
        with open_ledger(load_settings()) as ledger:
            rows = ledger.catalogs.rows("staging", "spring")
            return {row.sku: row.content.prompt for row in rows if row.retired_at is None}


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


@pytest.fixture
def shop(service: Service, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    its = Shop(tmp_path, service)

    def api(settings: Settings) -> InProcessApi:
        its.apis.append(InProcessApi(service, in_doubt_limit=settings.in_doubt_limit))
        return its.apis[-1]

    monkeypatch.setattr(StudioApi, "from_settings", api)
    monkeypatch.setenv("PATTERNMILL_HOME", str(home))
    addresses = {"staging": "http://127.0.0.1:9/v1", "production": "http://127.0.0.1:10/v1"}
    profiles = {name: {"url": url, "key": "key"} for name, url in addresses.items()}
    monkeypatch.setenv("PATTERNMILL_PROFILES", json.dumps(profiles))
    monkeypatch.setenv("PATTERNMILL_ATTEMPTS", "1")
    monkeypatch.chdir(tmp_path)
    return its
