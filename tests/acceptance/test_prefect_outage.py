"""A Prefect server that is away, killed, frozen or locked out of its database: the run goes on and ends right."""

from __future__ import annotations

import itertools
import json
import os
import signal
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.evidence import Evidence
from tests.acceptance.harness import Ended, Room, Started, Zygote, some_rows, wait_for
from tests.acceptance.prefect_servers import (
    Gate,
    NamedServer,
    eventually,
    everything,
    lay_database,
    migrated_database,
    recorded,
    start_import,
)
from tests.hostile import Hostile, Plan, Rule
from tests.hostile.plan import Times
from tests.prefect_api import OPEN_STATES

pytestmark = pytest.mark.soak

ROWS = 20
WINDOW = "10"
#: Runs side by side; more only wait for the processor.
AT_ONCE = 4
SECOND = Times(median=1.0)
#: The offer takes its time, so that a server can be killed before anything is bought.
SLOW_OFFER = Plan(
    patterns=SECOND, products=SECOND, rules=(Rule("categories/list", "late", {"delay": 5.0}, times=1),)
)
PATIENT = {"PATTERNMILL_REQUEST_TIMEOUT": "PT20S"}
MakeRoom = Callable[..., Room]
#: A whole run of these rows takes some 10 seconds with its start, more side by side; a lost server adds 12 at its end,
#: and before it begins the patience of Prefect's client.
BOUND = 90.0
#: How long a run may take to begin, on a busy machine.
PATIENCE = 150.0
#: For how long a server is away that comes back.
GAP = 6.0
REPORTS = ("driven without Prefect", "did not get all of this run")


@dataclass
class Stage:
    """One run with a service of its own, and whatever servers it is shown on."""

    room: Room
    template: Path
    closing: ExitStack
    running: Started | None = None

    def begin(self, *, behind_a_gate: bool = False) -> tuple[NamedServer, Gate]:
        """Start the import on a server that a user runs."""
        server = NamedServer(lay_database(self.template, self.room.folder / "named"))
        self.closing.callback(server.kill)
        server.start()
        server.await_ready()
        gate = self.closing.enter_context(closing(Gate(server.port)))
        self._start(PREFECT_API_URL=gate.api_url if behind_a_gate else server.api.url)
        return server, gate

    def begin_on_own_server(self) -> Path:
        """Start the import with a server of its own; returns the folder of that."""
        directory = lay_database(self.template, self.room.folder / self.room.home)
        self._start()
        return directory

    def _start(self, **environment: str) -> None:
        self.running = start_import(self.room, PATTERNMILL_MAX_IN_FLIGHT=WINDOW, **environment)
        self.closing.callback(self.running.kill)

    @property
    def output(self) -> str:
        assert self.running is not None, "it was not begun"
        return self.running.output

    def end(self) -> Ended:
        assert self.running is not None, "it was not begun"
        return self.running.wait(BOUND + 10)

    def await_purchases(self, count: int = 12) -> None:
        wait_for(self.room.service.record, '"created"', count=count, timeout=PATIENCE)

    def await_results(self) -> None:
        eventually((self.room.out / "results.csv").exists, PATIENCE)


Play = Callable[[Stage], Ended]


def killed_before_the_rows_begin(stage: Stage) -> Ended:
    """The flow has begun and reads the offer."""
    server, _ = stage.begin()
    eventually(lambda: any(r["state_type"] == "RUNNING" for r in everything(server.api, "flow_runs")), 90)
    server.kill()
    assert '"created"' not in stage.room.service.record.read_text(), "it was killed too late"
    return stage.end()


def killed_in_mid_run(stage: Stage) -> Ended:
    """Half of the patterns are bought when it goes."""
    server, _ = stage.begin()
    stage.await_purchases()
    server.kill()
    return stage.end()


def frozen_in_mid_run(stage: Stage) -> Ended:
    """A server that accepts connections and never answers counts as lost."""
    server, _ = stage.begin()
    stage.await_purchases()
    server.send(signal.SIGSTOP)
    return stage.end()


def away_for_a_while_at_the_end(stage: Stage) -> Ended:
    """It is back before the run is over: the run itself does not read as failed."""
    server, gate = stage.begin(behind_a_gate=True)
    stage.await_results()
    return end_with_a_gap(stage, server, gate)


def end_with_a_gap(stage: Stage, server: NamedServer, gate: Gate) -> Ended:
    gate.shut()
    time.sleep(GAP)
    gate.open()
    ended = stage.end()
    assert_record_agrees(stage.room, server.directory, "Completed")
    return ended


def own_server_killed_in_mid_run(stage: Stage) -> Ended:
    """It is not started again: `status` has what its history lacks."""
    directory = stage.begin_on_own_server()
    stage.await_purchases()
    kill_own_server(directory)
    return stage.end()


def own_servers_database_locked(stage: Stage) -> Ended:
    """Somebody holds it for ten seconds: the server waits, the run does not, and the record becomes whole."""
    directory = stage.begin_on_own_server()
    stage.await_purchases()
    with closing(sqlite3.connect(directory / "prefect.db", timeout=20, isolation_level=None)) as intruder:
        intruder.execute("BEGIN EXCLUSIVE")
        time.sleep(10)
        intruder.execute("ROLLBACK")
    ended = stage.end()
    assert_record_agrees(stage.room, directory, "Completed")
    return ended


#: Those that cost the record its end.
LOSSES: tuple[Play, ...] = (
    frozen_in_mid_run,
    own_server_killed_in_mid_run,
    killed_before_the_rows_begin,
    killed_in_mid_run,
)
#: Those after which it is whole.
GAPS: tuple[Play, ...] = (
    own_servers_database_locked,
    away_for_a_while_at_the_end,
)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return migrated_database(tmp_path_factory.getbasetemp())


@pytest.fixture(scope="module")
def played(
    request: pytest.FixtureRequest, template: Path, tmp_path_factory: pytest.TempPathFactory, zygote: Zygote
) -> Iterator[Mapping[str, tuple[Room, Future[Ended]]]]:
    """The plays that are asked for, side by side: each is mostly waiting."""
    asked = [item.callspec.params.get("play") for item in request.session.items if hasattr(item, "callspec")]
    with ExitStack() as stack:
        players = stack.enter_context(ThreadPoolExecutor(AT_ONCE))
        games = {}
        for play in (*LOSSES, *GAPS):
            if name(play) in asked:
                folder = tmp_path_factory.mktemp(name(play))
                service = stack.enter_context(Hostile(SLOW_OFFER, folder / "service"))
                room = Room(folder / "room", service, some_rows(ROWS), zygote, PATIENT)
                games[name(play)] = room, players.submit(play, Stage(room, template, stack))
        yield games


def name(play: Play) -> str:
    return play.__name__


@pytest.fixture
def make_room(tmp_path: Path, zygote: Zygote) -> Iterator[MakeRoom]:
    """A catalog and a service."""
    with ExitStack() as stack:

        def make(rows: int, plan: Plan) -> Room:
            service = stack.enter_context(Hostile(plan, tmp_path / "service"))
            return Room(tmp_path / "room", service, some_rows(rows), zygote)

        yield make


def assert_right(room: Room, ended: Ended, code: int = 0) -> None:
    """Whatever became of the server: the exit code, the goods, the files; and a quiet terminal."""
    assert ended.code == code, ended.output
    for word in ("Traceback", "Warning", "ERROR", "Retry handling"):
        assert word not in ended.out + ended.err, ended.output
    assert Evidence(room).faults() == [], ended.output


def assert_reported(ended: Ended) -> None:
    """A message says that the UI does not show everything."""
    assert any(report in ended.err for report in REPORTS), ended.output
    assert "In the Prefect UI" not in ended.out, ended.output


def test_server_absent_at_the_start(make_room: MakeRoom) -> None:
    """Nothing listens at the address: one message, and the run is driven without a record."""
    room = make_room(ROWS, Plan())
    ended = start_import(room, PREFECT_API_URL="http://127.0.0.1:9/api").wait(BOUND)
    assert_right(room, ended)
    assert_reported(ended)
    assert ended.err.count("driven without Prefect") == 1


@pytest.mark.parametrize("play", [name(play) for play in LOSSES])
def test_lost_server(played: Mapping[str, tuple[Room, Future[Ended]]], play: str) -> None:
    """The run ends in bounded time with everything made, and reports that the record is not complete."""
    room, playing = played[play]
    ended = playing.result()
    assert_right(room, ended)
    assert_reported(ended)


@pytest.mark.parametrize("play", [name(play) for play in GAPS])
def test_returning_server(played: Mapping[str, tuple[Room, Future[Ended]]], play: str) -> None:
    """The run does not wait for it, and its record is complete in the end."""
    room, playing = played[play]
    ended = playing.result()
    assert_right(room, ended)
    assert "In the Prefect UI" in ended.out, ended.output


def test_groups_do_not_wait_for_a_frozen_server(template: Path, make_room: MakeRoom) -> None:
    """It is woken when 400 more patterns and products were bought: a run that waited for it would not get there."""
    room = make_room(600, Plan(patterns=SECOND, products=SECOND))
    server = NamedServer(lay_database(template, room.folder / "named"))
    server.start()
    try:
        server.await_ready()
        running = start_import(room, PATTERNMILL_MAX_IN_FLIGHT="100", PREFECT_API_URL=server.api.url)
        wait_for(room.service.record, '"created"', count=200, timeout=120)
        server.send(signal.SIGSTOP)
        wait_for(room.service.record, '"created"', count=600, timeout=60)
        server.send(signal.SIGCONT)
        assert_right(room, running.wait(300))
    finally:
        server.kill()


def kill_own_server(directory: Path) -> None:
    """Found by its command line, which names the lock of its users."""
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            arguments = place.read_bytes().split(b"\0")
        except OSError:
            continue
        if str(directory / "users.lock").encode() in arguments:
            os.kill(int(place.parent.name), signal.SIGKILL)
            return
    raise AssertionError("the own server was not found")


def assert_record_agrees(room: Room, directory: Path, outcome: str) -> None:
    """Names and states in a server's database, against results.jsonl."""
    flow_runs, task_runs = recorded(directory, "flow_run"), recorded(directory, "task_run")
    assert [r["name"] for r in (*flow_runs, *task_runs) if r["state_type"] in OPEN_STATES] == []
    assert [run["state_name"] for run in flow_runs] == [outcome]
    shown = Counter((run["name"], run["state_type"]) for run in task_runs if " · " in run["name"])
    assert shown - Counter(dict.fromkeys(shown, 1)) == Counter(), "an item has two task runs"
    assert set(shown) == set(itertools.chain.from_iterable(map(expected_items, results_of(room))))


def results_of(room: Room) -> list[dict[str, Any]]:
    with (room.out / "results.jsonl").open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def expected_items(row: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The task runs that a row of the results must have left."""
    yield f"pattern · {row['prompt']}", "COMPLETED" if row["pattern_id"] else "FAILED"
    if row["pattern_id"]:
        yield f"product · {row['sku']}", "COMPLETED" if row["product_id"] else "FAILED"
