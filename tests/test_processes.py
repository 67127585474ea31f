"""Real processes of the command: two at once on one ledger, with a service that looks before it writes."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.double import Double, Weather, serving
from tests.spine import drop_postgres, new_postgres
from tests.test_crashes import UNSHOWN, about
from tests.test_runs import row, sheet

ROOT = Path(__file__).parent.parent


@pytest.fixture(params=["sqlite", "postgresql"])
def ledger(request, tmp_path):
    if request.param == "sqlite":
        yield {"PATTERNMILL_HOME": str(tmp_path / "home")}
        return
    address = new_postgres()
    yield {"PATTERNMILL_LEDGER_URL": address}
    drop_postgres(address)


def kill_server_of(home):
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = process.read_bytes().split(bytes(1))
            if b"cli.shared" in words and any(str(home).encode() in word for word in words):
                os.kill(int(process.parent.name), signal.SIGKILL)


@pytest.mark.soak
def test_a_server_that_is_lost_in_mid_run_stops_no_purchase_and_ends_the_command_in_time(
    tmp_path, monkeypatch
):
    double = Double(Weather(latency=0.01, pattern_time=4.0, product_time=2.0, spread=0.01))
    monkeypatch.chdir(tmp_path)
    sheet(*(row(number) for number in range(12)))
    home = tmp_path / "home"
    with serving(double) as address:
        environment = {name: text for name, text in os.environ.items() if not name.startswith("PREFECT_")}
        environment |= about(address) | {"PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-m", "cli.main", "import", "spring.csv"]
        process = subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        while not double.jobs and process.poll() is None:
            time.sleep(0.1)
        kill_server_of(home)
        said, _ = process.communicate(timeout=120)
    assert process.returncode == 0, said
    assert "Completed: 12 succeeded" in said
    assert "missed part of this run" in said
    assert "Traceback" not in said
    written = (tmp_path / "results/spring/latest/manifest.json").stat().st_mtime
    assert time.time() - written < 60


def test_two_catalogs_with_equal_rows_at_once_buy_nothing_twice(tmp_path, monkeypatch, ledger):
    double = Double(Weather(dialect="looks up", latency=0.05, pattern_time=0.5, product_time=0.5))
    monkeypatch.chdir(tmp_path)
    rows = [row(number) for number in range(20)]
    with serving(double) as address:
        processes = []
        for name in ("spring", "summer"):
            sheet(*rows, name=f"{name}.csv")
            environment = {**os.environ, **about(address, HOME=f"home-{name}"), **ledger, **UNSHOWN}
            command = [sys.executable, "-m", "cli.main", "import", f"{name}.csv"]
            processes.append(subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True))
        ends = [process.communicate(timeout=120)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0], ends
    contents = Counter(
        (job.stage, job.body.get("prompt") or job.body["patternId"]) for job in double.jobs.values()
    )
    assert len(contents) == 40
    assert set(contents.values()) == {1}
