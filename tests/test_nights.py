"""Bad nights, each with real processes: Prefect server, worker, PostgreSQL go and come back while a run buys."""

import asyncio
import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import httpx
import pytest

from patternmill.ledger.brake import pause
from patternmill.ledger.connections import Postgres
from patternmill.ledger.database import Database
from patternmill.ledger.reports import status_record
from tests.double import Double, Weather, serving
from tests.test_crashes import about, await_that, ended, process
from tests.test_runs import made, row, sheet

ROOT = Path(__file__).parent.parent
pytestmark = [pytest.mark.soak, pytest.mark.timeout(1800)]


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


class Night:
    """A Prefect server with its database, and workers, in one folder."""

    def __init__(self, folder, service):
        self.folder, self.port, self.processes = folder, free_port(), []
        own = {n: t for n, t in os.environ.items() if not n.startswith(("PREFECT_", "PATTERNMILL_"))}
        self.env = own | about(service) | {
            "PYTHONPATH": str(ROOT), "PREFECT_HOME": str(folder / "prefect"), "PYTHONUNBUFFERED": "1",
            "PREFECT_SERVER_API_PORT": str(self.port), "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
            "PREFECT_FLOW_RUN_EXECUTE_SIGTERM_BEHAVIOR": "reschedule", "PATTERNMILL_LOG_FORMAT": "json",
        }  # fmt: skip
        self.http = httpx.Client(base_url=f"http://127.0.0.1:{self.port}/api", trust_env=False, timeout=30)

    def begin(self, *command, **env):
        with (self.folder / "night.log").open("ab") as log:
            begun = subprocess.Popen(
                [sys.executable, *command], env=self.env | env, stdout=log, stderr=log, start_new_session=True
            )
        self.processes.append(begun)
        return begun

    def server(self):
        begun = self.begin(
            "-m", "prefect", "server", "start", "--host", "127.0.0.1", "--port", str(self.port)
        )
        await_that(self.answers, 120)
        return begun

    def worker(self):
        return self.begin("-m", "cli.main", "up", PREFECT_API_URL=f"http://127.0.0.1:{self.port}/api")

    def answers(self):
        with contextlib.suppress(httpx.HTTPError):
            return self.http.get("/health").is_success
        return False

    def fire(self, name="bulk-import/bulk-import", /, **parameters):
        path = f"/deployments/name/{name}"
        await_that(lambda: self.http.get(path).is_success, 60)
        deployment = self.http.get(path).json()["id"]
        created = self.http.post(
            f"/deployments/{deployment}/create_flow_run", json={"parameters": parameters}
        )
        assert created.is_success, created.text
        return created.json()["id"]

    def state(self, run):
        found = self.http.get(f"/flow_runs/{run}").json()["state"]
        return found["name"], found["message"] or ""

    def tasks(self, run):
        found = self.http.post("/task_runs/filter", json={"flow_runs": {"id": {"any_": [run]}}}).json()
        return {one["name"]: one["state"]["type"] for one in found}

    def end(self):
        for one in self.processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(one.pid, signal.SIGKILL)
            one.wait()


@pytest.fixture
def double(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return Double(Weather(latency=0.01, pattern_time=8.0, product_time=8.0, spread=0.01))


@pytest.fixture
def night(tmp_path, double):
    with serving(double) as address:
        night = Night(tmp_path, address)
        yield night
        night.end()


def is_as_the_ledger_says(night, run):
    database = Database("home/ledger.sqlite3")
    runs = status_record(database, "production", "spring")["runs"]
    tags = night.http.get(f"/flow_runs/{run}").json()["tags"]
    (row,) = [one for one in runs if one["id"] in tags]
    database.disconnect()
    assert night.state(run)[0] == row["outcome"]
    assert night.state(run)[1].splitlines()[0] == row["message"].splitlines()[0]
    tasks = night.tasks(run)
    items = {name: state for name, state in tasks.items() if name.startswith(("pattern ", "product "))}
    assert set(items.values()) == {"COMPLETED"}, tasks
    return len(items)


@pytest.mark.parametrize(
    ("seconds", "how"), [(30, signal.SIGTERM), (30, signal.SIGKILL), (300, signal.SIGKILL)]
)
def test_the_page_says_what_the_ledger_says_after_the_server_was_away_over_the_end_of_a_run(
    night, double, seconds, how
):
    sheet(*map(row, range(6)))
    server, worker = night.server(), night.worker()
    run = night.fire(file="spring.csv")
    await_that(lambda: len(double.jobs) >= 4)
    time.sleep(2.0)
    gone = time.monotonic()
    os.killpg(server.pid, how)
    manifest = Path("results/spring/latest/manifest.json")
    await_that(manifest.exists, 120)
    assert json.loads(manifest.read_text())["outcome"] == "Completed"
    assert made(double) == (6, 6)
    time.sleep(max(0.0, gone + seconds - time.monotonic()))
    server = night.server()
    await_that(lambda: worker.poll() is None)
    sheet(*map(row, range(7)))
    double.weather = Weather(latency=0.01, pattern_time=0.5, product_time=0.5)
    time.sleep(60)  # what the first run's process still has to say
    print("before the next run:", night.state(run))
    following = night.fire(file="spring.csv")
    await_that(lambda: night.state(following)[0] == "Completed", 180)
    print("afterwards:", night.state(run), is_as_the_ledger_says(night, run), "items")
    assert made(double) == (7, 7)
    assert worker.poll() is None


def test_a_worker_that_is_killed_with_its_run_is_gone_on_with_by_the_next_run(night, double):
    sheet(*map(row, range(6)))
    night.server()
    worker = night.worker()
    run = night.fire(file="spring.csv")
    await_that(lambda: len(double.jobs) >= 4)
    for killed in [*processes_below(worker.pid), worker.pid]:
        os.kill(killed, signal.SIGKILL)
    assert night.state(run)[0] == "Running"
    double.weather = Weather(latency=0.01, pattern_time=0.5, product_time=0.5)
    worker = night.worker()
    following = night.fire(file="spring.csv")
    await_that(lambda: night.state(following)[0] == "Completed", 180)
    print("killed:", night.state(run), night.tasks(run))
    assert night.state(run)[0] == "Crashed"
    assert not set(night.tasks(run).values()) & {"RUNNING", "PENDING"}
    assert made(double) == (6, 6)
    told = [json.loads(line) for line in Path("night.log").read_text().splitlines() if line.startswith("{")]
    assert len([one for one in told if one.get("state") == "succeeded"]) == 12
    assert [one["event"] for one in told if "run_" in one["event"]] == ["run_begun", "run_begun", "run_ended"]


def processes_below(pid):
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if int(stat.read_text().rpartition(")")[2].split()[1]) == pid:
                child = int(stat.parent.name)
                found += [*processes_below(child), child]
    return found


class Cluster:
    """A PostgreSQL server that can be stopped."""

    def __init__(self, folder):
        self.data, self.port = folder / "data", free_port()
        self.bin = (
            max(Path("/usr/lib/postgresql").glob("*/bin"), default=None)
            or Path(shutil.which("initdb") or "/").parent
        )
        self.user = ["runuser", "-u", "postgres", "--"] if os.getuid() == 0 else []
        if not (self.bin / "initdb").exists():
            pytest.skip("no PostgreSQL server is installed")
        folder.chmod(0o777)
        self.call("initdb", "-D", str(self.data), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync")
        self.start()

    @property
    def address(self):
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def call(self, program, *arguments, **about):
        command = [*self.user, str(self.bin / program), *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True, cwd="/", **about).stdout

    def start(self):
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories="
        log = str(self.data / "log")
        command = [*self.user, str(self.bin / "pg_ctl"), "-D", str(self.data), "-o", options, "-l", log, "-w"]
        subprocess.run([*command, "start"], check=True, stdout=subprocess.DEVNULL, cwd="/")

    def stop(self, mode="immediate"):
        self.call("pg_ctl", "-D", str(self.data), "-m", mode, "-w", "stop")


@pytest.fixture
def cluster():
    with tempfile.TemporaryDirectory() as folder:  # not pytest's, which the user of the server may not enter
        cluster = Cluster(Path(folder))
        yield cluster
        with contextlib.suppress(subprocess.CalledProcessError):
            cluster.stop()


@pytest.mark.parametrize(
    ("mode", "seconds"),
    [("fast", 0), ("immediate", 0), ("immediate", 60)],
    ids=["restarted", "crashed", "away"],
)
def test_a_postgresql_that_goes_and_comes_back_costs_nothing(cluster, double, mode, seconds):
    double.weather = Weather(latency=0.02, pattern_time=2.0, product_time=2.0)
    sheet(*map(row, range(60)))
    with serving(double) as url:
        run = process(
            0, "", about(url, LEDGER_URL=cluster.address, CONFIRM_ABOVE="999"), {"file": "spring.csv"}
        )
        await_that(lambda: len(double.jobs) > 30)
        cluster.stop(mode)
        time.sleep(seconds)
        cluster.start()
        assert ended(run, 240) == 0, Path("said").read_text()
    assert "Completed: 60 succeeded" in Path("said").read_text()
    assert made(double) == (60, 60)


def test_a_dump_that_is_put_back_is_noticed_before_money(cluster, double):
    double.weather = Weather(latency=0.01, pattern_time=0.2, product_time=0.2)
    with serving(double) as url:
        settings = about(url, LEDGER_URL=cluster.address)
        sheet(row(1))
        assert ended(process(0, "", settings, {"file": "spring.csv"})) == 0
        dump = cluster.call(
            "pg_dump", "-h", "127.0.0.1", "-p", str(cluster.port), "-U", "postgres", "-c", "postgres"
        )
        sheet(row(1), row(2))
        assert ended(process(0, "", settings, {"file": "spring.csv"})) == 0
        cluster.call("psql", "-h", "127.0.0.1", "-p", str(cluster.port), "-U", "postgres", "-q", input=dump)
        assert ended(process(0, "", settings, {"file": "spring.csv"})) == 2
    assert made(double) == (2, 2)
    print(Path("said").read_text())


def holds_the_lock(address):
    """Stand still within a transaction that has the lock of all for itself."""
    connection = Postgres(address)
    connection.begin(alone=True)
    Path("locked").touch()
    os.kill(os.getpid(), signal.SIGSTOP)


def test_a_process_that_stands_still_with_the_lock_of_all_is_put_out(cluster, double):
    double.weather = Weather(latency=0.01, pattern_time=0.5, product_time=0.5)
    sheet(*map(row, range(5)))
    Database(cluster.address).disconnect()
    holder = process(cluster.address, target=holds_the_lock)
    await_that(Path("locked").exists)
    begun = time.monotonic()
    with serving(double) as url:
        assert ended(process(0, "", about(url, LEDGER_URL=cluster.address), {"file": "spring.csv"})) == 0
    print(f"after {time.monotonic() - begun:.0f} s")
    assert made(double) == (5, 5)
    holder.kill()


def test_two_commands_that_meet_a_pause_in_the_middle_of_a_restart_buy_nothing_after_it(cluster, double):
    """The brake is on record, whatever becomes of the server."""
    double.weather = Weather(latency=0.02, pattern_time=1.0, product_time=1.0)
    for name in ("spring", "summer"):
        sheet(*(row(number, f"{name} {number}") for number in range(200)), name=f"{name}.csv")
    with serving(double) as url:
        settings = about(url, LEDGER_URL=cluster.address, CONFIRM_ABOVE="9999", MAX_IN_FLIGHT="10")
        runs = [process(0, "", settings, {"file": f"{name}.csv"}) for name in ("spring", "summer")]
        await_that(lambda: len(double.jobs) > 40)
        ledger = Database(cluster.address)
        restart = threading.Thread(target=lambda: (cluster.stop(), cluster.start()))
        left = asyncio.run(pause(ledger, "production", "wrong prompts"))
        known = len(double.jobs)
        restart.start()
        assert [ended(one) for one in runs] == [3, 3]
        restart.join()
        ledger.disconnect()
    assert (left, len(double.jobs)) == ([], known)


SERVED = """
from flows.bulk_import import bulk_import
bulk_import.serve(name="served")
"""


def test_a_served_flow_that_is_stopped_buys_nothing_more_and_writes_its_results(night, double):
    double.weather = Weather(latency=0.01, pattern_time=60.0, product_time=1.0, spread=0.01)
    sheet(*map(row, range(12)))
    night.server()
    served = night.begin("-c", SERVED, PREFECT_API_URL=f"http://127.0.0.1:{night.port}/api")
    run = night.fire("bulk-import/served", file="spring.csv")
    await_that(lambda: len(double.jobs) == 4)
    time.sleep(2.0)
    os.kill(served.pid, signal.SIGTERM)
    time.sleep(1.0)
    known = len(double.jobs)
    served.wait(90)
    print("served:", night.state(run), night.tasks(run))
    assert len(double.jobs) == known
    assert json.loads(Path("results/spring/latest/manifest.json").read_text())["outcome"] == "Cancelled"
