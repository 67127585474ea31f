"""Shares of a run that other processes make: nothing twice, nothing lost, and one halt, limit and lease for all."""

import asyncio
import contextlib
import os
from collections import Counter
from dataclasses import replace

import pytest

from patternmill import halt
from patternmill.errors import LeaseLost, Refusal
from patternmill.fanout import Maker
from patternmill.ledger import leases
from patternmill.ledger.database import Database
from patternmill.ledger.leases import Lease
from patternmill.pipeline import carry_out
from patternmill.request import Request
from patternmill.shares import make_share, shares_of, unfinished
from patternmill.states import Outcome
from tests import test_ledger, test_runs
from tests.double import Double, Weather, serving
from tests.double.weather import Spell
from tests.spine import RUN
from tests.test_crashes import about, await_that, begin
from tests.test_nights import free_port
from tests.test_runs import results, row, run, sheet

double, postgres = test_runs.double, test_ledger.postgres
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
            if not isinstance(end, Exception):
                run.halt.stages.update(end.stages)
                run.halt.set(end.reason) if end.reason else None
        return unfinished(run, rows)


def made(double):
    patterns, products = test_runs.made(double)
    return patterns - 1, products - 1


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

    maker = Sharing()
    maker.share = make_twice
    end = asyncio.run(carry_out(Request(verb="retry", catalog="spring"), maker))
    assert end.summary.counts == {"failed": 1, "succeeded": 3}


def test_a_limit_binds_all_shares(opened, monkeypatch):
    monkeypatch.setenv("PATTERNMILL_DAY_BUDGET", "41.50")  # 1.50 are spent

    def more(run):  # another program spends meanwhile
        sql = "UPDATE environments SET spent = spent + 300000"
        run.database.change(lambda connection: connection.execute(sql))

    end = shared(Sharing(meanwhile=more))
    assert end.outcome == Outcome.BUDGET_REACHED
    assert made(opened)[0] + made(opened)[1] * 0.5 <= 40


def test_what_halts_a_stage_in_one_share_halts_it_in_all(opened):
    opened.weather = replace(opened.weather, spells=(JOBS_FAIL,))
    end = shared(Sharing())
    assert end.outcome == Outcome.FAILED and end.summary.causes[0].code in ("job_failed", "no_good_end")
    assert made(opened)[1] == 0
    assert {line["status"] for line in results(end).values()} <= {"failed", "not_started"}


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
    double, monkeypatch
):
    monkeypatch.setattr(leases, "TAKEOVER_AFTER", 2.0)
    database = Database("ledger.sqlite3")
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
        await again.leave_share()

    asyncio.run(play())
    assert not database.read("SELECT 1 FROM leases WHERE driver IS NOT NULL")
    database.disconnect()


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
