"""Deaths at each write, second Ctrl-Cs, processes that stand still, and disks that are full: the next run goes on."""

import asyncio
import errno
import itertools
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cli.main import run as command_here
from patternmill.ledger import leases
from patternmill.ledger.connections import Connection, Sqlite
from patternmill.pipeline import carry_out
from patternmill.request import Request
from patternmill.service.client import Client
from patternmill.states import EXIT_CODES, Outcome, Status
from tests import test_runs
from tests.double import Audit, Double, Line, Weather, serving
from tests.double.audit import sheet_of
from tests.double.server import KEY
from tests.test_runs import catalog, made, row, run, sheet, table

double = test_runs.double
ROOT = Path(__file__).parent.parent
UNSHOWN = {"PYTHONPATH": str(ROOT), "PREFECT_API_URL": "http://127.0.0.1:9/api"}
LINES = [Line("A-1", "herons"), Line("A-2", "herons"), Line("A-3", "waves")]
_PROCESSES = multiprocessing.get_context("forkserver")


def run_until(point, kind, environment, asked, takeover=45.0):
    """Carry out a request in this process, which dies or meets a full disk at a point: a commit, file or request."""
    os.environ.update(environment)
    leases.TAKEOVER_AFTER = takeover
    points, execute, post = itertools.count(1), Connection.execute, Client.post

    def met(is_of_file=False):
        now = next(points)
        if now == point and kind == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if now >= point > 0 and is_of_file:
            raise OSError(errno.ENOSPC, "No space left on device")

    def committed(self, sql, **values):
        around = met if sql == "COMMIT" else lambda: None
        return (around(), execute(self, sql, **values), around())[1]

    Connection.execute = committed
    Client.post = lambda self, *asked, **how: (met(), post(self, *asked, **how))[1]

    def before(call):
        return lambda *arguments: (met(is_of_file=True), call(*arguments))[1]

    os.fsync, os.replace = before(os.fsync), before(os.replace)
    end = asyncio.run(carry_out(Request(**asked)))
    Path("said").write_text(end.message)
    os._exit(EXIT_CODES.get(end.outcome, 3))


def process(*arguments, target=run_until, **options):
    """Begin `run_until` in a new process of this folder, forked from one that has only imported it."""
    os.environ["PYTHONPATH"] = str(ROOT)
    _PROCESSES.set_forkserver_preload(["tests.test_crashes", "patternmill.tables.checks"])
    begun = _PROCESSES.Process(target=target, args=arguments, kwargs=options, daemon=True)
    begun.start()
    return begun


def begin(module, *words, **environment):
    """Begin a program in this folder."""
    return subprocess.Popen(
        [sys.executable, "-m", module, *words], env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip


def ended(begun, timeout=120):
    begun.join(timeout)
    return begun.exitcode


def about(address, **more):
    names = {"STUDIO_URL": address, "API_KEY": KEY, "HOME": str(Path("home").absolute()), **more}
    return {f"PATTERNMILL_{name}": text for name, text in names.items()}


def surroundings():
    """Return the settings of this process: a new one has those of the first test of all."""
    return {name: text for name, text in os.environ.items() if name.startswith("PATTERNMILL_")}


def await_that(is_so, patience=90.0):
    until = time.monotonic() + patience
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.02)


def is_bought_once(double, lines):
    """Hold the service's record against the results: nothing twice or lost, and each row has its product."""
    audit, found = Audit(double.record), table("results/spring/latest/results.csv")
    wrong = [*audit.bought_twice(), *audit.changed(), *audit.lost(lines, found)]
    return not wrong and {one["status"] for one in found} == {"succeeded"}


_DEATHS = [pytest.param(one, "kill", marks=[pytest.mark.soak] * (one % 11 != 4)) for one in range(1, 60)]


@pytest.mark.slow
@pytest.mark.parametrize(("point", "kind"), [*_DEATHS, *((one, "full") for one in (3, 5, 36, 45))])
def test_what_meets_a_death_or_a_full_disk_at_any_write_is_gone_on_with(tmp_path, monkeypatch, point, kind):
    monkeypatch.chdir(tmp_path)
    Path("spring.csv").write_text(sheet_of(LINES))
    double = Double(Weather(latency=0.001, pattern_time=0.05, product_time=0.05))
    with serving(double) as address:
        code = ended(process(point, kind, about(address), {"file": "spring.csv"}))
        if kind == "full":
            assert code in (1, 2)
            assert "No space left on device" in Path("said").read_text()
        assert code == -signal.SIGKILL or kind == "full" or point > 50
        assert ended(process(0, "", about(address), {"file": "spring.csv"})) == 0
    assert is_bought_once(double, LINES)
    assert len(double.jobs) == 5


@pytest.mark.slow
def test_a_row_of_a_killed_run_is_in_doubt_and_no_longer_waits(double, tmp_path):
    sheet(row(1))
    for point in range(8, 40):
        for folder in ("home", "results"):
            shutil.rmtree(folder, ignore_errors=True)
        ended(process(point, "kill", surroundings(), {"file": "spring.csv"}))
        if "a-1" in (rows := catalog()) and rows["a-1"].code == "unanswered":
            break
    assert rows["a-1"].status == Status.IN_DOUBT


@pytest.mark.slow
@pytest.mark.parametrize("unshown", [UNSHOWN, pytest.param({}, marks=pytest.mark.soak)])
def test_a_second_ctrl_c_ends_at_once_and_the_next_run_goes_on(double, unshown):
    double.weather = Weather(latency=0.001, pattern_time=1000.0, product_time=0.1)
    sheet(row(1), row(2))
    command = begin("cli.main", "import", "spring.csv", **unshown)
    await_that(lambda: len(double.jobs) == 2)
    time.sleep(1.0)
    command.send_signal(signal.SIGINT)
    with pytest.raises(subprocess.TimeoutExpired):
        command.wait(3)  # it follows its jobs for a while
    pressed = time.monotonic()
    command.send_signal(signal.SIGINT)
    said, _ = command.communicate(timeout=30)
    assert time.monotonic() - pressed < 3
    assert (command.returncode, "Traceback" in said) == (130, False), said
    for job in double.jobs.values():
        job.ends_at = 0.0
    assert run().outcome is Outcome.COMPLETED
    assert made(double) == (2, 2)


@pytest.mark.slow
def test_a_run_that_stood_still_while_another_took_over_sends_nothing_more(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = [Line(f"A-{number}", f"herons {number}") for number in range(12)]
    Path("spring.csv").write_text(sheet_of(lines))
    double = Double(Weather(dialect="looks up", latency=0.02, pattern_time=1.5, product_time=0.3))
    with serving(double) as address:
        asked = about(address, MAX_IN_FLIGHT="4"), {"file": "spring.csv"}
        still = process(0, "", *asked, takeover=3.0)
        await_that(lambda: len(double.jobs) >= 5)
        os.kill(still.pid, signal.SIGSTOP)
        assert ended(process(0, "", *asked, takeover=3.0)) == 0
        known = len(double.record)
        os.kill(still.pid, signal.SIGCONT)
        assert ended(still) == 1
        assert "taken over spring" in Path("said").read_text()
    assert not [one for one in double.record[known:] if one.get("operation", "").endswith("/create")]
    assert is_bought_once(double, lines)
    assert len(double.jobs) == 24


def stand_still(ledger):
    """Stop within a transaction."""
    connection = Sqlite(ledger)
    connection.begin(alone=True)
    Path("locked").touch()
    os.kill(os.getpid(), signal.SIGSTOP)
    os._exit(0)


@pytest.mark.soak
@pytest.mark.parametrize(
    ("wakes", "code", "words"), [(True, 0, "Completed"), (False, 1, "database is locked")]
)
def test_a_process_that_stands_still_within_a_transaction_is_waited_for(double, wakes, code, words):
    sheet(row(1))
    run()
    sheet(row(1), row(2))
    holder = process("home/ledger.sqlite3", target=stand_still)
    await_that(Path("locked").exists)
    waits = process(0, "", surroundings(), {"file": "spring.csv"})
    time.sleep(5)
    if wakes:
        os.kill(holder.pid, signal.SIGCONT)
    assert ended(waits) == code
    assert words in Path("said").read_text()
    assert made(double) == ((2, 2) if wakes else (1, 1))
    holder.kill()


def mounted(script, *arguments):
    """Run an import in a mount namespace of its own, after a script that mounts something there."""
    namespace = ["unshare", "-m" if os.getuid() == 0 else "-rm"]
    trial = subprocess.run(
        [*namespace, "mount", "-t", "tmpfs", "tmpfs", "/mnt"], capture_output=True, check=False
    )
    if trial.returncode:
        pytest.skip(f"nothing can be mounted here: {trial.stderr.decode().strip()}")
    command = [sys.executable, "-m", "cli.main", "import", "spring.csv", *arguments]
    ended = subprocess.run(
        [*namespace, "sh", "-c", script, "sh", *command], env={**os.environ, **UNSHOWN},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert "Traceback" not in ended.stdout
    return ended


@pytest.mark.slow
def test_with_a_full_disk_nothing_more_is_bought_and_the_next_run_goes_on(double, monkeypatch):
    Path("home").mkdir()
    sheet(*map(row, range(150)))
    script = 'mount -t tmpfs -o size=900k tmpfs home && "$@"; code=$?; cp -a home kept; exit $code'
    ended = mounted(script, "--max-items", "300")
    assert ended.returncode == 1, ended.stdout
    assert "cannot be used: database or disk is full" in ended.stdout
    assert 0 < len(double.jobs) < 300
    monkeypatch.setenv("PATTERNMILL_HOME", "kept")
    assert run(max_items=300).outcome is Outcome.COMPLETED
    assert made(double) == (150, 150)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("folder", "code", "words"), [("home", 1, "The ledger"), ("results", 2, "The results")]
)
def test_on_a_disk_that_is_read_only_nothing_is_bought(double, folder, code, words):
    sheet(row(1))
    Path(folder).mkdir()
    ended = mounted(f'mount -t tmpfs -o ro tmpfs {folder} && exec "$@"')
    assert (ended.returncode, made(double)) == (code, (0, 0))
    assert words in ended.stdout


def test_results_that_cannot_be_written_at_the_end_are_said_and_written_later(double):
    note = double.note

    def spoil(event, **facts):
        if facts.get("stage") == "product":
            shutil.rmtree("results/spring")
            Path("results/spring").write_text("")
        note(event, **facts)

    double.note = spoil
    sheet(row(1))
    end = run()
    assert (end.outcome, end.summary.counts) == (Outcome.FAILED, {"succeeded": 1})
    assert "`patternmill results spring` writes them again" in end.message
    Path("results/spring").unlink()
    assert command_here(["results", "spring"]) == 0
    assert "succeeded" in Path("results/spring/now/results.csv").read_text("utf-8")
