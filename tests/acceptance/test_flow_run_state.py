"""What a person or a kill does to the state of a run's flow run: paused, cancelled, left behind."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from prefect_host.own_server import OwnServer
from tests.acceptance.agreement import ITEM_TIMES, disagreements, item_times
from tests.acceptance.evidence import Evidence
from tests.acceptance.harness import Room, Started, Zygote, some_rows, wait_for, write_csv
from tests.acceptance.prefect_servers import (
    NamedServer,
    eventually,
    everything,
    lay_database,
    migrated_database,
    recorded,
    start_import,
)
from tests.hostile import Hostile, Plan
from tests.hostile.plan import Times
from tests.prefect_api import OPEN_STATES

pytestmark = pytest.mark.soak

ROWS = 60
SECOND = Times(median=1.0)


class Begun:
    """An import on a stock server, of which a part is bought."""

    def __init__(self, stack: ExitStack, folder: Path, template: Path, zygote: Zygote) -> None:
        service = stack.enter_context(Hostile(Plan(patterns=SECOND, products=SECOND), folder / "service"))
        self.room = Room(folder / "room", service, some_rows(ROWS, shared=0), zygote)
        self.server = NamedServer(lay_database(template, folder / "named"))
        stack.callback(self.server.kill)
        self.server.start()
        self.server.await_ready()
        self.running = self.start()
        stack.callback(self.running.kill)
        wait_for(service.record, '"created"', count=12, timeout=150)

    def start(self) -> Started:
        return start_import(self.room, PREFECT_API_URL=self.server.api.url, PATTERNMILL_MAX_IN_FLIGHT="6")

    def flow_runs(self) -> list[dict[str, Any]]:
        return sorted(everything(self.server.api, "flow_runs"), key=lambda run: str(run["created"]))

    def open_task_runs(self) -> list[str]:
        runs = everything(self.server.api, "task_runs")
        return [run["name"] for run in runs if run["state_type"] in OPEN_STATES]

    def logs(self) -> list[dict[str, Any]]:
        return list(self.server.api.post("logs/filter", {"limit": 200, "sort": "TIMESTAMP_DESC"}))

    def set_state(self, kind: str) -> None:
        (run,) = self.flow_runs()
        self.server.api.post(f"flow_runs/{run['id']}/set_state", {"state": {"type": kind}})

    @property
    def created(self) -> int:
        return self.room.service.record.read_text().count('"created"')


@pytest.fixture
def begun(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, zygote: Zygote) -> Iterator[Begun]:
    with ExitStack() as stack:
        yield Begun(stack, tmp_path, migrated_database(tmp_path_factory.getbasetemp()), zygote)


def test_paused_run_begins_nothing_new_until_it_is_resumed(begun: Begun) -> None:
    begun.set_state("PAUSED")
    time.sleep(9)
    before = begun.created
    time.sleep(4)
    assert begun.created == before < 2 * ROWS
    (run,) = begun.flow_runs()
    begun.server.api.post(f"flow_runs/{run['id']}/resume", {})
    ended = begun.running.wait(120)
    assert ended.code == 0, ended.output
    assert Evidence(begun.room).faults() == []
    assert [run["state_name"] for run in begun.flow_runs()] == ["Completed"]


def test_suspended_command_is_not_disturbed(begun: Begun) -> None:
    """It cannot be begun again by a worker: the server refuses, and the run goes on to its end."""
    (run,) = begun.flow_runs()
    state = {"type": "PAUSED", "name": "Suspended", "state_details": {"pause_reschedule": True}}
    answer = begun.server.api.post(f"flow_runs/{run['id']}/set_state", {"state": state})
    assert answer["status"] in {"ABORT", "REJECT"}, answer
    ended = begun.running.wait(120)
    assert ended.code == 0, ended.output
    assert [run["state_name"] for run in begun.flow_runs()] == ["Completed"]


def test_cancelled_command_ends_as_cancelled(begun: Begun) -> None:
    """No worker sends it a signal: it finds out by itself, and drains."""
    begun.set_state("CANCELLING")
    assert_stopped(begun, "Cancelled in the Prefect UI.")


@pytest.mark.parametrize(("number", "name"), [(signal.SIGINT, "Ctrl-C"), (signal.SIGTERM, "SIGTERM")])
def test_interrupted_command_ends_as_cancelled(begun: Begun, number: signal.Signals, name: str) -> None:
    begun.running.send(number)
    assert_stopped(begun, f"Stopped by {name}.")


def assert_stopped(begun: Begun, why: str) -> None:
    """State, results, exit code, and why: in the state, in a log line, and on the page."""
    ended = begun.running.wait(60)
    assert ended.code == 130, ended.output
    assert begun.created < 2 * ROWS
    evidence = Evidence(begun.room)
    assert evidence.faults(all_made=False) == []
    assert "not_started" in evidence.statuses
    # The jobs in flight were followed to their ends.
    assert set(evidence.statuses) <= {"succeeded", "not_started", "cancelled"}
    (run,) = begun.flow_runs()
    assert (run["state_type"], run["state_name"]) == ("CANCELLED", "Cancelled")
    assert why in run["state"]["message"]
    eventually(lambda: any(why in line["message"] for line in begun.logs()), 20)
    (summary,) = [a for a in everything(begun.server.api, "artifacts") if str(a["key"]).endswith("-summary")]
    assert why in summary["data"]
    eventually(lambda: begun.open_task_runs() == [], 20)


def test_killed_commands_run_is_ended_by_the_next(begun: Begun) -> None:
    """With its task runs."""
    begun.running.kill()
    assert [run["state_type"] for run in begun.flow_runs()] == ["RUNNING"]
    assert begun.open_task_runs()
    ended = begun.start().wait(120)
    assert ended.code == 0, ended.output
    eventually(lambda: len(begun.flow_runs()) == 2, 20)
    assert [run["state_name"] for run in begun.flow_runs()] == ["Crashed", "Completed"]
    eventually(lambda: begun.open_task_runs() == [], 20)
    assert Evidence(begun.room).faults() == []


def test_run_whose_server_was_away_at_its_end_is_ended_by_the_next(
    begun: Begun,
) -> None:
    """The command waits for it for some seconds, and ends with its own exit code."""
    begun.server.kill()
    ended = begun.running.wait(120)
    assert ended.code == 0, ended.output
    begun.server.start()
    begun.server.await_ready()
    assert [run["state_type"] for run in begun.flow_runs()] == ["RUNNING"]
    time.sleep(90)
    write_csv(begun.room.file, some_rows(ROWS + 1, shared=0))
    assert begun.start().wait(120).code == 0
    assert [run["state_name"] for run in begun.flow_runs()] == ["Completed", "Completed"]
    assert "Its end did not reach this server" in begun.flow_runs()[0]["state"]["message"]
    eventually(lambda: begun.open_task_runs() == [], 20)


def test_server_that_is_away_for_a_minute_misses_nothing(begun: Begun) -> None:
    """Killed and started again while the run goes on: what happened meanwhile is on record."""
    begun.server.kill()
    before = begun.created
    slow = Times(median=4.0)
    begun.room.service.change(Plan(patterns=slow, products=slow))
    time.sleep(60)
    assert begun.created > before, "the run waited for it"
    assert begun.running.runs, "it was over too soon"
    begun.server.start()
    begun.server.await_ready()
    ended = begun.running.wait(200)
    assert ended.code == 0, ended.output
    assert [run["state_name"] for run in begun.flow_runs()] == ["Completed"]
    eventually(lambda: begun.open_task_runs() == [], 30)
    written = item_times(Evidence(begun.room).ledger(ITEM_TIMES))
    assert disagreements(everything(begun.server.api, "task_runs"), written) == []


def test_starter_of_the_server_ends_first(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, zygote: Zygote
) -> None:
    """Two commands at once on one home: the second joins the server, which lives until both are on record."""
    directory = lay_database(migrated_database(tmp_path_factory.getbasetemp()), tmp_path / "home")
    at_home = {"PATTERNMILL_HOME": str(tmp_path / "home")}
    with Hostile(Plan(patterns=SECOND, products=SECOND), tmp_path / "service") as service:
        small, large = (
            Room(tmp_path / name, service, some_rows(rows, about=name), zygote, at_home, catalog=name)
            for name, rows in (("herons", 4), ("lilies", 40))
        )
        starter = start_import(small)
        eventually((directory / "credential").exists, 60)
        joiner = start_import(large, PATTERNMILL_MAX_IN_FLIGHT="2")
        ended = starter.wait(200)
        assert (ended.code, joiner.runs) == (0, True), ended.output
        ended = joiner.wait(200)
        assert ended.code == 0, ended.output
        assert "In the Prefect UI" in ended.out
    flow_runs, task_runs = recorded(directory, "flow_run"), recorded(directory, "task_run")
    assert [run["state_name"] for run in flow_runs] == ["Completed", "Completed"]
    assert {run["state_name"] for run in task_runs} == {"Completed"}
    eventually(lambda: not OwnServer(tmp_path / "home").is_alive(), 30)
