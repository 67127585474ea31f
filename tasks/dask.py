"""Has the workers of a Dask scheduler make shares of a run's rows, as tasks of Prefect's task runner."""

import asyncio
from itertools import islice
from typing import Any

from prefect import State, get_run_logger, task
from prefect.cache_policies import NO_CACHE
from prefect.states import Completed

from patternmill.fanout import LEAST_ROWS, MOST_TASK_RUNS, Fanout
from patternmill.items import Row
from patternmill.plan import BOUGHT, Plan
from patternmill.run import Run
from patternmill.shares import Share, make_share, shares_of, tell_shares, unfinished


@task(task_run_name="share {share.number}", retries=0, cache_policy=NO_CACHE, persist_result=False)
async def make_there(share: Share) -> State[Any]:
    """Make a share of a run, here on a worker."""
    return Completed(message=f"{len(share.keys):,} rows", data=[await make_share(share)])


async def spread(run: Run, plan: Plan, rows: list[Row], here: Fanout) -> list[Row]:
    """Have the workers make rows, and return those that are left, which this process makes.

    The first rows to buy are made `here` while a stage has not had a good end: the workers would test it each.
    """
    assert run.engine
    if plan.work <= MOST_TASK_RUNS:
        return rows
    if any(standing.room is not None for standing in run.engine.purchases.standings.values()):
        bought = (row for row in rows if any(plan.steps[one.id].action in BOUGHT for one in row.chain))
        await here.make(islice(bought, LEAST_ROWS), ())
    telling = asyncio.create_task(tell_shares(run))
    try:
        from prefect_dask.task_runners import DaskTaskRunner

        if not run.settings.ledger_address.startswith("postgres"):
            raise ValueError("the ledger must be in PostgreSQL")
        with DaskTaskRunner(address=run.settings.dask, client_kwargs={"timeout": 20}) as runner:
            await run.halt.until_over(asyncio.create_task(_make_all(run, plan, rows, runner)))
    except Exception as error:  # it is not installed, nobody answers, its client is closed
        get_run_logger().warning("Dask is not there; the run goes on in this process: %r", error)
    finally:
        telling.cancel()
    return unfinished(run, rows)


async def _make_all(run: Run, plan: Plan, rows: list[Row], runner: Any) -> None:
    """Have all shares made, as many at once as the workers have threads; those that live share the run's window."""
    making = dict[asyncio.Task[None], int]()
    async with asyncio.TaskGroup() as going:
        for share in shares_of(run, plan, rows, await _threads(runner)):
            while (free := await _threads(runner) - len(making)) < 1 and making:
                for done in (await asyncio.wait(making, return_when=asyncio.FIRST_COMPLETED))[0]:
                    del making[done]
            if run.halt.first_reason or free < 1:
                break
            window = max(1, (run.settings.max_in_flight - sum(making.values())) // free)
            making[going.create_task(_make_one(run, runner, share._replace(window=window)))] = window


async def _threads(runner: Any) -> int:
    return sum((await asyncio.to_thread(lambda: runner.client.nthreads())).values())


async def _make_one(run: Run, runner: Any, share: Share) -> None:
    """Have a share made; whatever becomes of it, the ledger says what is left."""
    future = runner.submit(make_there, {"share": share}).wrapped_future
    loop, done = asyncio.get_running_loop(), asyncio.Event()
    future.add_done_callback(lambda _: loop.call_soon_threadsafe(done.set))
    try:
        await done.wait()
        if reason := (await (await asyncio.to_thread(future.result, 20)).aresult())[0]:
            run.halt.set(reason)
    except Exception as error:  # whatever Dask and its workers raise
        get_run_logger().warning("Share %d was not made by a worker: %r", share.number, error)
    finally:
        future.cancel()  # else Dask makes it again where the worker that made it dies
