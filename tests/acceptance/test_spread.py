"""A run spread over two workers, on PostgreSQL and Redis, against a service that keeps a record of its own."""

from __future__ import annotations

import csv
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cli.commands.worker import children
from prefect_host.record import OPEN_STATES
from prefect_host.work_pool import POOL
from tests.acceptance.harness import COMMAND, some_rows, write_csv
from tests.acceptance.prefect_servers import Running, eventually, everything
from tests.acceptance.several_machines import Machines, lose_machine, machines, most_in_flight, of
from tests.hostile import Audit, Hostile, Plan, Times, audit

pytestmark = [pytest.mark.soak, pytest.mark.timeout(600)]

WINDOW = 8
ROWS = 60
JOBS = Plan(patterns=Times(median=3.0), products=Times(median=2.0))


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hostile]:
    with Hostile(JOBS, tmp_path_factory.mktemp("service")) as hostile:
        yield hostile


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, service: Hostile) -> Iterator[Machines]:
    with machines(tmp_path_factory.mktemp("machines")) as made:
        made.environment.update(service.environment)
        made.prefect("work-pool", "create", POOL, "--type", "process")
        yield made


def start(site: Machines, folder: Path, about: str, count: int, *options: str) -> Running:
    file = write_csv(folder / f"{about}.csv", some_rows(count, about=about))
    arguments = [str(COMMAND), "import", str(file), "--out", str(folder / "out"), *options]
    with (folder / "command.out").open("wb") as out, (folder / "command.err").open("wb") as err:
        process = subprocess.Popen(arguments, cwd=folder, env=site.environment, stdout=out, stderr=err)
    return Running(process, folder)


def bought(service: Hostile, about: str, count: int) -> Audit:
    return audit(service.record, some_rows(count, about=about))


def statuses(out: Path) -> Counter[str]:
    with (out / "results.csv").open(encoding="utf-8-sig", newline="") as file:
        return Counter(row["status"] for row in csv.DictReader(file))


def nested_in(site: Machines, name: str) -> dict[str, Any]:
    """A filter: what is nested in the run with a name like this."""
    (top,) = everything(site.api, "flow_runs", {"flow_runs": {"name": {"like_": name}}})
    return {"flow_runs": {"parent_flow_run_id": {"any_": [top["id"]]}}}


def parts_of(site: Machines, among: dict[str, Any]) -> list[dict[str, Any]]:
    found = everything(site.api, "flow_runs", {**among, "deployments": {"name": {"any_": ["part"]}}})
    return sorted(found, key=lambda run: (run["parameters"]["number"], run["parameters"]["grant"]))


def assert_nothing_open(site: Machines) -> None:
    unfinished = {"state": {"type": {"any_": list(OPEN_STATES)}}}

    def left() -> int:
        return int(site.api.post("task_runs/count", {"task_runs": unfinished})) + int(
            site.api.post("flow_runs/count", {"flow_runs": unfinished})
        )

    eventually(lambda: left() == 0, 60, lambda: f"{left()} runs are left open")


def test_missing_worker_or_deployment_is_refused(site: Machines, service: Hostile, tmp_path: Path) -> None:
    """With what is missing, and before anything is sent."""
    ended = start(site, tmp_path, "nobody", 4, "--spread", "2").wait(120)
    assert ended.code == 2 and "no deployment 'part/part'" in ended.err, ended.output
    site.prefect("--no-prompt", "deploy", "--all", "--prefect-file", "deployments/prefect.yaml")
    ended = start(site, tmp_path, "nobody", 4, "--spread", "2").wait(120)
    assert ended.code == 2 and "No worker" in ended.err, ended.output
    assert not of(service, "nobody")


def test_lost_worker_of_two(site: Machines, service: Hostile, tmp_path: Path) -> None:
    """Everything is made, once, within one window; the page agrees."""
    with (
        site.worker("left", home=tmp_path / "left") as lost,
        site.worker("right", home=tmp_path / "right") as kept,
    ):
        eventually(lambda: site.online() == 2, 120, site.online)
        command = start(site, tmp_path, "herons", ROWS, "--spread", "2", "--max-in-flight", str(WINDOW))
        eventually(lambda: len(of(service, "herons")) >= 3 * WINDOW, 120, lambda: command.output)
        if not children(lost.pid):
            # Whichever took up both of them.
            lost, kept = kept, lost
        lose_machine(lost)
        ended = command.wait(400)
    assert ended.code == 0, ended.output
    assert statuses(tmp_path / "out") == {"succeeded": ROWS}
    found = bought(service, "herons", ROWS)
    assert not found.double_purchases and not found.never_bought() and not found.requests_with_two_jobs
    assert most_in_flight(of(service, "herons")) <= WINDOW
    (top,) = everything(site.api, "flow_runs", {"flow_runs": {"name": {"like_": "import %herons.csv"}}})
    assert (top["state"]["type"], top["state"]["name"]) == ("COMPLETED", "Completed")
    mine = parts_of(site, nested_in(site, "import %herons.csv"))
    states = Counter(run["state"]["name"] for run in mine)
    assert states["Completed"] == 2 and states["Crashed"] >= 1, states
    assert all(run["name"].startswith("rows ") for run in mine)
    assert_nothing_open(site)


def test_stopped_worker_drains(site: Machines, service: Hostile, tmp_path: Path) -> None:
    """Its part drains, and the other worker resumes what is left of it without a person's help."""
    with (
        site.worker("one", home=tmp_path / "one", limit=1) as one,
        site.worker("other", home=tmp_path / "other", limit=1) as other,
    ):
        eventually(lambda: site.online() >= 2, 120, site.online)
        command = start(site, tmp_path, "foxes", ROWS, "--spread", "2", "--max-in-flight", str(WINDOW))
        eventually(lambda: children(one.pid) and children(other.pid), 120, lambda: command.output)
        eventually(lambda: len(of(service, "foxes")) >= 3 * WINDOW, 120, lambda: command.output)
        one.terminate()
        assert one.wait(120) == 0
        ended = command.wait(400)
    assert ended.code == 0, ended.output
    found = bought(service, "foxes", ROWS)
    assert not found.double_purchases and not found.never_bought()
    assert most_in_flight(of(service, "foxes")) <= WINDOW
    mine = parts_of(site, nested_in(site, "import %foxes.csv"))
    assert [run["state"]["name"] for run in mine] == ["Cancelled", "Completed", "Completed"] or [
        run["state"]["name"] for run in mine
    ] == ["Completed", "Cancelled", "Completed"], mine
    assert_nothing_open(site)


@pytest.mark.parametrize("cancelled", ["the run", "a part"])
def test_cancelled_in_the_ui(cancelled: str, site: Machines, service: Hostile, tmp_path: Path) -> None:
    """Whichever flow run a person cancels: all drain, nothing is begun, the results are written, within 30 seconds."""
    about = f"owls-{cancelled.replace(' ', '-')}"
    with site.worker(about, home=tmp_path / "worker"):
        eventually(lambda: site.online() >= 1, 120, site.online)
        file = write_csv(tmp_path / f"{about}.csv", some_rows(ROWS, about=about))
        top = site.begin(
            "bulk-import", file=str(file), out=str(tmp_path / "out"), max_in_flight=WINDOW, spread=2
        )
        eventually(lambda: len(of(service, about)) >= WINDOW, 120, lambda: site.state(top))
        parts = parts_of(site, nested_in(site, f"import %{about}.csv"))
        assert len(parts) == 2
        site.cancel(top if cancelled == "the run" else parts[0]["id"])
        eventually(lambda: site.state(top)["type"] == "CANCELLED", 60, lambda: site.state(top))
        assert_nothing_open(site)
    assert site.state(top)["name"] == "Cancelled"
    rows = statuses(tmp_path / "out")
    assert rows.total() == ROWS and rows["not_started"] > 0
    assert not bought(service, about, ROWS).double_purchases
    states = [site.state(part["id"])["name"] for part in parts]
    assert states == ["Cancelled", "Cancelled"], states
