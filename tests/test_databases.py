"""Databases as companies run them: silent, behind a pool, in another encoding; and `pause` while runs buy."""

import asyncio
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from patternmill.errors import LedgerFault, Overlap
from patternmill.ledger.brake import pause, unpause
from patternmill.ledger.connections import Connection
from patternmill.ledger.database import Database
from patternmill.ledger.leases import Lease
from patternmill.looking.view import View
from patternmill.states import State
from tests import test_ledger
from tests.double import Double, Weather, serving
from tests.shelf import ended as becomes
from tests.shelf import shelved
from tests.spine import POSTGRES, RUN, drop_postgres, play, played, step, taken
from tests.test_cli import command
from tests.test_crashes import about, await_that, ended, process
from tests.test_runs import made, row, sheet

address, database, postgres = test_ledger.address, test_ledger.database, test_ledger.postgres


@played
async def test_a_holder_that_beats_in_the_very_moment_of_a_takeover_is_not_taken_over(database, monkeypatch):
    lease, purchases = await taken(database)
    other, change = Lease(database, "production", "spring"), database.change
    monkeypatch.setattr(Lease, "is_silent", lambda lease, driver: True)
    monkeypatch.setattr(database, "change", lambda wanted: (change(lease.prove), change(wanted))[1])
    with pytest.raises(Overlap):
        await other.take(RUN, lambda connection: None)
    assert (await purchases.begin(step(), None)).driver == lease.driver


@pytest.mark.slow
@pytest.mark.parametrize("dies_after", [0.0, 0.5])
@played
async def test_a_pause_does_not_wait_for_a_holder_that_is_dead_or_dies(database, dies_after):
    gone = f"UPDATE leases SET holder = '{socket.gethostname()}:4999999'"
    await taken(database)
    die = threading.Timer(dies_after, database.change, [lambda connection: connection.execute(gone)])
    die.start()
    await asyncio.sleep(0.0 if dies_after else 0.5)
    begun = time.monotonic()
    await pause(database, "production", "", patience=5.0)
    assert time.monotonic() - begun < 4


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("pauses", [2, pytest.param(50, marks=pytest.mark.soak)])
def test_a_pause_holds_while_six_processes_buy(tmp_path, monkeypatch, postgres, pauses):
    monkeypatch.chdir(tmp_path)
    chance, took = random.Random(pauses), []
    double, names, ledger = Double(Weather(latency=0.005, pattern_time=0.3)), "abcdef", Database(postgres)
    count = max(600, 60 * pauses)
    for name in names:
        sheet(*(row(at, f"{name} {at}", sku=f"{name}-{at}") for at in range(count)), name=name)
    with serving(double) as url:
        settings = about(url, LEDGER_URL=postgres, CONFIRM_ABOVE="99999", MAX_IN_FLIGHT="30")
        for _ in range(pauses):
            double.weather, bought = Weather(latency=0.005, pattern_time=0.3), len(double.jobs)
            runs = [process(0, "", settings, {"file": name}) for name in names]
            least = bought + chance.randrange(20, 300)
            await_that(lambda least=least: len(double.jobs) > least)
            begun = time.monotonic()
            assert asyncio.run(pause(ledger, "production", "wrong prompts")) == []
            known = len(double.record)
            took.append(time.monotonic() - begun)
            assert took[-1] < 15
            time.sleep(3)
            assert not [one for one in double.record[known:] if one.get("operation", "").endswith("/create")]
            for job in double.jobs.values():
                job.ends_at = 0.0
            assert [ended(one) for one in runs] == [3] * 6
            unpause(ledger, "production")
    ledger.disconnect()
    assert set(Counter(job.request for job in double.jobs.values()).values()) == {1}
    assert len(double.jobs) < 6 * 2 * count
    print(f"{pauses} pauses, {len(double.jobs)} bought: {min(took):.2f} to {max(took):.2f} s, none after")


def test_a_commit_whose_answer_is_lost_is_made_once(postgres, monkeypatch):
    execute, lost = Connection.execute, []

    def cut(self, sql, **values):
        done = execute(self, sql, **values)
        if sql == "COMMIT" and lost:
            lost.clear()
            self._driver.close()
            raise LedgerFault(self.place, "the server closed the connection", passing=True)
        return done

    async def case():
        database = Database(postgres)
        lease, purchases = await taken(database, max_items=3)
        monkeypatch.setattr(Connection, "execute", cut)
        lost.append(attempt := await purchases.begin(step(), None))
        lost.append(attempt := await purchases.accept(attempt, "job_1"))
        assert (await purchases.succeed(attempt, "pat_1")).state is State.SUCCEEDED
        assert not lost
        bought = database.read("SELECT bought, spent FROM runs WHERE id = :id", id=lease.driver)[0]
        assert tuple(bought) == (1, 400_000)
        events = database.read("SELECT state FROM events ORDER BY seq")
        assert [one.state for one in events] == ["intended", "accepted", "succeeded"]
        await database.close()

    lost.append("the first")
    play(case())


@pytest.mark.slow
def test_a_database_that_accepts_and_never_answers_is_given_up_at_the_start():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        begun = time.monotonic()
        with pytest.raises(LedgerFault, match="cannot be used"):
            Database(f"postgresql://anna@127.0.0.1:{silent.getsockname()[1]}/x")
        assert time.monotonic() - begun < 20


@pytest.mark.slow
def test_a_database_that_falls_silent_in_mid_run_is_asked_anew(postgres, monkeypatch):
    if os.getuid():
        pytest.skip("only root may stop the server's process")
    monkeypatch.setattr("patternmill.ledger.connections.SILENCE", 2.0)
    database = Database(postgres)
    server = database.read("SELECT pg_backend_pid() AS pid")[0].pid
    with ThreadPoolExecutor() as threads:
        os.kill(server, signal.SIGSTOP)
        try:
            answer = threads.submit(database.read, "SELECT pg_backend_pid() AS pid").result(30)
        finally:
            os.kill(server, signal.SIGCONT)
    assert answer[0].pid != server
    database.disconnect()


@pytest.mark.slow
@played
async def test_a_change_whose_database_falls_silent_is_made_once_elsewhere(postgres, monkeypatch):
    if os.getuid():
        pytest.skip("only root may stop the server's process")
    monkeypatch.setattr("patternmill.ledger.connections.SILENCE", 2.0)
    database = Database(postgres)
    _, purchases = await taken(database, max_items=3)
    server = (await database.write(lambda one: one.row("SELECT pg_backend_pid() AS pid"))).pid
    os.kill(server, signal.SIGSTOP)
    try:
        attempt = await asyncio.wait_for(purchases.begin(step(), None), 3600)  # in time-lapse
    finally:
        os.kill(server, signal.SIGCONT)
    assert attempt.state is State.INTENDED
    assert [one.state for one in database.read("SELECT state FROM events")] == ["intended"]
    await database.close()


@pytest.fixture
def pool(tmp_path, postgres):
    """The address of an empty ledger behind PgBouncer in transaction mode, for two connections at once."""
    if not (program := shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")):
        pytest.skip("PgBouncer is not installed")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    (tmp_path / "pool.ini").write_text(
        "[databases]\n* = host=127.0.0.1 port=5432 user=postgres\n[pgbouncer]\nlisten_addr = 127.0.0.1\n"
        f"listen_port = {port}\nunix_socket_dir =\nauth_type = any\npool_mode = transaction\n"
        "default_pool_size = 2\n"
    )
    for folder in (tmp_path, tmp_path.parent, tmp_path.parent.parent):
        folder.chmod(0o755)
    user = ["-u", "nobody"] if os.getuid() == 0 else []
    with subprocess.Popen([program, *user, tmp_path / "pool.ini"], stderr=subprocess.DEVNULL) as pool:
        await_that(lambda: not socket.socket().connect_ex(("127.0.0.1", port)))
        yield postgres.replace(":5432", f":{port}")
        pool.terminate()


@pytest.mark.soak  # PgBouncer is seldom installed
@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_two_runs_behind_a_pool_in_transaction_mode_buy_nothing_twice(tmp_path, monkeypatch, pool):
    monkeypatch.chdir(tmp_path)
    double = Double(Weather(dialect="looks up", latency=0.01, pattern_time=0.3, product_time=0.2))
    sheet(*map(row, range(15)))
    with serving(double) as url:
        for _ in range(2):
            asked = ({"file": "spring.csv", "catalog": name} for name in ("spring", "summer"))
            runs = [process(0, "", about(url, LEDGER_URL=pool), one) for one in asked]
            ledger = Database(pool)
            await_that(lambda: len(double.jobs) > 8)
            assert asyncio.run(pause(ledger, "production", "")) == []
            unpause(ledger, "production")
            ledger.disconnect()
            codes = [ended(one) for one in runs]
    assert codes == [0, 0]
    assert made(double) == (15, 15)


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
def test_a_database_in_another_encoding_is_refused_by_name(monkeypatch, postgres, encoding):
    other = f"{postgres}_{encoding.lower()}"
    like = f"ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
    with psycopg.connect(POSTGRES, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {other.rsplit('/', 1)[1]} {like}")
    monkeypatch.setenv("PATTERNMILL_LEDGER_URL", other)
    refused = command("status")
    drop_postgres(other)
    assert refused.returncode == 2
    assert f"is {encoding}, not UTF8" in refused.stderr


def test_a_page_sees_what_another_process_has_written(address, database):
    other, view = Database(address), View(database, "production", "spring")
    for catalog in ("spring", "summer"):
        shelved(other, ("herons", "waiting"), ("ferns", "waiting"), catalog=catalog)
    first = json.loads(view.since(0, {}))
    assert [card["others"] for card in first["cards"]] == [["summer: A-2"], ["summer: A-3"]]
    assert json.loads(view.since(first["version"], {}))["cards"] == []
    play(pause(other, "production/spring", "a review"))
    other.change(lambda connection: becomes(connection, "A-3", "succeeded"))
    now = json.loads(view.since(first["version"], {}))
    assert ([card["prompt"] for card in now["cards"]], len(now["paused"])) == (["ferns"], 1)
    assert now["counts"] == {"succeeded": 1, "waiting": 1}
    other.disconnect()
