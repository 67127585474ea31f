"""Real processes of the command: two at once on one ledger, with a service that looks before it writes."""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.double import Double, Weather, serving
from tests.double.server import KEY
from tests.spine import drop_postgres, new_postgres
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


def test_two_catalogs_with_equal_rows_at_once_buy_nothing_twice(tmp_path, monkeypatch, ledger):
    double = Double(Weather(dialect="looks up", latency=0.05, pattern_time=0.5, product_time=0.5))
    monkeypatch.chdir(tmp_path)
    rows = [row(number) for number in range(20)]
    with serving(double) as address:
        about = {"PATTERNMILL_STUDIO_URL": address, "PATTERNMILL_API_KEY": KEY, **ledger}
        processes = []
        for name in ("spring", "summer"):
            sheet(*rows, name=f"{name}.csv")
            environment = {**os.environ, "PATTERNMILL_HOME": f"home-{name}", **about, "PYTHONPATH": str(ROOT)}
            environment["PREFECT_API_URL"] = "http://127.0.0.1:9/api"
            command = [sys.executable, "-m", "cli.main", "import", f"{name}.csv"]
            processes.append(subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True))
        ends = [process.communicate(timeout=120)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0], ends
    contents = Counter(
        (job.stage, job.body.get("prompt") or job.body["patternId"]) for job in double.jobs.values()
    )
    assert len(contents) == 40
    assert set(contents.values()) == {1}
