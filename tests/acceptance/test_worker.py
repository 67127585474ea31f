"""Runs that a worker starts: they end in order when cancelled in the Prefect UI, or when the worker is stopped."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from cli.worker import children
from tests.acceptance.harness import some_rows, write_csv
from tests.acceptance.prefect_servers import eventually
from tests.acceptance.workers import OUR_WORKER, PREFECT_WORKER, Prefect, deployed, statuses, workers
from tests.hostile import Hostile, Plan, audit
from tests.hostile.plan import Times
from tests.hostile.record import lines_of

pytestmark = pytest.mark.soak

Worker = Callable[..., subprocess.Popen[bytes]]
ROWS = 40
WINDOW = 8
#: Long enough that a stop finds a full window, and short enough that a drain follows it to its end.
JOB_SECONDS = 5.0


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hostile]:
    jobs = Times(median=JOB_SECONDS)
    plan = Plan(patterns=jobs, products=jobs)
    with Hostile(plan, tmp_path_factory.mktemp("service")) as hostile:
        yield hostile


@pytest.fixture(scope="module")
def prefect(tmp_path_factory: pytest.TempPathFactory, service: Hostile) -> Iterator[Prefect]:
    home = tmp_path_factory.mktemp("home")
    with deployed(home, service.environment, PATTERNMILL_MAX_IN_FLIGHT=str(WINDOW)) as deployments:
        yield deployments


@pytest.fixture
def worker(prefect: Prefect, tmp_path: Path) -> Iterator[Worker]:
    with workers(prefect, tmp_path) as start:
        yield start


@dataclass(frozen=True)
class Begun:
    """An import that a worker has begun."""

    flow_run: str
    out: Path
    creates: Callable[[], int]


def begin_import(
    prefect: Prefect,
    service: Hostile,
    folder: Path,
    about: str,
    *,
    count: int = ROWS,
    sent: int = WINDOW,
    **limits: int,
) -> Begun:
    """Return once so many creates are sent: a window of jobs is in flight."""
    file = write_csv(folder / f"{about}.csv", some_rows(count, about=about))

    def creates() -> int:
        return sum(
            line["event"] == "request" and "create" in line["operation"] for line in lines_of(service.record)
        )

    before = creates()
    out = str(folder / "out")
    flow_run = prefect.begin("bulk-import", file=str(file), out=out, environment="staging", **limits)
    eventually(lambda: creates() - before >= sent, 90, lambda: prefect.state(flow_run))
    return Begun(flow_run, folder / "out", lambda: creates() - before)


def assert_ended_in_order(prefect: Prefect, begun: Begun, state: dict[str, Any], drained_at: int) -> None:
    """The state and the numbers of a cancelled run: nothing bought after the drain began, everything on record."""
    assert (state["type"], state["name"]) == ("CANCELLED", "Cancelled"), state
    assert begun.creates() == drained_at, "a create was sent after the drain had begun"
    rows = statuses(begun.out)
    assert rows.total() == ROWS
    assert rows["not_started"] > 0
    eventually(lambda: prefect.open_runs(begun.flow_run) == 0, 20, lambda: "runs are left open")


def test_cancelled_in_the_ui(prefect: Prefect, service: Hostile, worker: Worker, tmp_path: Path) -> None:
    """Under Prefect's own worker: jobs in flight are followed, none is added, results are written, all within 30 s."""
    worker(PREFECT_WORKER)
    begun = begin_import(prefect, service, tmp_path, "cancelled")
    prefect.cancel(begun.flow_run)
    time.sleep(3)
    drained_at = begun.creates()
    assert prefect.state(begun.flow_run)["type"] == "CANCELLING", "it did not drain"
    assert_ended_in_order(prefect, begun, prefect.ended(begun.flow_run, within=30), drained_at)
    assert "Cancelled in the Prefect UI." in prefect.state(begun.flow_run)["message"]
    assert "SIGTERM" not in prefect.state(begun.flow_run)["message"]


def test_cancelled_when_all_was_sent(
    prefect: Prefect, service: Hostile, worker: Worker, tmp_path: Path
) -> None:
    """Everything was made: the server calls it cancelled, and its name and numbers say what became of it."""
    worker(PREFECT_WORKER)
    patterns, products = 3, 4
    begun = begin_import(prefect, service, tmp_path, "late", count=products, sent=patterns + products)
    prefect.cancel(begun.flow_run)
    state = prefect.ended(begun.flow_run, within=30)
    time.sleep(3)
    assert prefect.state(begun.flow_run) == state, "the worker replaced it"
    assert (state["type"], state["name"]) == ("CANCELLED", "Completed"), state
    assert state["message"] == (
        "4 rows: 4 succeeded. Cancelled in the Prefect UI when nothing was left to be kept from being bought."
    )


def test_stopped_worker_drains(prefect: Prefect, service: Hostile, worker: Worker, tmp_path: Path) -> None:
    """Ours lets its runs end in order before it ends itself."""
    process = worker(OUR_WORKER)
    begun = begin_import(prefect, service, tmp_path, "stopped")
    process.send_signal(signal.SIGTERM)
    time.sleep(2)
    drained_at = begun.creates()
    assert process.wait(timeout=50) == 0
    assert_ended_in_order(prefect, begun, prefect.state(begun.flow_run), drained_at)
    assert "SIGTERM" in prefect.state(begun.flow_run)["message"]


def test_suspended_in_the_ui_and_resumed(
    prefect: Prefect, service: Hostile, worker: Worker, tmp_path: Path
) -> None:
    """The button drains the run and ends its process; resumed, the same flow run makes what is left, once."""
    process = worker(OUR_WORKER)
    begun = begin_import(prefect, service, tmp_path, "suspended")
    until = (datetime.now(UTC) + timedelta(minutes=5)).isoformat()
    details = {"pause_timeout": until, "pause_reschedule": True}
    prefect.set_state(begun.flow_run, "PAUSED", "Suspended", state_details=details)
    eventually(lambda: not children(process.pid), 60, lambda: "a process is held")
    drained_at = begun.creates()
    assert prefect.state(begun.flow_run)["name"] == "Suspended"
    assert drained_at < 2 * ROWS
    assert (begun.out / "results.csv").exists()
    assert prefect.open_runs(begun.flow_run) == 0
    prefect.api.post(f"flow_runs/{begun.flow_run}/resume", {})
    assert prefect.ended(begun.flow_run, within=150)["name"] == "Completed"
    found = audit(service.record, some_rows(ROWS, about="suspended"))
    assert not found.double_purchases
    assert not found.never_bought()


def look(prefect: Prefect) -> str:
    """What the deployment that looks for crashed runs has found, beside the worker that does it by itself."""
    state = prefect.ended(prefect.begin("resume-crashed"), within=120)
    assert state["name"] == "Completed", state
    return str(state["message"])


def imports(prefect: Prefect) -> set[str]:
    return prefect.runs({"deployments": {"name": {"any_": ["bulk-import"]}}})


def kill_runs_of(worker: subprocess.Popen[bytes]) -> None:
    for run in children(worker.pid):
        run.kill()


@pytest.mark.timeout(600)
def test_run_of_a_killed_machine_is_begun_again_once(
    prefect: Prefect, service: Hostile, worker: Worker, tmp_path: Path
) -> None:
    """SIGKILL of worker and run: the next worker begins it again within what is left to it, and nobody a second time.

    After the second SIGKILL a person does. Nothing is bought twice.
    """
    machine = worker(OUR_WORKER)
    begun = begin_import(prefect, service, tmp_path, "killed", max_items=200)
    lost = children(machine.pid)
    machine.kill()
    for run in lost:
        run.kill()
    spent, runs = begun.creates(), imports(prefect)
    second = worker(OUR_WORKER)
    eventually(lambda: prefect.state(begun.flow_run)["name"] == "Crashed", 60)
    (again,) = imports(prefect) - runs
    assert prefect.state(begun.flow_run)["message"].endswith(f"is gone. Begun again: flow run {again}.")
    left = prefect.ask(f"flow_runs/{again}")["parameters"]["max_items"]
    assert 200 - spent - WINDOW <= left <= 200 - spent
    assert look(prefect) == "No run has crashed.", "it was said once"

    eventually(lambda: begun.creates() > spent + WINDOW, 120, lambda: prefect.state(again))
    kill_runs_of(second)
    eventually(lambda: prefect.state(again)["name"] == "Crashed", 30)
    assert "It had resumed a crashed run: begin it again" in look(prefect)
    assert imports(prefect) == runs | {again}
    parameters = prefect.ask(f"flow_runs/{again}")["parameters"]
    assert prefect.ended(prefect.begin("bulk-import", **parameters), within=150)["name"] == "Completed"
    found = audit(service.record, some_rows(ROWS, about="killed"))
    assert not found.double_purchases
    assert not found.requests_with_two_jobs
    assert not found.never_bought()


def test_stop_is_an_end_also_where_the_process_is_killed(
    prefect: Prefect, service: Hostile, worker: Worker, tmp_path: Path
) -> None:
    """Cancelled, and killed while it drains: what a person stopped is not begun again."""
    process = worker(OUR_WORKER)
    begun = begin_import(prefect, service, tmp_path, "stopped-and-killed")
    runs = imports(prefect)
    prefect.cancel(begun.flow_run)
    time.sleep(3)
    kill_runs_of(process)
    prefect.set_state(begun.flow_run, "CRASHED", "Crashed")
    assert look(prefect) == "No run has crashed."
    assert imports(prefect) == runs
