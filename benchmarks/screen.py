"""`python -m benchmarks.screen`: what the Prefect UI shows of a run, and whether work waits for it."""

from __future__ import annotations

import argparse
import json
import re
import shutil
import signal
import sqlite3
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import ours
from benchmarks.measure import BATCHED, FakeService, PrefectServer, run
from benchmarks.scenarios import write_rows
from patternmill.engine.groups import partition
from tests.acceptance.browser import BROWSERS, Browser

TIMEOUT = 3600.0
POSTGRES = "127.0.0.1:5432"
REDIS_PORT = "6379"
#: How the ledger's state of an item reads in the Prefect UI.
READS = {"succeeded": "COMPLETED", "failed": "FAILED", "rejected": "FAILED", "held": "FAILED"}


@dataclass(frozen=True)
class Load:
    """An import: rows, the window, and how long jobs take (medians, in seconds)."""

    rows: int
    window: int
    pattern_seconds: float
    product_seconds: float

    def describe(self) -> str:
        jobs = f"{self.pattern_seconds:g} s and {self.product_seconds:g} s"
        return f"{self.rows:,} rows, {self.window} in flight, jobs of {jobs}"


LOADS = {
    "24": Load(24, 24, 3.0, 1.0),
    "500": Load(500, 400, 3.0, 1.0),
    "600": Load(600, 400, 3.0, 1.0),
    "600-long": Load(600, 400, 75.0, 20.0),
    "3000": Load(3000, 400, 10.0, 3.0),
    "10000": Load(10_000, 500, 10.0, 3.0),
    "30000": Load(30_000, 1000, 3.0, 3.0),
}
SERVERS = ("own", "stock", "postgres", "redis")
TROUBLES = ("none", "killed", "frozen")
JOBS_BEFORE_TROUBLE = 100
#: For a server to record what it was sent; a stock one records one task run at a time.
RECORDING_SECONDS = 120.0
#: Of so many prompts one has products that fail.
FAILING = 20
#: What an import ends with where some of its rows failed.
SOME_FAILED = 3
#: Up to so many rows each item is a task run.
MOST_ROWS_AS_ITEMS = 500
GROUP = re.compile(r"([\d,]+) of ([\d,]+) products?")


@dataclass
class Figures:
    """One run, as the service, the ledger and the Prefect server have it."""

    server: str
    load: str
    trouble: str
    code: int
    seconds: float
    items: int = 0
    recorded: int = 0
    agree: int = 0
    flow_state: str = ""
    stall: float = 0.0
    over_shortest: float = 0.0
    #: Seconds until the run's page shows its name and state in a browser; None: no browser here, or no page.
    page: float | None = None
    output: str = field(default="", repr=False)

    def line(self) -> str:
        shown = f"{self.recorded:,} of {self.items:,}"
        return (
            f"| {self.server} | {self.load} | {self.trouble} | {shown} | {self.agree:,} | {self.stall:.1f} s "
            f"| {self.over_shortest:.2f} | {self.seconds:.0f} s | {self.flow_state} "
            f"| {'not opened' if self.page is None else f'{self.page:.1f} s'} |"
        )


HEAD = (
    "| server | load | trouble | task runs recorded | in the ledger's state | longest stall | makespan over the "
    "shortest possible | command | flow run | its page opens in |\n|---|---|---|---|---|---|---|---|---|---|"
)


@contextmanager
def prefect_server(kind: str, folder: Path) -> Iterator[PrefectServer]:
    """A server of one kind, on a database of its own."""
    if kind in ("own", "stock"):
        with PrefectServer(folder, BATCHED if kind == "own" else {}) as server:
            yield server
        return
    name = f"patternmill_screen_{uuid.uuid4().hex[:8]}"
    settings = BATCHED | {
        "PREFECT_SERVER_DATABASE_CONNECTION_URL": f"postgresql+asyncpg://postgres@{POSTGRES}/{name}"
    }
    if kind == "redis":
        settings |= redis_settings()
    with (
        database(name),
        PrefectServer(folder, settings) as server,
        second_api(settings) if kind == "redis" else nullcontext(),
    ):
        yield server


def redis_settings() -> dict[str, str]:
    return {
        "PREFECT_SERVER_EVENTS_MESSAGING_BROKER": "prefect_redis.messaging",
        "PREFECT_SERVER_EVENTS_MESSAGING_CACHE": "prefect_redis.messaging",
        "PREFECT_SERVER_EVENTS_CAUSAL_ORDERING": "prefect_redis.ordering",
        "PREFECT_SERVER_CONCURRENCY_LEASE_STORAGE": "prefect_redis.lease_storage",
        "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_READ_BATCH_SIZE": "200",
        "PREFECT_REDIS_MESSAGING_HOST": "127.0.0.1",
        "PREFECT_REDIS_MESSAGING_PORT": REDIS_PORT,
        "PREFECT_SERVER_DOCKET_URL": f"redis://127.0.0.1:{REDIS_PORT}/1",
    }


@contextmanager
def database(name: str) -> Iterator[None]:
    import psycopg

    with psycopg.connect(f"postgresql://postgres@{POSTGRES}/postgres", autocommit=True) as admin:
        admin.execute(f'CREATE DATABASE "{name}"'.encode())
        try:
            yield
        finally:
            admin.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)'.encode())


@contextmanager
def second_api(settings: Mapping[str, str]) -> Iterator[None]:
    """Another API process on the same database, without services; requests go to either."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        more = {**settings, "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_ENABLED": "true"}
        with PrefectServer(folder, more):
            yield


@contextmanager
def in_trouble(server: PrefectServer, trouble: str, jobs_begun: Callable[[], int]) -> Iterator[None]:
    """Twenty seconds without the server, once the run has begun so many jobs."""
    over = threading.Event()

    def cause() -> None:
        while jobs_begun() < JOBS_BEFORE_TROUBLE:
            if over.wait(0.5):
                return
        if trouble == "frozen":
            server.send(signal.SIGSTOP)
            over.wait(20)
            server.send(signal.SIGCONT)
        else:
            server.kill()
            over.wait(20)
            server.start()

    thread = threading.Thread(target=cause)
    if trouble != "none":
        thread.start()
    try:
        yield
    finally:
        over.set()
        if trouble != "none":
            thread.join()


def measure(kind: str, name: str, trouble: str) -> Figures:
    load = LOADS[name]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="patternmill-screen-")))
        rows, home = folder / "rows.csv", folder / "home"
        home.mkdir()
        write_rows(rows, load.rows)
        server = stack.enter_context(prefect_server(kind, folder))
        service = stack.enter_context(
            FakeService(load.pattern_seconds, load.product_seconds, sigma=0.2, failing=FAILING)
        )
        env = ours.environment(service.url, server.api_url, home, window=load.window)
        command = ours.command(rows, folder / "out", paced=load.pattern_seconds > 1)
        began = time.monotonic()
        with in_trouble(server, trouble, lambda: int(service.stats(load.window)["jobs"])):
            usage = run(command, env, folder, timeout=TIMEOUT)
        stats = service.stats(load.window)
        found = Figures(
            kind, load.describe(), trouble, usage.code, time.monotonic() - began, output=usage.output
        )
        found.stall = stats["longest_stall"]
        found.over_shortest = stats["span"] / (stats["shortest"] or 1.0)
        until = time.monotonic() + RECORDING_SECONDS
        compare(found, home, server)
        while found.agree < found.items and time.monotonic() < until:
            time.sleep(2)
            compare(found, home, server)
        found.page = page_seconds(server, folder)
        return found


def ask_ledger(home: Path, sql: str) -> list[tuple[Any, ...]]:
    (ledger,) = home.glob("**/ledger.sqlite3")
    with closing(sqlite3.connect(ledger)) as connection:
        return connection.execute(sql).fetchall()


def ledger_states(home: Path) -> dict[str, str]:
    """The state of each item's last attempt, by the name of its task run."""
    found = {}
    for stage, content, state in ask_ledger(
        home,
        "SELECT i.stage, i.content, a.state FROM attempts a JOIN items i ON i.key = a.item_key ORDER BY a.attempt",
    ):
        about = json.loads(content)["prompt" if stage == "pattern" else "sku"]
        found[f"{stage} · {about}"] = state
    return found


def ledger_groups(home: Path) -> Counter[tuple[str, str, str]]:
    """Of the groups of rows: how many products were made, of how many, and how their task runs should read."""
    made = {key for (key,) in ask_ledger(home, "SELECT item_key FROM attempts WHERE state = 'succeeded'")}
    rows = ask_ledger(home, "SELECT pattern_key, product_key FROM run_rows ORDER BY position")
    groups = Counter[tuple[str, str, str]]()
    for group in partition(rows):
        count = sum(rows[row][1] in made for row in group)
        state = "COMPLETED" if count == len(group) else "FAILED"
        groups[f"{count:,}", f"{len(group):,}", state] += 1
    return groups


def compare(found: Figures, home: Path, server: PrefectServer) -> None:
    """Count the task runs that agree with the ledger: one an item, above 500 rows one a group."""
    items, groups = ledger_states(home), ledger_groups(home)
    task_runs = {run["name"]: run for run in every(server.api_url, "task_runs")}
    if len(items) <= 2 * MOST_ROWS_AS_ITEMS:
        shown = {name: run["state_type"] for name, run in task_runs.items() if name in items}
        found.items = len(items)
        found.agree = sum(READS.get(state) == shown.get(name) for name, state in items.items())
        found.recorded = len(shown)
    else:
        ends = [
            (match[1], match[2], run["state_type"])
            for run in task_runs.values()
            if (match := GROUP.match((run["state"] or {}).get("message") or ""))
        ]
        found.items, found.recorded = groups.total(), sum(" · " in name for name in task_runs)
        found.agree = (Counter(ends) & groups).total()
    found.flow_state = ", ".join(run["state"]["name"] for run in every(server.api_url, "flow_runs"))


def page_seconds(server: PrefectServer, folder: Path) -> float | None:
    """How long a browser that has just started needs to show the run's page; None without a browser or a page."""
    tops = [*every(server.api_url, "flow_runs")]
    if not tops or not any(map(shutil.which, BROWSERS)):
        return None
    (top,) = tops
    with Browser(folder / "browser") as browser:
        began = time.monotonic()
        browser.open(f"{server.api_url.removesuffix('/api')}/runs/flow-run/{top['id']}")
        browser.shows(top["name"])
        browser.shows(top["state"]["name"])
        return time.monotonic() - began


def every(api_url: str, kind: str) -> Iterator[dict[str, Any]]:
    offset = 0
    while True:
        page = ask(f"{api_url}/{kind}/filter", {"limit": 200, "offset": offset, "sort": "ID_DESC"})
        yield from page
        offset += 200
        if len(page) < 200:
            return


def ask(url: str, body: object) -> Any:
    request = urllib.request.Request(
        url, json.dumps(body).encode(), {"Content-Type": "application/json"}, method="POST"
    )
    for _ in range(30):
        with suppress(OSError, urllib.error.URLError), urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)
        time.sleep(1)
    raise SystemExit(f"{url} does not answer")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.screen", description=__doc__)
    parser.add_argument("--server", action="append", choices=SERVERS)
    parser.add_argument("--load", action="append", choices=tuple(LOADS))
    parser.add_argument("--trouble", action="append", choices=TROUBLES)
    arguments = parser.parse_args()
    print(HEAD, flush=True)
    failed = False
    for kind in arguments.server or SERVERS:
        for load in arguments.load or ("600", "3000"):
            for trouble in arguments.trouble or ("none",):
                found = measure(kind, load, trouble)
                failed = failed or found.code not in (0, SOME_FAILED) or found.agree < found.items
                print(found.line(), flush=True)
                if found.code not in (0, SOME_FAILED) or not found.flow_state:
                    print(found.output[-1500:], file=sys.stderr, flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
