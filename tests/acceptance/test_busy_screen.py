"""A Prefect server that refuses, loses or records slowly: the work does not wait, and its record is complete."""

from __future__ import annotations

import contextlib
import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import pytest

from tests.acceptance.evidence import Evidence
from tests.acceptance.harness import Room, ServiceInThread, Zygote, some_rows, wait_for
from tests.acceptance.prefect_servers import (
    NamedServer,
    everything,
    lay_database,
    migrated_database,
    start_import,
)
from tests.acceptance.test_record_agreement import READS, items_of
from tests.hostile import Plan
from tests.hostile.plan import Times

ROWS = 60
#: Several shards wait for their flow runs.
SHARD = 20
SMALL_SHARDS = f"from patternmill.engine import options; options.SHARD_ROWS = {SHARD}"
JOBS = Times("uniform", low=0.5, high=1.0)

#: What a proxy answers in place of the server: a status, or None to let the request through.
Refusal = Callable[[str, str, bytes], int | None]


class Proxy:
    """In front of a real Prefect server; refuses or swallows what the test wants."""

    def __init__(self, port: int, refusal: Refusal) -> None:
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm: ClassVar[bool] = True

            def handle_any(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                status = refusal(self.command, self.path, body)
                if status is not None:
                    self._answer(status, b"", {})
                    return
                passed = {
                    k: v
                    for k, v in self.headers.items()
                    if k.lower() not in ("host", "connection", "accept-encoding")
                }
                with contextlib.closing(HTTPConnection("127.0.0.1", port, timeout=60)) as link:
                    link.request(self.command, self.path, body, passed)
                    answer = link.getresponse()
                    content, kind = answer.read(), answer.getheader("Content-Type") or ""
                self._answer(answer.status, content, {"Content-Type": kind})

            do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = handle_any

            def _answer(self, status: int, content: bytes, headers: dict[str, str]) -> None:
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: Any) -> None:
                """Silent."""

        class Server(ThreadingHTTPServer):
            def handle_error(self, request: Any, client_address: Any) -> None:
                """A client that did not wait for its answer."""

        self._server = Server(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.api_url = f"http://127.0.0.1:{self._server.server_address[1]}/api"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def shard_is_created(method: str, path: str) -> bool:
    return method == "POST" and path in ("/api/flow_runs/", "/api/task_runs/")


class Refusing:
    """Answers 503 to every request that creates a nested run, for so many seconds from the first on."""

    def __init__(self, seconds: float) -> None:
        self._seconds, self._since = seconds, 0.0
        self._top = False
        self.refused = 0

    def __call__(self, method: str, path: str, body: bytes) -> int | None:
        if not shard_is_created(method, path) or not self._top:
            self._top = self._top or shard_is_created(method, path)
            return None
        self._since = self._since or time.monotonic()
        if time.monotonic() - self._since > self._seconds:
            return None
        self.refused += 1
        return 503


class Losing:
    """Accepts every other batch of events and forgets it at first, as a server that is killed with a full queue."""

    def __init__(self) -> None:
        self.batches = self.lost = 0

    def __call__(self, method: str, path: str, body: bytes) -> int | None:
        if method != "POST" or path != "/api/events" or b"prefect.task-run." not in body:
            return None
        self.batches += 1
        if self.batches % 2 or self.lost > 40:
            return None
        self.lost += len(re.findall(rb'"event": ?"prefect\.task-run\.', body))
        return 204


@pytest.fixture
def closing() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture(scope="module")
def server(template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[NamedServer]:
    """A stock server for all tests but the one that kills it; each imports rows of its own name."""
    server = NamedServer(lay_database(template, tmp_path_factory.mktemp("named")))
    server.start()
    server.await_ready()
    yield server
    server.kill()


def run_behind(
    refusal: Refusal, room: Room, server: NamedServer, closing: ExitStack, before: str = SMALL_SHARDS
) -> str:
    """A whole import whose Prefect server stands behind a proxy; returns what it printed."""
    proxy = Proxy(server.port, refusal)
    closing.callback(proxy.close)
    own = {"PATTERNMILL_MAX_IN_FLIGHT": "20", "PREFECT_API_URL": proxy.api_url}
    running = start_import(room, before=before, **own)
    closing.callback(running.kill)
    ended = running.wait(150)
    assert ended.code == 0, ended.output
    return ended.output


def room_of(about: str, folder: Path, zygote: Zygote, closing: ExitStack) -> Room:
    service = closing.enter_context(ServiceInThread(Plan(patterns=JOBS, products=JOBS), folder / "service"))
    return Room(folder / "room", service, some_rows(ROWS, about=about, shared=0), zygote)


def shards_of(about: str, server: NamedServer) -> list[dict[str, Any]]:
    runs = everything(server.api, "flow_runs")
    return [run for run in runs if run["parent_task_run_id"] and f"{about}-" in run["name"]]


def assert_recorded(about: str, room: Room, server: NamedServer, least_seconds: float) -> None:
    """Each item of the ledger has one task run, with its state and its times."""
    items = items_of(Evidence(room, None))
    assert len(items) == 2 * ROWS
    task_runs = {run["name"]: run for run in everything(server.api, "task_runs") if run["name"] in items}
    assert sorted(items.keys() - task_runs.keys()) == []
    assert {name: run["state_type"] for name, run in task_runs.items()} == {
        name: READS[state] for name, state in items.items()
    }
    times = {name: run["total_run_time"] for name, run in task_runs.items()}
    assert {name: seconds for name, seconds in times.items() if seconds < least_seconds} == {}
    shards = shards_of(about, server)
    assert {run["state_type"] for run in shards} == {"COMPLETED"}
    assert len(shards) == ROWS // SHARD


def creates(room: Room) -> list[float]:
    """When the service got creates, in seconds."""
    events = [json.loads(line) for line in room.service.record.read_text().splitlines()]
    return sorted(event["at"] for event in events if event["event"] == "created")


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return migrated_database(tmp_path_factory.getbasetemp())


def test_work_does_not_wait_for_refused_flow_runs(
    tmp_path: Path, server: NamedServer, zygote: Zygote, closing: ExitStack
) -> None:
    """The server refuses nested runs for six seconds: items are made meanwhile, and recorded when it takes them."""
    refusing, room = Refusing(6.0), room_of("refused", tmp_path, zygote, closing)
    output = run_behind(refusing, room, server, closing)
    assert refusing.refused > 3, f"the server refused nothing:\n{output}"
    longest = max(later - earlier for earlier, later in pairwise(creates(room)))
    assert longest < 3.0, f"nothing was begun for {longest:.1f} s:\n{output}"
    # Jobs run for half a second at least, whenever they were recorded.
    assert_recorded("refused", room, server, 0.4)


def test_lost_events_are_sent_again(
    tmp_path: Path, server: NamedServer, zygote: Zygote, closing: ExitStack
) -> None:
    """The server accepts events and loses them: the record is complete when the command ends."""
    losing, room = Losing(), room_of("lost", tmp_path, zygote, closing)
    output = run_behind(losing, room, server, closing)
    assert losing.lost > 10, "the server lost nothing"
    assert "adds the rest" not in output
    # An event that was lost may be the one that corrects a start.
    assert_recorded("lost", room, server, 0.0)


def test_large_run_has_a_task_run_each_shard(
    tmp_path: Path, server: NamedServer, zygote: Zygote, closing: ExitStack
) -> None:
    """Above a number of rows: the shards' counts are in their names, and only failed items have task runs."""
    room = room_of("large", tmp_path, zygote, closing)
    run_behind(lambda *_: None, room, server, closing, f"{SMALL_SHARDS}; options.ITEM_TASK_RUNS_UP_TO = 50")
    shown = [run for run in everything(server.api, "task_runs") if "large" in run["name"]]
    assert sorted(re.sub(r".*: ", "", run["name"]) for run in shown) == [f"{SHARD} of {SHARD} products"] * 3
    assert {run["state_type"] for run in shown} == {"COMPLETED"}
    assert shards_of("large", server) == []


@pytest.mark.soak
def test_next_command_completes_the_record(
    tmp_path: Path, template: Path, zygote: Zygote, closing: ExitStack
) -> None:
    """The server dies in mid-run and stays away: a command that finds it again records what it lacks."""
    service = closing.enter_context(ServiceInThread(Plan(patterns=JOBS, products=JOBS), tmp_path / "service"))
    room = Room(tmp_path / "room", service, some_rows(ROWS, shared=0), zygote)
    server = NamedServer(lay_database(template, tmp_path / "named"))
    closing.callback(server.kill)
    server.start()
    server.await_ready()
    own = {"PATTERNMILL_MAX_IN_FLIGHT": "20", "PREFECT_API_URL": server.api.url}
    running = start_import(room, before=SMALL_SHARDS, **own)
    closing.callback(running.kill)
    wait_for(service.record, '"created"', count=40, timeout=60)
    server.kill()
    ended = running.wait(120)
    assert ended.code == 0, ended.output
    assert "the next command that finds it adds the rest" in ended.output

    server.start()
    server.await_ready()
    assert_next_command_completes(room, server, 2)


@pytest.mark.soak
def test_next_command_shows_a_run_that_had_no_server(
    tmp_path: Path, server: NamedServer, zygote: Zygote, closing: ExitStack
) -> None:
    """Nothing answered at its server's address from the beginning on."""
    room = room_of("absent", tmp_path, zygote, closing)
    ended = start_import(room, PREFECT_API_URL="http://127.0.0.1:9/api").wait(120)
    assert ended.code == 0, ended.output
    assert_next_command_completes(room, server, 2)


def assert_next_command_completes(room: Room, server: NamedServer, runs: int) -> None:
    """A command that finds the server adds what it lacks; then there are so many runs of this file."""
    again = start_import(room, PREFECT_API_URL=server.api.url).wait(120)
    assert again.code == 0, again.output
    assert "in the Prefect UI is complete now" in again.output
    items = items_of(Evidence(room, None))
    shown = {run["name"]: run["state_type"] for run in everything(server.api, "task_runs")}
    assert {name: shown.get(name) for name in items} == {name: READS[state] for name, state in items.items()}
    tops = [run for run in everything(server.api, "flow_runs") if run["parent_task_run_id"] is None]
    assert len(tops) >= runs
    assert {run["state_name"] for run in tops} == {"Completed"}
