"""Two processes at one run: one window, one budget, one hold; and what becomes of a part whose process is lost."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable

import pytest

from patternmill.ledger.ledger import open_ledger
from patternmill.runs import spread as spread_module
from patternmill.runs.spread import spread
from patternmill.settings import load_settings
from patternmill.states import Outcome, RowStatus
from tests.acceptance.harness import chained_rows
from tests.hostile import Plan, Rule, Times
from tests.integration.spread.conftest import Site
from tests.integration.spread.part_process import FENCED

ROWS = 40
WINDOW = 6
QUICK = Plan(patterns=Times(median=0.3), products=Times(median=0.2))
SLOW = Plan(patterns=Times(median=2.0), products=Times(median=1.0))

MakeSite = Callable[..., Site]


async def until(true: Callable[[], bool], within: float = 60) -> None:
    async with asyncio.timeout(within):
        while not true():
            await asyncio.sleep(0.1)


def creates(site: Site) -> int:
    return sum(line["event"] == "created" for line in site.service.lines())


def test_two_processes_make_everything_once(site: MakeSite) -> None:
    """And never exceed the window together."""
    made = site(QUICK, ROWS)
    ending = asyncio.run(made.run(max_in_flight=WINDOW))
    assert ending.outcome is Outcome.COMPLETED
    assert ending.rows == {RowStatus.SUCCEEDED: ROWS}
    assert [process.process.returncode for process in made.processes.started] == [0, 0]
    assert not made.audit.double_purchases and not made.audit.never_bought()
    assert 1 < made.most_in_flight() <= WINDOW


@pytest.mark.soak
def test_chains_stay_in_one_process(site: MakeSite) -> None:
    """References and refinements are made once, and each process has a share of the rows."""
    made = site(QUICK, ROWS)
    made.rows = chained_rows(ROWS)
    ending = asyncio.run(made.run(max_in_flight=WINDOW))
    assert ending.outcome is Outcome.COMPLETED
    assert [process.process.returncode for process in made.processes.started] == [0, 0]
    assert not made.audit.double_purchases and not made.audit.never_bought()
    assert not made.audit.requests_with_two_jobs
    assert made.audit.bought("reference") == 1


def test_budget_holds_over_both_processes(site: MakeSite) -> None:
    """Concurrent purchases are counted together: whole rows, and not a unit more is spent."""
    made = site(Plan(), ROWS)
    ending = asyncio.run(made.run(max_in_flight=20, budget=200))
    assert ending.outcome is Outcome.BUDGET_REACHED
    bought = made.audit
    patterns, products = bought.bought("pattern"), bought.bought("product")
    assert ending.rows[RowStatus.SUCCEEDED] == products >= patterns
    assert 200 - 13 < 10 * patterns + 3 * products <= 200
    assert made.spent(ending) == 10 * bought.bought("pattern") + 3 * bought.bought("product")


def test_takeover_fences_both_parts(site: MakeSite) -> None:
    """Another run gets the lease: neither part writes or sends anything afterwards."""
    made = site(SLOW, ROWS)

    async def taken_over() -> int:
        async with made.begun(max_in_flight=WINDOW) as work:
            run = work.begun
            spreading_it = asyncio.create_task(spread(run, made.processes, lambda part: part.engine.drive()))
            await until(lambda: creates(made) >= WINDOW)
            ledger = open_ledger(load_settings())
            hold = run.writer.lease
            assert hold is not None
            with ledger.transaction():
                ledger.claim_lease(hold.environment, hold.catalog, hold.run_id, "{}", over=hold.fence)
            ledger.close()
            await until(lambda: all(p.process.poll() is not None for p in made.processes.started))
            await spreading_it
            assert run.halt.reason is not None and run.halt.reason.code == "fenced"
            await run.writer.close()
            return creates(made)

    at_the_end = asyncio.run(taken_over())
    assert [process.process.returncode for process in made.processes.started] == [FENCED, FENCED]
    # Only what was sent before the lease was lost exists.
    assert at_the_end <= 3 * WINDOW
    assert not made.audit.double_purchases


@pytest.mark.soak
@pytest.mark.parametrize("sign", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stands still"])
def test_part_of_a_lost_process_is_resumed_by_another(
    site: MakeSite, sign: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From where it stopped; the paused process writes no more."""
    monkeypatch.setattr(spread_module, "TAKEOVER_AFTER", spread_module.timedelta(seconds=6))
    made = site(SLOW, ROWS)

    async def lost() -> Outcome:
        running = asyncio.create_task(made.run(max_in_flight=WINDOW))
        await until(lambda: creates(made) >= WINDOW)
        victim = made.processes.started[0].process
        os.kill(victim.pid, sign)
        await until(lambda: len(made.processes.started) == 3)
        if sign is signal.SIGSTOP:
            victim.send_signal(signal.SIGCONT)
            await until(lambda: victim.poll() is not None)
            assert victim.returncode == FENCED
        return (await running).outcome

    assert asyncio.run(lost()) is Outcome.COMPLETED
    assert made.processes.started[2].grant.number == made.processes.started[0].grant.number
    assert not made.audit.double_purchases and not made.audit.never_bought()
    assert not made.audit.requests_with_two_jobs
    assert made.most_in_flight() <= WINDOW


def test_halt_of_one_part_halts_the_other(site: MakeSite) -> None:
    """The key is refused in one part: the other begins nothing new either, and the run has the reason."""
    refused = Rule("patterns/create", "status", {"code": 401}, matching="no. 2,")
    made = site(Plan(rules=(refused,), patterns=Times(median=1.5), products=Times(median=1.0)), ROWS)
    ending = asyncio.run(made.run(max_in_flight=4))
    assert ending.outcome is Outcome.FAILED
    assert ending.record.reason is not None and "401" in ending.record.reason
    assert ending.rows[RowStatus.NOT_STARTED] > ROWS // 2
    assert not made.audit.unfired(made.service.plan)


@pytest.mark.soak
def test_failures_are_counted_over_both_processes(site: MakeSite) -> None:
    """A limit that neither part passes alone."""
    fails = Rule("patterns/create", "job_fails", {})
    made = site(Plan(rules=(fails,), patterns=Times(median=1.0)), ROWS)
    ending = asyncio.run(made.run(max_in_flight=4, max_failures="8", attempts=1))
    assert ending.outcome is Outcome.FAILED
    assert ending.record.reason is not None and "--max-failures" in ending.record.reason
    assert ending.rows[RowStatus.NOT_STARTED] > 0


def test_stopping_the_run_stops_its_parts(site: MakeSite) -> None:
    """Over the ledger: they drain and end; the run ends after them."""
    made = site(SLOW, ROWS)

    async def stopped() -> Outcome:
        async with made.begun(max_in_flight=WINDOW) as work:
            running = asyncio.create_task(
                spread(work.begun, made.processes, lambda part: part.engine.drive())
            )
            await until(lambda: creates(made) >= WINDOW)
            work.begun.stop("Stopped by a test.")
            await running
            assert all(process.process.poll() == 0 for process in made.processes.started)
            return (await work.end()).outcome

    assert asyncio.run(stopped()) is Outcome.CANCELLED
    assert not made.audit.unfinished
    assert not made.audit.double_purchases
    assert creates(made) < ROWS
