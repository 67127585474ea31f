"""`patternmill up`: everything in one terminal; runs from the API come to their ends, and nothing outlives it."""

from __future__ import annotations

import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.harness import CHECKOUT, COMMAND, clean_environment
from tests.acceptance.prefect_servers import eventually
from tests.acceptance.test_import import ONE_ROW
from tests.acceptance.test_worker import WINDOW, begin_import
from tests.acceptance.workers import Prefect, Up, statuses, up
from tests.hostile import Hostile, Plan
from tests.hostile.plan import Times

pytestmark = pytest.mark.soak


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Up]:
    with up(tmp_path) as running:
        yield running


def test_runs_from_the_api_and_from_the_command_line(serving: Up, tmp_path: Path) -> None:
    """The sample catalog by its deployment, then a file by `import`: both in the one history. Ctrl-C ends all."""
    shutil.copytree(CHECKOUT / "inputs", tmp_path / "sheets")
    asked = {"file": "sheets/spring_catalog.csv", "out": "out", "environment": "staging"}
    run = serving.prefect.begin("bulk-import", **asked)
    assert serving.prefect.ended(run, within=150)["name"] == "Completed"
    assert len((tmp_path / "out" / "results.csv").read_text("utf-8").splitlines()) == 25

    (tmp_path / "tea.csv").write_text(ONE_ROW)
    imported = subprocess.run(
        [str(COMMAND), "import", "tea.csv"],
        cwd=tmp_path,
        env=clean_environment() | {"PATTERNMILL_HOME": str(tmp_path / "home")},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert imported.returncode == 0, imported.stderr
    runs = serving.prefect.api.post("flow_runs/filter", {})
    assert [found["state"]["name"] for found in runs] == ["Completed", "Completed"]

    serving.process.send_signal(signal.SIGINT)
    assert serving.process.wait(90) == 0, serving.output
    assert serving.left() == []


def test_every_deployment_runs(serving: Up, tmp_path: Path) -> None:
    """An import with a failure, its retry by the form, and a refresh of the same catalog, one after another."""
    file = tmp_path / "looms.csv"
    file.write_text(
        "sku,prompt,category,option:size,option:fabric\n"
        "L-1,Blue herons,Cushion,50x50,linen\n"
        "L-2,Broken looms [fail],Cushion,50x50,linen\n"
    )
    prefect, out = serving.prefect, str(tmp_path / "out")
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
    jobs, window = Times(median=4.0), str(WINDOW)
    with Hostile(Plan(patterns=jobs, products=jobs), tmp_path / "service") as service:
        with up(tmp_path, PATTERNMILL_MAX_IN_FLIGHT=window, **service.environment) as serving:
            begun = begin_import(serving.prefect, service, tmp_path, "broken-off")
            serving.process.send_signal(how)
            code = serving.process.wait(90)
        assert code == (0 if how is signal.SIGINT else -signal.SIGKILL), serving.output
        eventually(lambda: serving.left() == [], 60, serving.left)
    rows = statuses(begun.out)
    assert rows["not_started"] > 0
    assert rows["in_doubt"] == 0, rows


def test_schedule_survives_a_restart_and_starts_a_refresh(tmp_path: Path) -> None:
    """With whatever else people set at the server of `up`; its source lies in the folder of `up`, as it must."""
    shutil.copytree(CHECKOUT / "inputs", tmp_path / "sheets")
    with up(tmp_path) as serving:
        schedule_refresh(tmp_path, "0 5 * * *")
        imports = serving.prefect.deployment("bulk-import")
        serving.prefect.api.patch(f"deployments/{imports}", {"parameters": {"file": "a.csv"}})
        before = set_by_people(serving)
    with up(tmp_path) as serving:
        assert set_by_people(serving) == before
        assert before["spring (staging)"][1] == [(True, "0 5 * * *", "Europe/Berlin")]
        schedule_refresh(tmp_path, "* * * * *")
        eventually(lambda: bool(ended_runs(serving.prefect)), 240)
        first = ended_runs(serving.prefect)[-1]
    assert first["auto_scheduled"] is True
    assert first["state"]["name"] == "Completed", first["state"]
    assert "24 added" in first["state"]["message"]
    assert len((tmp_path / "out" / "results.csv").read_text("utf-8").splitlines()) == 25


def schedule_refresh(folder: Path, cron: str) -> None:
    """As a person does beside `up`: Prefect's server is that of the home."""
    options = ("--catalog", "spring", "--out", "out", "--cron", cron, "--timezone", "Europe/Berlin")
    subprocess.run(
        [str(COMMAND), "refresh", "sheets/spring_catalog.csv", *options],
        cwd=folder,
        env=clean_environment() | {"PATTERNMILL_HOME": str(folder / "home")},
        check=True,
        timeout=120,
    )


def set_by_people(serving: Up) -> dict[str, tuple[dict[str, Any], list[tuple[bool, str, str]]]]:
    """Return the parameters and schedules of each deployment."""
    return {
        found["name"]: (
            found["parameters"],
            [
                (one["active"], one["schedule"]["cron"], one["schedule"]["timezone"])
                for one in found["schedules"]
            ],
        )
        for found in serving.prefect.api.post("deployments/filter", {})
    }


def ended_runs(prefect: Prefect) -> list[dict[str, Any]]:
    final = {"flow_runs": {"state": {"type": {"any_": ["COMPLETED", "FAILED"]}}}}
    found: list[dict[str, Any]] = prefect.api.post("flow_runs/filter", final)
    return found
