"""What a person or a kill does to the state of a run's flow run: paused, cancelled, left behind."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.evidence import Evidence
from tests.acceptance.harness import Room, Started, Zygote, some_rows, wait_for
from tests.acceptance.prefect_servers import (
    NamedServer,
    eventually,
    everything,
    lay_database,
    migrated_database,
    start_import,
)
from tests.hostile import Hostile, Plan
from tests.hostile.plan import Times

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
        wait_for(service.record, '"created"', count=12, timeout=60)

    def start(self) -> Started:
        return start_import(self.room, PREFECT_API_URL=self.server.api.url, PATTERNMILL_MAX_IN_FLIGHT="6")

    def flow_runs(self) -> list[dict[str, Any]]:
        return sorted(everything(self.server.api, "flow_runs"), key=lambda run: str(run["created"]))

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


def test_cancelled_command_ends_as_cancelled(begun: Begun) -> None:
    """No worker sends it a signal: it finds out by itself."""
    begun.set_state("CANCELLING")
    ended = begun.running.wait(60)
    assert ended.code == 130, ended.output
    assert begun.created < 2 * ROWS
    assert [run["state_type"] for run in begun.flow_runs()] == ["CANCELLED"]


def test_killed_commands_run_is_ended_by_the_next(begun: Begun) -> None:
    begun.running.kill()
    assert [run["state_type"] for run in begun.flow_runs()] == ["RUNNING"]
    ended = begun.start().wait(120)
    assert ended.code == 0, ended.output
    eventually(lambda: len(begun.flow_runs()) == 2, 20)
    assert [run["state_name"] for run in begun.flow_runs()] == ["Crashed", "Completed"]
    assert Evidence(begun.room).faults() == []
