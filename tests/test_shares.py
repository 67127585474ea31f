"""Shares of a run that other processes make: nothing twice, nothing lost, and one halt, limit and lease for all."""

import asyncio
import contextlib
import os
import pickle
import socket
from collections import Counter
from dataclasses import replace

import psycopg
import pytest

from flows.bulk_import import bulk_import
from patternmill import halt
from patternmill.errors import Halted, LeaseLost, LedgerFault, Overlap, Refusal
from patternmill.fanout import Maker
from patternmill.ledger import leases
from patternmill.ledger.brake import pause
from patternmill.ledger.database import Database
from patternmill.ledger.leases import Lease
from patternmill.ledger.purchases import Purchases
from patternmill.ledger.reports import status_lines, status_record
from patternmill.pipeline import carry_out
from patternmill.request import Request
from patternmill.settings import Settings
from patternmill.settlement import decide
from patternmill.shares import make_share, shares_of, unfinished
from patternmill.states import Outcome
from tests import test_ledger, test_runs
from tests.double import Double, Weather, serving
from tests.double.weather import Spell
from tests.spine import PRICES, RUN, of, played, taken
from tests.test_crashes import about, await_that, begin
from tests.test_nights import free_port
from tests.test_runs import results, row, run, sheet

double, postgres = test_runs.double, test_ledger.postgres
address, database = test_ledger.address, test_ledger.database
ROWS, JOBS_FAIL = 66, Spell("jobs_fail", 0.0, 1e12)


class Sharing(Maker):
    """Has three processes make a run, here side by side; of some shares the process is lost."""

    def __init__(self, lost=(), meanwhile=lambda run: None, once=lambda: True):
        self.lost, self.meanwhile, self.once, self.share = lost, meanwhile, once, make_share

    async def elsewhere(self, run, plan, rows, here):
        self.shares = list(shares_of(run, plan, rows, 3))
        going = [self.share(share) for share in self.shares if share.number not in self.lost]
        ends = asyncio.gather(*going, return_exceptions=True)
        await asyncio.sleep(1)
        while not self.once():
            await asyncio.sleep(1)
        self.meanwhile(run)
        self.ends = await ends
        for end in self.ends:
            run.halt.set(end) if isinstance(end, Halted) else None
        return unfinished(run, rows)


def made(double):
    patterns, products = test_runs.made(double)
    return patterns - 1, products - 1


def retried(share):
    maker = Sharing()
    maker.share = share
    return asyncio.run(carry_out(Request(verb="retry", catalog="spring"), maker))


def shared(maker, rows=ROWS):
    sheet(*map(row, range(1, rows + 1)))
    return asyncio.run(carry_out(Request(file="spring.csv"), maker))


@pytest.fixture
def opened(double, monkeypatch):
    """A service that has made a pattern and a product already, so that no stage is tested first."""
    monkeypatch.setenv("PATTERNMILL_CONFIRM_ABOVE", "1000")
    sheet(row(0))
    run(catalog="before")
    monkeypatch.setenv("PATTERNMILL_DASK", "here")
    return double


@pytest.mark.parametrize("lost", [(), (2,), (1, 2, 3)])
def test_shares_make_each_item_once_and_what_is_lost_is_made_by_the_run(opened, lost):
    sheet(*(row(number, "herons" if number % 3 else None) for number in range(1, ROWS + 1)))
    maker = Sharing(lost)
    end = asyncio.run(carry_out(Request(file="spring.csv"), maker))
    assert len(maker.shares) == 3 and sum(share.window for share in maker.shares) <= 200
    assert end.outcome == Outcome.COMPLETED and end.summary.counts == {"succeeded": ROWS}
    assert set(Counter(job.request for job in opened.jobs.values()).values()) == {1}
    assert made(opened) == (1 + ROWS // 3, ROWS)
    assert end.summary.spent == f"{1 + ROWS // 3 + ROWS * 0.5:.2f}"
    assert f"Made in this run: {1 + ROWS // 3} patterns, {ROWS} products" in end.message


def test_what_failed_in_a_retry_is_not_tried_again_by_the_process_that_makes_the_share_anew(opened):
    clear = opened.weather
    opened.weather = replace(clear, spells=(JOBS_FAIL,))
    shared(Maker(), rows=4)

    async def make_twice(share):
        await make_share(share._replace(keys=share.keys[-1:]))
        opened.weather = clear
        return await make_share(share)

    end = retried(make_twice)
    assert end.summary.counts == {"failed": 1, "succeeded": 3}


def test_a_retry_allows_one_more_attempt_in_all_shares(opened, monkeypatch):
    clear, slow = opened.weather, replace(opened.weather, pattern_time=1.0)
    opened.weather = replace(slow, spells=(JOBS_FAIL,))
    monkeypatch.setenv("PATTERNMILL_ATTEMPTS", "1")
    sheet(*(row(number, "herons") for number in range(1, 4)), row(4))
    run()

    async def make_in_two(share):
        begun = asyncio.create_task(make_share(share._replace(keys=share.keys[:2])))
        while made(opened)[0] < 3:
            await asyncio.sleep(1)
        opened.weather = replace(clear, pattern_time=4.0)
        await asyncio.gather(begun, make_share(share._replace(keys=share.keys[2:], number=2)))

    end = retried(make_in_two)
    assert end.summary.counts == {"failed": 3, "succeeded": 1} and made(opened)[0] == 4


def test_a_share_that_loses_its_lease_ends_alone(opened):
    opened.weather = replace(opened.weather, pattern_time=2.0)
    theft = "UPDATE leases SET driver = 'x' WHERE key LIKE '%#1'"
    steal = lambda run: run.database.change(lambda connection: connection.execute(theft))  # noqa: E731
    end = shared(Sharing(meanwhile=steal, once=lambda: made(opened)[0] > 5))
    assert end.outcome == Outcome.COMPLETED and made(opened) == (ROWS, ROWS)


def test_a_stage_stays_halted_though_the_processes_that_halted_it_are_lost(opened, monkeypatch):
    monkeypatch.setenv("PATTERNMILL_MAX_IN_FLIGHT", "12")
    opened.weather = replace(opened.weather, spells=(JOBS_FAIL,))
    before = []

    async def make_and_die(share):
        await make_share(share)
        before[:] = [made(opened)]
        raise OSError("the worker died")

    maker = Sharing()
    maker.share = make_and_die
    end = shared(maker)
    assert end.summary.causes[0].code == "no_good_end" and [made(opened)] == before and before[0][1] == 0
    assert {line["status"] for line in results(end).values()} <= {"failed", "not_started"}


@played
async def test_two_processes_that_begin_an_item_in_the_same_moment_have_one_attempt(postgres):
    one, other = Database(postgres), Database(postgres)
    (_, here), (_, there) = await taken(one), await taken(other, "summer")
    await here.begin(of("waves"), None)
    with psycopg.connect(postgres) as third:  # both have looked, and wait, when it ends
        third.execute("UPDATE environments SET day = day")
        begun = asyncio.gather(here.begin(of("herons"), None), there.begin(of("herons"), None))
        await asyncio.sleep(20)
    first, second = await begun
    assert first == second
    await one.close()
    await other.close()


@played
async def test_what_a_dead_share_of_another_machine_held_is_free_after_the_next_run(address, database):
    run_, _ = await taken(database)
    other = Database(address)
    share = Lease(other, "production", "spring", f"{run_.driver}#7.abc", share=7, first_event=0)
    await share.take({}, lambda connection: None)
    held = await Purchases(share, Settings(**PRICES)).begin(of("waves"), None)
    other.change(
        lambda connection: connection.execute("UPDATE leases SET holder = 'there:1' WHERE driver LIKE '%#%'")
    )
    database.change(
        lambda connection: connection.execute(
            "UPDATE leases SET holder = :gone WHERE driver NOT LIKE '%#%'",
            gone=f"{socket.gethostname()}:4999999",
        )
    )
    assert "under way" in "\n".join(status_lines(status_record(database, "production", None)))
    order = Lease(other, "production", "spring", order="one")
    await order.take(RUN, lambda connection: None)
    await order.give_back("Completed", "")
    await run_.give_back("Completed", "")
    with pytest.raises(Overlap):
        await decide(database, Settings(**PRICES), held.request_id, "write-off", "", "lost")
    await (await taken(database))[0].give_back("Completed", "")
    await decide(database, Settings(**PRICES), held.request_id, "write-off", "", "lost")
    assert not await pause(database, "production/spring", "", 0.0)
    await other.close()


def test_a_refusal_is_the_same_in_another_process():
    for refusal in (Refusal("a", "b", "c"), Halted(Outcome.PAUSED, "a", "b"), LedgerFault("a", "b")):
        found = pickle.loads(pickle.dumps(refusal))
        assert (str(found), vars(found)) == (str(refusal), vars(refusal))


def test_a_limit_binds_all_shares(opened, monkeypatch):
    monkeypatch.setenv("PATTERNMILL_DAY_BUDGET", "41.50")  # 1.50 are spent
    monkeypatch.setenv("PATTERNMILL_MAX_IN_FLIGHT", "9")
    opened.weather = replace(opened.weather, pattern_time=1.0)

    def more(run):  # another program spends meanwhile
        sql = "UPDATE environments SET spent = spent + 300000"
        run.database.change(lambda connection: connection.execute(sql))

    async def make_without_it(share):  # on a worker that was begun without this setting
        monkeypatch.delenv("PATTERNMILL_DAY_BUDGET", raising=False)
        return await make_share(share)

    maker = Sharing(meanwhile=more)
    maker.share = make_without_it
    end = shared(maker)
    assert end.outcome == Outcome.BUDGET_REACHED
    assert made(opened)[0] + made(opened)[1] * 0.5 <= 10


def test_a_halted_run_halts_its_shares(opened, monkeypatch):
    monkeypatch.setattr(halt, "DRAIN", 1.0)
    monkeypatch.setenv("PATTERNMILL_MAX_IN_FLIGHT", "30")
    opened.weather = replace(opened.weather, pattern_time=300.0)

    def stop(run):
        run.halt.stop()
        asyncio.get_running_loop().create_task(run.lease.tell_shares(Outcome.CANCELLED))

    end = shared(Sharing(meanwhile=stop, once=lambda: made(opened)[0] > 5))
    assert end.outcome == Outcome.CANCELLED
    assert made(opened) == (end.summary.counts["waiting"], 0)
    assert end.summary.counts["not_started"]


def test_a_share_ends_with_the_lease_of_its_run_and_waits_for_another_process_that_makes_it(
    database, monkeypatch
):
    monkeypatch.setattr(leases, "TAKEOVER_AFTER", 2.0)
    run_, share, again = (Lease(database, "staging", "spring") for _ in range(3))

    async def play():
        await run_.take(RUN, lambda connection: None)
        for number, one in enumerate((share, again)):
            one.driver, one.share = f"{run_.driver}#7.{number}", 7
        await share.take({}, lambda connection: None)
        assert database.change(share.prove)
        waiting = asyncio.create_task(again.take({}, lambda connection: None))
        for _ in range(4):
            await asyncio.sleep(1)
            database.change(share.prove)
        assert not waiting.done()
        await waiting  # until the other one is silent
        with pytest.raises(LeaseLost):
            database.change(share.prove)
        database.change(again.prove)
        await run_.give_back("Completed", "")
        with pytest.raises(LeaseLost):
            database.change(again.prove)

    asyncio.run(play())


def test_what_a_worker_with_other_settings_does_not_make_is_made_by_the_run(opened, monkeypatch, tmp_path):
    async def there(share):
        os.environ["PATTERNMILL_HOME"] = str(tmp_path / "other")
        return await make_share(share)

    maker = Sharing(meanwhile=lambda run: monkeypatch.setenv("PATTERNMILL_HOME", str(tmp_path / "home")))
    maker.share = there
    end = shared(maker)
    assert all(isinstance(one, Refusal) and "has no run" in one.message for one in maker.ends)
    assert end.outcome == Outcome.COMPLETED and made(opened) == (ROWS, ROWS)


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_dask_workers_make_a_run_and_one_is_killed(tmp_path, monkeypatch, postgres, rows=2000):
    monkeypatch.chdir(tmp_path)
    sheet(*map(row, range(rows)))
    double = Double(Weather(latency=0.005, pattern_time=3.0, product_time=1.5))
    there = f"tcp://127.0.0.1:{free_port()}"
    with serving(double) as url, contextlib.ExitStack() as stack:
        settings = about(url, LEDGER_URL=postgres, CONFIRM_ABOVE="9999", DASK=there)

        def begun(*words):
            process = stack.enter_context(begin(*words, **settings))
            stack.callback(process.kill)
            return process

        begun("distributed.cli.dask_scheduler", "--port", there.rsplit(":")[-1], "--no-dashboard")
        plain = ("--nthreads", "2", "--no-nanny", "--no-dashboard")
        worker, *_ = [begun("distributed.cli.dask_worker", there, *plain) for _ in range(3)]
        importing = begun("cli.main", "import", "spring.csv", "--yes")
        await_that(lambda: len(double.jobs) > rows or importing.poll() is not None, 300)
        worker.kill()
        said, _ = importing.communicate(timeout=600)
        assert importing.returncode == 0, said
    assert set(Counter(job.request for job in double.jobs.values()).values()) == {1}
    assert test_runs.made(double) == (rows, rows)
    database = Database(postgres)
    drivers = {found.driver for found in database.read("SELECT driver FROM attempts")}
    assert len({driver for driver in drivers if "#" in driver}) > 3
    database.disconnect()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("is_there", [True, False])
def test_a_flow_has_its_shares_made_by_dask_and_makes_them_itself_where_there_is_none(
    server, double, monkeypatch, postgres, is_there
):
    from distributed import LocalCluster

    monkeypatch.setattr("tasks.dask.MOST_TASK_RUNS", 10)
    monkeypatch.setenv("PATTERNMILL_LEDGER_URL", postgres)
    monkeypatch.setenv("PATTERNMILL_CONFIRM_ABOVE", "1000")
    sheet(*map(row, range(ROWS)))
    with LocalCluster(n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None) as cluster:
        monkeypatch.setenv("PATTERNMILL_DASK", cluster.scheduler_address if is_there else "tcp://127.0.0.1:9")
        summary = asyncio.run(bulk_import(file="spring.csv"))
    assert summary.counts == {"succeeded": ROWS} and test_runs.made(double) == (ROWS, ROWS)
    database = Database(postgres)
    found = database.read("SELECT COUNT(*) AS many FROM attempts WHERE driver LIKE '%#%'")
    assert (found[0].many > ROWS) is is_there
    database.disconnect()
