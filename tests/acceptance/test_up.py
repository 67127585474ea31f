"""`patternmill up`: everything in one terminal; runs from the API come to their ends, and nothing outlives it."""

from __future__ import annotations

import csv
import os
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from prefect_host.own_server import own_password
from tests.acceptance.harness import CHECKOUT, clean_environment
from tests.acceptance.prefect_servers import eventually
from tests.acceptance.test_import import ONE_ROW
from tests.acceptance.test_worker import WINDOW, Prefect, begin_import
from tests.hostile import Hostile, Plan
from tests.hostile.plan import Times
from tests.prefect_api import api_with_password

pytestmark = pytest.mark.soak

PATTERNMILL = Path(sys.executable).with_name("patternmill")


@dataclass
class Up:
    """The command, in a folder of its own."""

    process: subprocess.Popen[bytes]
    folder: Path

    @property
    def output(self) -> str:
        return (self.folder / "output.txt").read_text("utf-8", "replace")

    @property
    def prefect(self) -> Prefect:
        address = re.search(r"Prefect UI: +(\S+)", self.output)
        assert address, self.output
        return Prefect(api_with_password(f"{address[1]}/api", own_password(self.folder / "home")), {})

    def left(self) -> list[str]:
        """The processes that belong to it, by their open files or arguments."""
        found = []
        for place in Path("/proc").glob("[0-9]*"):
            try:
                command = (place / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                environment = (place / "environ").read_bytes()
            except OSError:
                continue
            if place.name == str(os.getpid()):
                continue
            if "tests.hostile" in command:
                continue
            if str(self.folder) in command or str(self.folder).encode() in environment:
                found.append(f"{place.name} {command}")
        return found


def begin(folder: Path, **environment: str) -> Up:
    with (folder / "output.txt").open("wb") as output:
        process = subprocess.Popen(
            [str(PATTERNMILL), "up"],
            cwd=folder,
            env=clean_environment()
            | {"PATTERNMILL_HOME": str(folder / "home"), "HERE": str(folder)}
            | environment,
            stdout=output,
            stderr=output,
        )
    up = Up(process, folder)
    eventually(lambda: "Ctrl-C stops" in up.output or process.poll() is not None, 120, lambda: up.output)
    assert process.poll() is None, up.output
    return up


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Up]:
    running = begin(tmp_path)
    yield running
    running.process.send_signal(signal.SIGINT)
    running.process.wait(90)


def test_runs_from_the_api_and_from_the_command_line(up: Up, tmp_path: Path) -> None:
    """The sample catalog by its deployment, then a file by `import`: both in the one history. Ctrl-C ends all."""
    shutil.copytree(CHECKOUT / "inputs", tmp_path / "sheets")
    run = up.prefect.begin("bulk-import", file="sheets/spring_catalog.csv", out="out", environment="staging")
    assert up.prefect.ended(run, within=150)["name"] == "Completed"
    assert len((tmp_path / "out" / "results.csv").read_text("utf-8").splitlines()) == 25

    (tmp_path / "tea.csv").write_text(ONE_ROW)
    imported = subprocess.run(
        [str(PATTERNMILL), "import", "tea.csv"],
        cwd=tmp_path,
        env=clean_environment() | {"PATTERNMILL_HOME": str(tmp_path / "home")},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert imported.returncode == 0, imported.stderr
    top = {"flow_runs": {"parent_task_run_id": {"is_null_": True}}}
    runs = up.prefect.api.post("flow_runs/filter", top)
    assert [found["state"]["name"] for found in runs] == ["Completed", "Completed"]

    up.process.send_signal(signal.SIGINT)
    assert up.process.wait(90) == 0, up.output
    assert up.left() == []
    # The studio is gone, and the gallery has its pictures.
    gallery = (tmp_path / "out" / "gallery.html").read_text("utf-8")
    shown = set(re.findall(r"pictures/[0-9a-f]{24}[.]png", gallery))
    assert len(shown) == 8 + 24
    assert [name for name in shown if not (tmp_path / "out" / name).exists()] == []


def test_every_deployment_runs(up: Up, tmp_path: Path) -> None:
    """An import with a failure, its retry by the form, and a refresh of the same catalog, one after another."""
    file = tmp_path / "looms.csv"
    file.write_text(
        "sku,prompt,category,option:size,option:fabric\n"
        "L-1,Blue herons,Cushion,50x50,linen\n"
        "L-2,Broken looms [fail],Cushion,50x50,linen\n"
    )
    prefect, out = up.prefect, str(tmp_path / "out")
    run = prefect.begin("bulk-import", file=str(file), out=out, environment="staging")
    assert prefect.ended(run, within=120)["message"] == "2 rows: 1 succeeded, 1 failed"
    run = prefect.begin("retry-failed", catalog="looms", status=["failed"], out=out, environment="staging")
    retried = prefect.ended(run, within=120)
    assert (retried["name"], retried["message"]) == ("CompletedWithFailures", "2 rows: 1 succeeded, 1 failed")
    run = prefect.begin("catalog-refresh", source=str(file), catalog="looms", out=out, environment="staging")
    refreshed = prefect.ended(run, within=120)
    assert refreshed["name"] in {"Completed", "CompletedWithFailures"}, refreshed


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_up_ended_in_mid_run_leaves_no_process(tmp_path: Path, how: signal.Signals) -> None:
    """Ctrl-C, or a SIGKILL: the run drains and writes its results."""
    jobs = Times(median=4.0)
    with Hostile(Plan(patterns=jobs, products=jobs), tmp_path / "service") as service:
        up = begin(tmp_path, PATTERNMILL_MAX_IN_FLIGHT=str(WINDOW), **service.environment)
        begun = begin_import(up.prefect, service, tmp_path, "broken-off")
        up.process.send_signal(how)
        code = up.process.wait(90)
        assert code == (0 if how is signal.SIGINT else -signal.SIGKILL), up.output
        eventually(lambda: up.left() == [], 60, up.left)
    with (begun.out / "results.csv").open(encoding="utf-8-sig", newline="") as file:
        statuses = Counter(row["status"] for row in csv.DictReader(file))
    assert statuses["not_started"] > 0
    assert statuses["in_doubt"] == 0, statuses


def test_schedule_starts_a_refresh(up: Up, tmp_path: Path) -> None:
    """Each full minute instead of each night: the scheduler creates the run, and the worker runs it."""
    prefect, out = up.prefect, str(tmp_path / "out")
    deployment = prefect.ask("deployments/name/catalog-refresh/catalog-refresh")
    every_minute = {"cron": "* * * * *", "timezone": "Europe/Berlin"}
    wanted = {"active": True, "schedule": every_minute, "parameters": {"out": out}}
    made = prefect.api.post(f"deployments/{deployment['id']}/schedules", [wanted])
    of_it = {"deployments": {"id": {"any_": [deployment["id"]]}}}

    def ended() -> list[dict[str, Any]]:
        final = {"flow_runs": {"state": {"type": {"any_": ["COMPLETED", "FAILED"]}}}}
        found: list[dict[str, Any]] = prefect.api.post("flow_runs/filter", {**of_it, **final})
        return found

    eventually(lambda: bool(ended()), 240, lambda: prefect.api.post("flow_runs/filter", of_it))
    prefect.api.delete(f"deployments/{deployment['id']}/schedules/{made[0]['id']}")
    first = ended()[-1]
    assert first["auto_scheduled"] is True
    assert first["state"]["name"] == "Completed", first["state"]
    assert "24 added" in first["state"]["message"]
    assert len((tmp_path / "out" / "results.csv").read_text("utf-8").splitlines()) == 25
