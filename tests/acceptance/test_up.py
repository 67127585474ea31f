"""`patternmill up`: everything in one terminal; runs from the API come to their ends, and nothing outlives it."""

from __future__ import annotations

import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.harness import CHECKOUT, COMMAND, clean_environment
from tests.acceptance.prefect_servers import eventually
from tests.acceptance.test_import import ONE_ROW
from tests.acceptance.test_worker import WINDOW, begin_import
from tests.acceptance.workers import Prefect, statuses, up
from tests.hostile import Hostile, Plan
from tests.hostile.plan import Times

pytestmark = pytest.mark.soak


def beside(folder: Path, *arguments: str, until: str | None = None) -> None:
    """Run a command as a person does beside `up`, which may end it with Ctrl-C once it has written something."""
    environment = clean_environment() | {"PATTERNMILL_HOME": str(folder / "home"), "PYTHONUNBUFFERED": "1"}
    command = [str(COMMAND), *arguments]
    with subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            lines.append(line)
            if until is not None and until in line:
                process.send_signal(signal.SIGINT)
        assert until is None or until in "".join(lines), lines
        assert process.wait(60) == 0, lines


def test_runs_from_the_api_and_from_the_command_line(tmp_path: Path) -> None:
    """A failed import and its retry by the form, then a file by `import`, are in one history. Ctrl-C ends all."""
    (tmp_path / "looms.csv").write_text(
        "sku,prompt,category,option:size,option:fabric\n"
        "L-1,Blue herons,Cushion,50x50,linen\n"
        "L-2,Broken looms [fail],Cushion,50x50,linen\n"
    )
    with up(tmp_path) as serving:
        # Nothing was imported yet, and `up` names this command for its sign-in link.
        beside(tmp_path, "status", "--open", until="It is served until Ctrl-C.")
        prefect, common = serving.prefect, {"out": "out", "environment": "staging"}
        run = prefect.begin("bulk-import", file="looms.csv", **common)
        assert prefect.ended(run)["message"].startswith("2 rows: 1 succeeded, 1 failed. 1 × The pattern")
        run = prefect.begin("retry-failed", catalog="looms", status=["failed"], **common)
        assert prefect.ended(run)["name"] == "CompletedWithFailures"
        (tmp_path / "tea.csv").write_text(ONE_ROW)
        beside(tmp_path, "import", "tea.csv")
        assert len(prefect.runs()) == 3
        serving.process.send_signal(signal.SIGINT)
        assert serving.process.wait(90) == 0, serving.output
        assert serving.left() == []


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_up_ended_in_mid_run_leaves_no_process(tmp_path: Path, how: signal.Signals) -> None:
    """After Ctrl-C or SIGKILL the run drains and writes its results."""
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
    """Its source lies in the folder of `up`, as is required."""
    shutil.copytree(CHECKOUT / "inputs", tmp_path / "sheets")
    schedule = (
        "refresh",
        "sheets/spring_catalog.csv",
        "--catalog",
        "spring",
        "--out",
        "out",
        "--timezone",
        "Europe/Berlin",
    )
    with up(tmp_path) as serving:
        beside(tmp_path, *schedule, "--cron", "0 5 * * *")
    with up(tmp_path) as serving:
        (its,) = serving.prefect.ask("deployments/name/catalog-refresh/spring%20(staging)")["schedules"]
        assert (its["active"], its["schedule"]["cron"]) == (True, "0 5 * * *")
        beside(tmp_path, *schedule, "--cron", "* * * * *")
        eventually(lambda: bool(ended_runs(serving.prefect)), 240)
        first = ended_runs(serving.prefect)[-1]
    assert first["auto_scheduled"] is True
    assert first["state"]["name"] == "Completed", first["state"]
    assert "24 added" in first["state"]["message"]
    assert len((tmp_path / "out" / "results.csv").read_text("utf-8").splitlines()) == 25


def ended_runs(prefect: Prefect) -> list[dict[str, Any]]:
    final = {"flow_runs": {"state": {"type": {"any_": ["COMPLETED", "FAILED"]}}}}
    found: list[dict[str, Any]] = prefect.api.post("flow_runs/filter", final)
    return found
