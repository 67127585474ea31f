"""Real processes of the command: two at once on one ledger, with a service that looks before it writes."""

import os
import signal
import time
from collections import Counter

import pytest

from tests import test_ledger
from tests.double import Double, Weather, serving
from tests.test_crashes import UNSHOWN, about, await_that, begin
from tests.test_prefect_server import servers_of
from tests.test_runs import row, sheet

address, postgres = test_ledger.address, test_ledger.postgres


@pytest.mark.soak
def test_a_server_that_is_lost_in_mid_run_stops_no_purchase_and_ends_the_command_in_time(
    tmp_path, monkeypatch
):
    double = Double(Weather(latency=0.01, pattern_time=4.0, product_time=2.0, spread=0.01))
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("PREFECT_")]:
        monkeypatch.delenv(name)
    sheet(*map(row, range(12)))
    with serving(double) as url:
        process = begin("cli.main", "import", "spring.csv", **about(url))
        await_that(lambda: double.jobs or process.poll() is not None)
        for server in servers_of(tmp_path / "home"):
            os.kill(server, signal.SIGKILL)
        said, _ = process.communicate(timeout=120)
    assert process.returncode == 0, said
    assert "Completed: 12 succeeded" in said
    assert "missed part of this run" in said
    assert "Traceback" not in said
    written = (tmp_path / "results/spring/latest/manifest.json").stat().st_mtime
    assert time.time() - written < 60


def test_two_catalogs_with_equal_rows_at_once_buy_nothing_twice(tmp_path, monkeypatch, address):
    double = Double(Weather(dialect="looks up", latency=0.05, pattern_time=0.5, product_time=0.5))
    monkeypatch.chdir(tmp_path)
    with serving(double) as url:
        processes = []
        for name in ("spring", "summer"):
            sheet(*map(row, range(20)), name=f"{name}.csv")
            environment = about(url, HOME=f"home-{name}", LEDGER_URL=address) | UNSHOWN
            processes.append(begin("cli.main", "import", f"{name}.csv", **environment))
        ends = [process.communicate(timeout=120)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0], ends
    contents = Counter(
        (job.stage, job.body.get("prompt") or job.body["patternId"]) for job in double.jobs.values()
    )
    assert len(contents) == 40
    assert set(contents.values()) == {1}
