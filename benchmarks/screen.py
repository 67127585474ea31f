"""`python -m benchmarks.screen`: what the Prefect UI shows of a run, and whether work waits for it."""

from __future__ import annotations

import argparse
import json
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
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path
from typing import Any

from benchmarks import ours
from benchmarks.measure import BATCHED, FakeService, PrefectServer, run
from benchmarks.scenarios import write_rows
from patternmill.engine import options
from tests.acceptance.browser import BROWSERS, Browser

TIMEOUT = 3600.0
SHARD_ROWS = options.SHARD_ROWS
ITEM_TASK_RUNS_UP_TO = options.ITEM_TASK_RUNS_UP_TO
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
    "600": Load(600, 400, 3.0, 1.0),
    "600-long": Load(600, 400, 75.0, 20.0),
    "3000": Load(3000, 400, 10.0, 3.0),
    "10000": Load(10_000, 500, 10.0, 3.0),
    "100000": Load(100_000, 1000, 1.0, 1.0),
}
SERVERS = ("own", "stock", "postgres", "redis")
TROUBLES = ("none", "killed", "frozen")
JOBS_BEFORE_TROUBLE = 100


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
        service = stack.enter_context(FakeService(load.pattern_seconds, load.product_seconds, sigma=0.2))
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
        compare(found, ledger_states(home), server)
        found.page = page_seconds(server, folder)
        return found


def ledger_states(home: Path) -> dict[str, str]:
    """The state of each item's last attempt, by the name of its task run."""
    (ledger,) = home.glob("**/ledger.sqlite3")
    with sqlite3.connect(ledger) as connection:
        rows = connection.execute(
            "SELECT i.stage, i.content, a.state FROM attempts a JOIN items i ON i.key = a.item_key ORDER BY a.attempt"
        )
        found = {}
        for stage, content, state in rows:
            about = json.loads(content)["prompt" if stage == "pattern" else "sku"]
            found[f"{stage} · {about}"] = state
        return found


def compare(found: Figures, items: Mapping[str, str], server: PrefectServer) -> None:
    """Count what agrees with the ledger: a task run an item, or where there are too many a task run a shard."""
    shards = ceil(len(items) / 2 / SHARD_ROWS) if len(items) / 2 > ITEM_TASK_RUNS_UP_TO else 0
    names = Counter[str]()
    states: dict[str, str] = {}
    for task_run in every(server.api_url, "task_runs"):
        if task_run["name"] in items or (shards and task_run["name"].endswith(" products")):
            names[task_run["name"]] += 1
            states[task_run["name"]] = task_run["state_type"]
    if shards:
        # Items that failed are not part of these loads; a shard's name says how many of its products were made.
        items = {name: "succeeded" for name in names} | {
            f"missing {n}": "" for n in range(len(names), shards)
        }
    found.items = len(items)
    found.recorded = sum(count == 1 for count in names.values())
    found.agree = sum(READS.get(state) == states.get(name) for name, state in items.items())
    tops = [run for run in every(server.api_url, "flow_runs") if run["parent_task_run_id"] is None]
    found.flow_state = ", ".join(run["state"]["name"] for run in tops)


def page_seconds(server: PrefectServer, folder: Path) -> float | None:
    """How long a browser that has just started needs to show the run's page; None without a browser or a page."""
    tops = [run for run in every(server.api_url, "flow_runs") if run["parent_task_run_id"] is None]
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
                failed = failed or found.code != 0
                print(found.line(), flush=True)
                if found.code:
                    print(found.output[-1500:], file=sys.stderr, flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
