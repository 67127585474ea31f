"""Runs that a worker starts: stopped, suspended, retried, approved in the Prefect UI, killed with their machine."""

from __future__ import annotations

import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from cli.worker import children
from patternmill.ledger.ledger import open_ledger
from patternmill.ledger.records import Approval
from patternmill.settings import Settings
from tasks.approval_form import WHO
from tests.acceptance.evidence import broken_files
from tests.acceptance.harness import COMMAND, some_rows, write_csv
from tests.acceptance.prefect_servers import eventually
from tests.acceptance.workers import OUR_WORKER, PREFECT_WORKER, Prefect, deployed, statuses, workers
from tests.hostile import Hostile, Plan, Rule, audit
from tests.hostile.plan import Times
from tests.hostile.record import lines_of
from tests.integrity import problems

pytestmark = [pytest.mark.soak, pytest.mark.timeout(900)]

Worker = Callable[..., subprocess.Popen[bytes]]
ROWS = 40
WINDOW = 8
#: The number of rows of a plan that a person is asked about under the limits below.
FEW = 8
LIMITS = {"PATTERNMILL_APPROVE_ABOVE_ITEMS": "5"}
#: The duration of jobs: long enough that a stop finds a full window, and short enough that a drain sees its end.
JOBS = Times(median=5.0)
BROKEN = Rule("patterns/create", "job_fails", matching="retried no. 3,")
REFUSED_KEY = Rule("patterns/create", "status", {"code": 401}, matching="retried no. 24,")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hostile]:
    plan = Plan(patterns=JOBS, products=JOBS, rules=(BROKEN, REFUSED_KEY))
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
    """Begin an import, and return once so many creates are sent: a window of jobs is in flight."""
    file = write_csv(folder / f"{about}.csv", some_rows(count, about=about))

    def creates() -> int:
        lines = lines_of(service.record)
        return sum(line["event"] == "request" and "create" in line["operation"] for line in lines)

    before = creates()
    out = str(folder / "out")
    flow_run = prefect.begin("bulk-import", file=str(file), out=out, environment="staging", **limits)
    eventually(lambda: creates() - before >= sent, 90, lambda: prefect.state(flow_run))
    return Begun(flow_run, folder / "out", lambda: creates() - before)


def assert_bought_once(service: Hostile, about: str) -> None:
    audited = audit(service.record, some_rows(ROWS, about=about))
    assert (audited.double_purchases, audited.requests_with_two_jobs, audited.never_bought()) == (
        (),
        (),
        Counter(),
    )


@pytest.mark.parametrize(("module", "why"), [(PREFECT_WORKER, "Cancelled in"), (OUR_WORKER, "SIGTERM")])
def test_stop_drains(
    prefect: Prefect, service: Hostile, worker: Worker, tmp_path: Path, module: tuple[str, ...], why: str
) -> None:
    """A run is cancelled in the UI under Prefect's own worker, or because ours is stopped, which ends after its runs.

    Jobs in flight are followed, none is added, and results are written, within the 30 s that Prefect leaves.
    """
    about = f"stopped-by-{module[0][:3]}"
    process = worker(module)
    begun = begin_import(prefect, service, tmp_path, about)
    if module is PREFECT_WORKER:
        prefect.cancel(begun.flow_run)
    else:
        process.send_signal(signal.SIGTERM)
    time.sleep(3)
    drained_at = begun.creates()
    state = prefect.ended(begun.flow_run, within=30)
    assert (state["type"], state["name"]) == ("CANCELLED", "Cancelled"), state
    assert why in state["message"]
    assert begun.creates() == drained_at, "a create was sent after the drain had begun"
    rows = statuses(begun.out)
    assert rows.total() == ROWS and rows["not_started"] > 0
    eventually(lambda: prefect.open_runs(begun.flow_run) == 0, 20, lambda: "runs are left open")
    assert module is PREFECT_WORKER or process.wait(timeout=50) == 0


def test_suspended_in_the_ui_and_resumed(
    prefect: Prefect, service: Hostile, worker: Worker, tmp_path: Path
) -> None:
    """The button drains the run and ends its process; resumed, the same flow run makes what is left, once."""
    process = worker()
    begun = begin_import(prefect, service, tmp_path, "suspended")
    until = (datetime.now(UTC) + timedelta(minutes=5)).isoformat()
    details = {"pause_timeout": until, "pause_reschedule": True}
    prefect.set_state(begun.flow_run, "PAUSED", "Suspended", state_details=details)
    eventually(lambda: not children(process.pid), 60, lambda: "a process is held")
    assert prefect.state(begun.flow_run)["name"] == "Suspended"
    assert begun.creates() < 2 * ROWS
    assert (begun.out / "results.csv").exists()
    assert prefect.open_runs(begun.flow_run) == 0
    prefect.api.post(f"flow_runs/{begun.flow_run}/resume", {})
    assert prefect.ended(begun.flow_run, within=150)["name"] == "Completed"
    assert_bought_once(service, "suspended")


def press_retry(prefect: Prefect, begun: Begun) -> dict[str, Any]:
    """Send what the UI's button sends; return the state in which the run ends this time."""
    before = prefect.ask(f"flow_runs/{begun.flow_run}")["run_count"]
    prefect.set_state(begun.flow_run, "SCHEDULED", "AwaitingRetry", message="Retry from the UI")
    flow_run: dict[str, Any] = {}

    def has_ended_again() -> bool:
        flow_run.update(prefect.ask(f"flow_runs/{begun.flow_run}"))
        return flow_run["run_count"] > before and flow_run["end_time"] is not None

    eventually(has_ended_again, 150, lambda: flow_run)
    assert broken_files(begun.out) == []
    return dict(flow_run["state"])


def test_retry_in_the_ui_buys_only_what_is_missing(
    prefect: Prefect, service: Hostile, worker: Worker, tmp_path: Path
) -> None:
    """The key was refused in mid-run, then replaced. What has finally failed is not asked for again."""
    worker()
    begun = begin_import(prefect, service, tmp_path, "retried")
    first = prefect.ended(begun.flow_run, within=150)
    assert (first["type"], first["name"]) == ("FAILED", "Failed"), first
    service.change(Plan(patterns=JOBS, products=JOBS, rules=(BROKEN,)))
    second = press_retry(prefect, begun)
    assert (second["type"], second["name"]) == ("FAILED", "CompletedWithFailures"), second
    assert statuses(begun.out) == {"succeeded": ROWS - 1, "failed": 1}
    creates = begun.creates()
    third = press_retry(prefect, begun)
    assert begun.creates() == creates, "the third try sent a create"
    assert (third["name"], third["message"]) == (second["name"], second["message"])
    audited = audit(service.record, some_rows(ROWS, about="retried"))
    assert (audited.double_purchases, audited.requests_with_two_jobs) == ((), ())


def look(prefect: Prefect) -> str:
    """Run the deployment that looks for crashed runs, beside a worker that does so by itself; return what it says."""
    state = prefect.ended(prefect.begin("resume-crashed"), within=120)
    assert state["name"] == "Completed", state
    return str(state["message"])


def imports(prefect: Prefect) -> set[str]:
    return prefect.runs({"deployments": {"name": {"any_": ["bulk-import"]}}})


def kill_runs_of(worker: subprocess.Popen[bytes], *, first: bool = False) -> None:
    """Kill its runs, as the system does when memory is short; `first`: the worker before them, as a lost machine."""
    runs = children(worker.pid)
    if first:
        worker.kill()
    for run in runs:
        run.kill()


def test_run_of_a_killed_machine_is_begun_again_once(
    prefect: Prefect, service: Hostile, worker: Worker, tmp_path: Path
) -> None:
    """After SIGKILL of worker and run, the next worker begins it again with what is left of its limits, once.

    After the second SIGKILL a person has to. Nothing is bought twice.
    """
    machine = worker()
    begun = begin_import(prefect, service, tmp_path, "killed", max_items=200)
    kill_runs_of(machine, first=True)
    spent, runs = begun.creates(), imports(prefect)
    second = worker()
    eventually(lambda: prefect.state(begun.flow_run)["name"] == "Crashed", 60)
    (again,) = imports(prefect) - runs
    assert prefect.state(begun.flow_run)["message"].endswith(f"is gone. Begun again: flow run {again}.")
    left = prefect.ask(f"flow_runs/{again}")["parameters"]["max_items"]
    assert 200 - spent - WINDOW <= left <= 200 - spent
    assert look(prefect) == "No run has crashed.", "it was said once"

    eventually(lambda: begun.creates() > spent + WINDOW, 120, lambda: prefect.state(again))
    kill_runs_of(second)
    eventually(lambda: prefect.state(again)["name"] == "Crashed", 90, lambda: prefect.state(again))
    assert "It had resumed a crashed run: begin it again" in look(prefect)
    assert imports(prefect) == runs | {again}
    parameters = prefect.ask(f"flow_runs/{again}")["parameters"]
    assert prefect.ended(prefect.begin("bulk-import", **parameters), within=150)["name"] == "Completed"
    assert_bought_once(service, "killed")


def test_stop_is_an_end_also_where_the_process_is_killed(
    prefect: Prefect, service: Hostile, worker: Worker, tmp_path: Path
) -> None:
    """A run is cancelled, and killed while it drains: what a person stopped is not begun again."""
    process = worker()
    begun = begin_import(prefect, service, tmp_path, "stopped-and-killed")
    runs = imports(prefect)
    prefect.cancel(begun.flow_run)
    time.sleep(3)
    kill_runs_of(process)
    prefect.set_state(begun.flow_run, "CRASHED", "Crashed")
    assert look(prefect) == "No run has crashed."
    assert imports(prefect) == runs


# Plans that wait for a person


def suspended(prefect: Prefect, folder: Path, about: str) -> str:
    """Begin a flow run, and return it once it has asked about its plan."""
    file = write_csv(folder / f"{about}.csv", some_rows(FEW, about=about))
    terms = {"file": str(file), "out": str(folder / "out"), "environment": "staging", "catalog": about}
    return prefect.suspended(prefect.begin("bulk-import", **terms))


def approvals(prefect: Prefect, catalog: str) -> list[Approval]:
    """Return what the ledger has of a catalog's plans; check that the ledger agrees with itself."""
    settings = Settings(home=Path(prefect.environment["PATTERNMILL_HOME"]))
    with open_ledger(settings, must_exist=True) as ledger:
        assert list(problems(ledger)) == []
        return [approval for approval in ledger.approvals.find() if approval.catalog == catalog]


def test_approved_plan_is_made(prefect: Prefect, service: Hostile, worker: Worker, tmp_path: Path) -> None:
    """While it waits, no process runs, no lease is kept and nothing is bought; once approved, it runs to its end."""
    process = worker(**LIMITS)
    flow_run = suspended(prefect, tmp_path, "approved")
    eventually(lambda: not children(process.pid), 30, lambda: "a process is held")
    assert not service.record.exists() or "approved-" not in service.record.read_text()
    (waiting,) = approvals(prefect, "approved")
    assert waiting.verdict == "waiting"
    artifacts = prefect.api.post("artifacts/filter", {"artifacts": {"flow_run_id": {"any_": [flow_run]}}})
    assert [waiting.digest[:12] in artifact["data"] for artifact in artifacts] == [True]
    prefect.answer(flow_run, decision="approve", note="for the spring")
    state = prefect.ended(flow_run)
    assert state["name"] == "Completed", state
    assert statuses(tmp_path / "out") == {"succeeded": FEW}
    (approved,) = approvals(prefect, "approved")
    assert (approved.verdict, approved.who, approved.note) == ("approved", WHO, "for the spring")
    assert approved.purchases == approved.items
    assert not audit(service.record, some_rows(FEW, about="approved")).double_purchases
    assert prefect.ask(f"flow_runs/{flow_run}")["run_count"] == 1


def test_rejected_plan_is_cancelled_and_no_retry_buys_it(
    prefect: Prefect, service: Hostile, worker: Worker, tmp_path: Path
) -> None:
    """It is on record, with its results. Retry in the UI, on a worker without limits, asks once more."""
    strict = worker(**LIMITS)
    flow_run = suspended(prefect, tmp_path, "rejected")
    prefect.answer(flow_run, decision="reject", note="too dear")
    state = prefect.ended(flow_run)
    assert (state["type"], state["name"]) == ("CANCELLED", "Cancelled"), state
    assert f"{WHO}: too dear" in state["message"]
    assert statuses(tmp_path / "out") == {"not_started": FEW}
    (rejected,) = approvals(prefect, "rejected")
    assert (rejected.verdict, rejected.purchases) == ("rejected", 0)
    strict.terminate()
    strict.wait(timeout=60)
    worker()
    prefect.set_state(flow_run, "SCHEDULED", "AwaitingRetry", message="Retry from the UI")
    eventually(lambda: prefect.state(flow_run)["name"] != "Cancelled", 30)
    prefect.suspended(flow_run)
    assert "rejected-" not in service.record.read_text()
    prefect.answer(flow_run, decision="approve")
    assert prefect.ended(flow_run)["name"] == "Completed"
    assert statuses(tmp_path / "out") == {"succeeded": FEW}


def test_waiting_run_begun_again_without_limits_waits_again(
    prefect: Prefect, service: Hostile, worker: Worker, tmp_path: Path
) -> None:
    """It was wrongly taken for crashed, and a worker without limits has it: it buys nothing, and can be approved."""
    strict = worker(**LIMITS)
    flow_run = suspended(prefect, tmp_path, "alarmed")
    (before,) = approvals(prefect, "alarmed")
    strict.kill()
    strict.wait(timeout=60)
    worker()
    for kind, name in (("CRASHED", "Crashed"), ("SCHEDULED", "AwaitingRetry")):
        prefect.set_state(flow_run, kind, name, message="No heartbeat.")
    eventually(lambda: approvals(prefect, "alarmed")[0].id != before.id, 120)
    prefect.suspended(flow_run)
    assert "alarmed-" not in service.record.read_text()
    (again,) = approvals(prefect, "alarmed")
    assert (again.digest, again.verdict) == (before.digest, "waiting")
    prefect.answer(flow_run, decision="approve")
    state = prefect.ended(flow_run)
    assert state["name"] == "Completed", state
    assert statuses(tmp_path / "out") == {"succeeded": FEW}


def test_newer_run_of_the_catalog_ends_a_waiting_question(
    prefect: Prefect, service: Hostile, worker: Worker, tmp_path: Path
) -> None:
    """It is no longer listed; if it is approved all the same, its flow run buys nothing and ends with the reason."""
    worker(**LIMITS)
    older = suspended(prefect, tmp_path, "overtaken")
    assert "Waits for approval" in status(prefect, "overtaken")
    file = write_csv(tmp_path / "newer.csv", some_rows(1, about="newer"))
    terms = {"file": str(file), "out": str(tmp_path / "newer"), "environment": "staging"}
    state = prefect.ended(prefect.begin("bulk-import", catalog="overtaken", **terms))
    assert state["name"] == "Completed", state
    (question,) = approvals(prefect, "overtaken")
    assert question.verdict == "overtaken"
    assert "Waits for approval" not in status(prefect, "overtaken")
    prefect.answer(older, decision="approve")
    state = prefect.ended(older)
    assert (state["type"], state["name"]) == ("CANCELLED", "Cancelled"), state
    assert f"overtaken by {question.who}" in state["message"]
    assert "overtaken-" not in service.record.read_text()


def status(prefect: Prefect, catalog: str) -> str:
    command = [COMMAND, "status", "--catalog", catalog]
    return subprocess.run(command, env=prefect.environment, check=True, capture_output=True, text=True).stdout
