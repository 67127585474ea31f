"""Plans that wait for a person: the flow run is suspended, asks by a form, and goes on, or not, as it is answered."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cli.worker import children
from patternmill.ledger.ledger import open_ledger
from patternmill.ledger.records import Approval
from patternmill.settings import Settings
from tasks.approval_form import WHO
from tests.acceptance.harness import COMMAND, some_rows, write_csv
from tests.acceptance.prefect_servers import eventually
from tests.acceptance.workers import Prefect, deployed, statuses, workers
from tests.hostile import Hostile, Plan, audit
from tests.hostile.plan import Times
from tests.integrity import problems

pytestmark = pytest.mark.soak

Worker = Callable[..., subprocess.Popen[bytes]]
ROWS = 8
WITHOUT_LIMITS = {"PATTERNMILL_APPROVE_ABOVE_ITEMS": "", "PATTERNMILL_APPROVE_ABOVE_COST": ""}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hostile]:
    jobs = Times(median=0.5)
    with Hostile(Plan(patterns=jobs, products=jobs), tmp_path_factory.mktemp("service")) as hostile:
        yield hostile


@pytest.fixture(scope="module")
def prefect(tmp_path_factory: pytest.TempPathFactory, service: Hostile) -> Iterator[Prefect]:
    """Whose runs ask a person about more than a few items."""
    home = tmp_path_factory.mktemp("home")
    with deployed(home, service.environment, PATTERNMILL_APPROVE_ABOVE_ITEMS="5") as deployments:
        yield deployments


@pytest.fixture
def worker(prefect: Prefect, tmp_path: Path) -> Iterator[Worker]:
    with workers(prefect, tmp_path) as start:
        yield start


def suspended(prefect: Prefect, folder: Path, about: str) -> str:
    """A flow run that has asked about its plan."""
    file = write_csv(folder / f"{about}.csv", some_rows(ROWS, about=about))
    return prefect.suspended(
        prefect.begin(
            "bulk-import", file=str(file), out=str(folder / "out"), environment="staging", catalog=about
        )
    )


def approvals(prefect: Prefect, catalog: str) -> list[Approval]:
    """What the ledger has of a catalog's plans; the ledger agrees with itself."""
    settings = Settings(home=Path(prefect.environment["PATTERNMILL_HOME"]))
    with open_ledger(settings, must_exist=True) as ledger:
        assert list(problems(ledger)) == []
        return [approval for approval in ledger.approvals.find() if approval.catalog == catalog]


def test_approved_plan_is_made(prefect: Prefect, service: Hostile, worker: Worker, tmp_path: Path) -> None:
    """While it waits no process runs, no lease is kept and nothing is bought; approved, it runs to its end."""
    process = worker()
    flow_run = suspended(prefect, tmp_path, "approved")
    eventually(lambda: not children(process.pid), 30, lambda: "a process is held")
    assert not service.record.exists() or "approved-" not in service.record.read_text()
    (waiting,) = approvals(prefect, "approved")
    assert waiting.verdict == "waiting"
    artifacts = prefect.api.post("artifacts/filter", {"artifacts": {"flow_run_id": {"any_": [flow_run]}}})
    assert [waiting.digest[:12] in found["data"] for found in artifacts] == [True]
    prefect.answer(flow_run, decision="approve", note="for the spring")
    state = prefect.ended(flow_run)
    assert state["name"] == "Completed", state
    assert statuses(tmp_path / "out") == {"succeeded": ROWS}
    (approved,) = approvals(prefect, "approved")
    assert (approved.verdict, approved.who, approved.note) == ("approved", WHO, "for the spring")
    assert approved.purchases == approved.items
    assert not audit(service.record, some_rows(ROWS, about="approved")).double_purchases
    assert prefect.ask(f"flow_runs/{flow_run}")["run_count"] == 1


def test_rejected_plan_is_cancelled_and_no_retry_buys_it(
    prefect: Prefect, service: Hostile, worker: Worker, tmp_path: Path
) -> None:
    """It is on record, with its results. Retry in the UI, on a worker without limits, asks once more."""
    strict = worker()
    flow_run = suspended(prefect, tmp_path, "rejected")
    prefect.answer(flow_run, decision="reject", note="too dear")
    state = prefect.ended(flow_run)
    assert (state["type"], state["name"]) == ("CANCELLED", "Cancelled"), state
    assert f"{WHO}: too dear" in state["message"]
    assert statuses(tmp_path / "out") == {"not_started": ROWS}
    (rejected,) = approvals(prefect, "rejected")
    assert (rejected.verdict, rejected.purchases) == ("rejected", 0)
    strict.terminate()
    strict.wait(timeout=60)
    worker(**WITHOUT_LIMITS)
    prefect.set_state(flow_run, "SCHEDULED", "AwaitingRetry", message="Retry from the UI")
    eventually(lambda: prefect.state(flow_run)["name"] != "Cancelled", 30)
    prefect.suspended(flow_run)
    assert "rejected-" not in service.record.read_text()
    prefect.answer(flow_run, decision="approve")
    assert prefect.ended(flow_run)["name"] == "Completed"
    assert statuses(tmp_path / "out") == {"succeeded": ROWS}


def test_waiting_run_begun_again_without_limits_waits_again(
    prefect: Prefect, service: Hostile, worker: Worker, tmp_path: Path
) -> None:
    """It was wrongly taken for crashed, and a worker without limits has it: it buys nothing, and can be answered."""
    strict = worker()
    flow_run = suspended(prefect, tmp_path, "alarmed")
    (before,) = approvals(prefect, "alarmed")
    strict.kill()
    strict.wait(timeout=60)
    worker(**WITHOUT_LIMITS)
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
    assert statuses(tmp_path / "out") == {"succeeded": ROWS}


def test_newer_run_of_the_catalog_ends_a_waiting_question(
    prefect: Prefect, service: Hostile, worker: Worker, tmp_path: Path
) -> None:
    """It is no longer listed; answered all the same, its flow run buys nothing and ends with the reason."""
    worker()
    older = suspended(prefect, tmp_path, "overtaken")
    assert "Waits for approval" in status(prefect, "overtaken")
    file = write_csv(tmp_path / "newer.csv", some_rows(1, about="newer"))
    newer = prefect.begin("bulk-import", file=str(file), environment="staging", catalog="overtaken")
    assert prefect.ended(newer)["name"] == "Completed"
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
