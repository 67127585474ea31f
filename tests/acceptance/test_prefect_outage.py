"""What becomes of a flow run whose server is away, killed or frozen, or whose run a person pauses, cancels or kills.

In each case the run goes on or ends in order, and what the server shows is true, at the latest after the next run.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.evidence import Evidence
from tests.acceptance.harness import Ended, Room, Started, Zygote, some_rows, wait_for, write_csv
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

pytestmark = [pytest.mark.soak, pytest.mark.timeout(600)]

ROWS = 20
SECOND = Times(median=1.0)
#: A slow answer about the offer, so that a server can be killed before anything is bought.
SLOW_OFFER = Rule("categories/list", "late", {"delay": 5.0}, nth=(1,))
#: Seconds for a whole run. It takes some 10 with its start; a lost server adds 15 at the end, and the patience of
#: Prefect's client before the run begins.
BOUND = 150.0
#: The seconds for which a server that comes back is away.
GAP = 6.0
REPORTS = ("driven without Prefect", "did not get all of this run")


class Stage:
    """A room with a service of its own, a server that a user runs, and an import that is shown there."""

    def __init__(self, stack: ExitStack, folder: Path, template: Path, zygote: Zygote) -> None:
        plan = Plan(patterns=SECOND, products=SECOND, rules=(SLOW_OFFER,))
        service = stack.enter_context(Hostile(plan, folder / "service"))
        patient = {"PATTERNMILL_REQUEST_TIMEOUT": "PT20S", "PATTERNMILL_MAX_IN_FLIGHT": "6"}
        self.room = Room(folder / "room", service, some_rows(ROWS, shared=0), zygote, patient)
        #: The folder where the home's own server would have its database.
        self.own = lay_database(template, folder / "room" / "home")
        self.server = NamedServer(lay_database(template, folder / "named"))
        self._stack = stack
        stack.callback(self.server.kill)

    def begin_on_own_server(self, **environment: str) -> Started:
        running = start_import(self.room, **environment)
        self._stack.callback(running.kill)
        return running

    def begin(self, *, behind_a_gate: bool = False) -> tuple[Started, Gate | None]:
        if not self.server.is_running:
            self.server.start()
        self.server.await_ready()
        gate = self._stack.enter_context(closing(Gate(self.server.port))) if behind_a_gate else None
        url = gate.api_url if gate is not None else self.server.api.url
        return self.begin_on_own_server(PREFECT_API_URL=url), gate

    def begin_and_buy(self) -> Started:
        running, _ = self.begin()
        self.await_purchases()
        return running

    def await_purchases(self, count: int = 12) -> None:
        wait_for(self.room.service.record, '"created"', count=count, timeout=BOUND)

    @property
    def created(self) -> int:
        return self.room.service.record.read_text().count('"created"')

    def flow_runs(self) -> list[dict[str, Any]]:
        return sorted(everything(self.server.api, "flow_runs"), key=lambda run: str(run["created"]))

    def ends(self) -> list[str]:
        return [run["state_name"] for run in self.flow_runs()]

    def open_task_runs(self) -> list[str]:
        runs = everything(self.server.api, "task_runs")
        return [run["name"] for run in runs if run["state_type"] in OPEN_STATES]

    def assert_made(self, ended: Ended) -> None:
        """Check exit code, goods, files and a quiet terminal, whatever became of the server."""
        assert ended.code == 0, ended.output
        for word in ("Traceback", "Warning", "ERROR", "Retry handling"):
            assert word not in ended.out + ended.err, ended.output
        assert Evidence(self.room).faults() == [], ended.output


@pytest.fixture
def stage(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, zygote: Zygote) -> Iterator[Stage]:
    with ExitStack() as stack:
        yield Stage(stack, tmp_path, migrated_database(tmp_path_factory.getbasetemp()), zygote)


# A server that is lost


def absent_at_the_start(stage: Stage) -> Started:
    return stage.begin_on_own_server(PREFECT_API_URL="http://127.0.0.1:9/api")


def killed_before_the_rows_begin(stage: Stage) -> Started:
    """Kill the server when the flow has begun and reads the offer."""
    running, _ = stage.begin()
    eventually(lambda: "Running" in stage.ends(), 90)
    stage.server.kill()
    assert '"created"' not in stage.room.service.record.read_text(), "it was killed too late"
    return running


def frozen_in_mid_run(stage: Stage) -> Started:
    """Freeze the server: one that accepts connections and never answers counts as lost."""
    running = stage.begin_and_buy()
    stage.server.send(signal.SIGSTOP)
    return running


def own_server_killed_in_mid_run(stage: Stage) -> Started:
    """Kill the command's own server, which is found by its command line: that names the lock of its users."""
    running = stage.begin_on_own_server()
    stage.await_purchases()
    lock = str(stage.own / "users.lock").encode()
    commands = Path("/proc").glob("[0-9]*/cmdline")
    (process,) = [path for path in commands if path.exists() and lock in path.read_bytes().split(b"\0")]
    os.kill(int(process.parent.name), signal.SIGKILL)
    return running


@pytest.mark.parametrize(
    "lose",
    [absent_at_the_start, killed_before_the_rows_begin, frozen_in_mid_run, own_server_killed_in_mid_run],
    ids=lambda lose: lose.__name__,
)
def test_lost_server(stage: Stage, lose: Callable[[Stage], Started]) -> None:
    """The run ends in bounded time with everything made, and reports that the record is not complete."""
    ended = lose(stage).wait(BOUND)
    stage.assert_made(ended)
    assert any(report in ended.err for report in REPORTS), ended.output
    assert "In the Prefect UI" not in ended.out, ended.output


# A server that comes back


def away_for_a_while_at_the_end(stage: Stage) -> tuple[Started, Path]:
    """Take the server away when the results are written, and the flow run has not ended yet."""
    running, gate = stage.begin(behind_a_gate=True)
    assert gate is not None
    eventually((stage.room.out / "results.csv").exists, BOUND)
    gate.shut()
    time.sleep(GAP)
    gate.open()
    return running, stage.server.directory


def own_servers_database_locked(stage: Stage) -> tuple[Started, Path]:
    """Hold the lock of the database for ten seconds: the server waits, the run does not."""
    running = stage.begin_on_own_server()
    stage.await_purchases()
    with closing(sqlite3.connect(stage.own / "prefect.db", timeout=20, isolation_level=None)) as intruder:
        intruder.execute("BEGIN EXCLUSIVE")
        time.sleep(10)
        intruder.execute("ROLLBACK")
    return running, stage.own


@pytest.mark.parametrize(
    "play", [own_servers_database_locked, away_for_a_while_at_the_end], ids=lambda play: play.__name__
)
def test_returning_server(stage: Stage, play: Callable[[Stage], tuple[Started, Path]]) -> None:
    """The run does not wait for it, and its record is complete in the end: each item has one final task run."""
    running, directory = play(stage)
    ended = running.wait(BOUND)
    stage.assert_made(ended)
    assert "In the Prefect UI" in ended.out, ended.output
    flow_runs, task_runs = recorded(directory, "flow_run"), recorded(directory, "task_run")
    assert [run["state_name"] for run in flow_runs] == ["Completed"]
    assert {run["state_type"] for run in task_runs} == {"COMPLETED"}
    items = sorted(run["name"] for run in task_runs if " · " in run["name"])
    made = [(f"pattern · {row.pattern_text}", f"product · {row.sku}") for row in stage.room.rows]
    assert items == sorted(itertools.chain.from_iterable(made))


def test_groups_do_not_wait_for_a_frozen_server(stage: Stage) -> None:
    """It is woken once 400 more patterns and products were bought, which a run that waited for it never reaches.

    Then the group of each row is among the task runs, which have all ended.
    """
    stage.room.rows = some_rows(600)
    write_csv(stage.room.file, stage.room.rows)
    stage.room.settings["PATTERNMILL_MAX_IN_FLIGHT"] = "100"
    running, _ = stage.begin()
    stage.await_purchases(200)
    stage.server.send(signal.SIGSTOP)
    stage.await_purchases(600)
    stage.server.send(signal.SIGCONT)
    stage.assert_made(running.wait(300))
    eventually(lambda: stage.open_task_runs() == [], 60)
    (table,) = [a for a in everything(stage.server.api, "artifacts") if str(a["key"]).endswith("-groups")]
    groups = {line["group"] for line in json.loads(table["data"])}
    assert groups <= {run["name"] for run in everything(stage.server.api, "task_runs")}


# A flow run that its command left open


def test_killed_commands_run_is_ended_by_the_next(stage: Stage) -> None:
    """Its task runs are ended too."""
    stage.begin_and_buy().kill()
    assert stage.ends() == ["Running"] and stage.open_task_runs()
    stage.assert_made(stage.begin()[0].wait(BOUND))
    eventually(lambda: stage.ends() == ["Crashed", "Completed"], 20, stage.ends)
    eventually(lambda: stage.open_task_runs() == [], 20)


def test_run_whose_server_was_away_at_its_end_is_ended_by_the_next(stage: Stage) -> None:
    """The command waits for the server for some seconds, and ends with its own exit code."""
    running = stage.begin_and_buy()
    stage.server.kill()
    stage.assert_made(running.wait(BOUND))
    time.sleep(90)
    write_csv(stage.room.file, some_rows(ROWS + 1, shared=0))
    assert stage.begin()[0].wait(BOUND).code == 0
    assert stage.ends() == ["Completed", "Completed"]
    assert "Its end did not reach this server" in stage.flow_runs()[0]["state"]["message"]
    eventually(lambda: stage.open_task_runs() == [], 20)


# What a person does to it


def set_state(stage: Stage, kind: str) -> None:
    (run,) = stage.flow_runs()
    stage.server.api.post(f"flow_runs/{run['id']}/set_state", {"state": {"type": kind}})


def test_paused_run_begins_nothing_new_until_it_is_resumed(stage: Stage) -> None:
    running = stage.begin_and_buy()
    set_state(stage, "PAUSED")
    time.sleep(9)
    before = stage.created
    time.sleep(4)
    assert stage.created == before < 2 * ROWS
    (run,) = stage.flow_runs()
    stage.server.api.post(f"flow_runs/{run['id']}/resume", {})
    stage.assert_made(running.wait(BOUND))
    assert stage.ends() == ["Completed"]


@pytest.mark.parametrize(
    ("number", "why"),
    [
        (None, "Cancelled in the Prefect UI."),
        (signal.SIGINT, "Stopped by Ctrl-C."),
        (signal.SIGTERM, "Stopped by SIGTERM."),
    ],
)
def test_stopped_command_ends_as_cancelled(stage: Stage, number: signal.Signals | None, why: str) -> None:
    """It has the state, results and exit code of a stop; the reason is in the state, in a log line, and on the page.

    No worker sends a signal when the run is cancelled in the UI: the command finds out by itself, and drains.
    """
    running = stage.begin_and_buy()
    if number is None:
        set_state(stage, "CANCELLING")
    else:
        running.send(number)
    ended = running.wait(60)
    assert ended.code == 130, ended.output
    evidence = Evidence(stage.room)
    assert evidence.faults(all_made=False) == []
    # The jobs in flight were followed to their ends.
    assert "not_started" in evidence.statuses
    assert set(evidence.statuses) <= {"succeeded", "not_started", "cancelled"}
    (run,) = stage.flow_runs()
    assert (run["state_type"], run["state_name"]) == ("CANCELLED", "Cancelled")
    assert why in run["state"]["message"]
    logs = {"limit": 200, "sort": "TIMESTAMP_DESC"}
    eventually(lambda: why in str(stage.server.api.post("logs/filter", logs)), 20)
    summaries = [a for a in everything(stage.server.api, "artifacts") if str(a["key"]).endswith("-summary")]
    assert [why in summary["data"] for summary in summaries] == [True]
    eventually(lambda: stage.open_task_runs() == [], 20)
