"""The steps before anything is bought: reading the file, checking its rows, planning."""

from __future__ import annotations

from prefect import task
from prefect.cache_policies import NO_CACHE
from prefect.runtime import deployment, flow_run

from patternmill.runs.context import launched
from patternmill.runs.pipeline import Pipeline
from patternmill.runs.request import ImportRequest, RefreshRequest
from patternmill.runs.safeguards import refuse_password
from patternmill.runs.spec import RunSpec, import_spec, refresh_spec
from patternmill.text import goods
from tasks.run_log import logged


def requested(request: ImportRequest | RefreshRequest) -> RunSpec:
    """The launching process's spec, else one made from the parameters. Raises ConfigurationError."""
    launch = launched.get()
    if launch is not None:
        return launch.spec
    by_deployment = deployment.id is not None
    if isinstance(request, ImportRequest):
        return import_spec(request, by_deployment=by_deployment)
    for address in (request.source, request.out or ""):
        refuse_password(address)
    return refresh_spec(request, by_deployment=by_deployment)


@task(name="read", task_run_name="read the file", cache_policy=NO_CACHE, persist_result=False)
async def read_file(work: Pipeline) -> str:
    return logged(await work.read())


@task(name="check", task_run_name="check every row", cache_policy=NO_CACHE, persist_result=False)
async def check_rows(work: Pipeline) -> str:
    return logged(await work.check())


@task(name="plan", task_run_name="acquire the lease and plan", cache_policy=NO_CACHE, persist_result=False)
async def plan_items(work: Pipeline) -> str:
    run = await work.plan(flow_run.id)
    cost = f" for {run.forecast}" if run.forecast.worst else ""
    left_out = f". {run.left_out.message}" if run.left_out else ""
    return logged(f"Run {run.record.run_id}: {goods(*run.plan.purchases())} to buy{cost}{left_out}")
