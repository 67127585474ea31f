"""The steps before anything is bought: reading the file, checking its rows, planning."""

from __future__ import annotations

from prefect import task
from prefect.cache_policies import NO_CACHE
from prefect.runtime import flow_run

from patternmill.runs.pipeline import ImportPipeline
from patternmill.text import goods
from tasks.run_log import logged


@task(name="read", task_run_name="read the file", cache_policy=NO_CACHE, persist_result=False)
async def read_file(work: ImportPipeline) -> str:
    return logged(await work.read())


@task(name="check", task_run_name="check every row", cache_policy=NO_CACHE, persist_result=False)
async def check_rows(work: ImportPipeline) -> str:
    return logged(await work.check())


@task(name="plan", task_run_name="take the catalog and plan", cache_policy=NO_CACHE, persist_result=False)
async def plan_items(work: ImportPipeline) -> str:
    run = await work.plan(flow_run.id)
    cost = f" for {run.forecast}" if run.forecast.worst else ""
    left_out = f". {run.left_out.message}" if run.left_out else ""
    return logged(f"Run {run.record.run_id}: {goods(*run.plan.purchases())} to buy{cost}{left_out}")
