"""The steps of a run, as Prefect tasks: choose, read, check, plan, publish; and its pictures, after it."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

from prefect import task
from prefect.runtime import flow_run

from patternmill.looking.kept_pictures import keep_pictures
from patternmill.runs.pipeline import Pipeline, launched
from patternmill.runs.request import ImportRequest, RefreshRequest, RemakeRequest, RetryRequest
from patternmill.runs.safeguards import refuse_password
from patternmill.runs.spec import RunSpec, run_spec
from patternmill.settings import Settings
from patternmill.text import goods
from tasks.cancellation import end_killed_runs
from tasks.flow_parameters import in_worker_folder
from tasks.markup import line, logged


def requested(request: ImportRequest | RefreshRequest | RetryRequest | RemakeRequest) -> RunSpec:
    """The launching process's spec, else one made from the parameters, with rows that the ledger has for them.

    Raises ConfigurationError.
    """
    launch = launched.get()
    if launch is not None:
        return launch.spec
    by_deployment = in_worker_folder()
    if isinstance(request, RefreshRequest):
        refuse_password(request.source)
    return run_spec(request, by_deployment=by_deployment)


def refresh_name() -> str:
    """The name of a refresh's flow run."""
    parameters = flow_run.parameters
    return line(f"refresh {parameters['catalog'] or parameters['source']}")


@task(name="read", task_run_name="read the file", persist_result=False)
async def read_file(work: Pipeline) -> str:
    return logged(await work.read())


@task(name="check", task_run_name="check every row", persist_result=False)
async def check_rows(work: Pipeline) -> str:
    counts = logged(await work.check())
    for note in work.checked.notes:
        logged(f"Note: {note}")
    return counts


@task(name="plan", task_run_name="acquire the lease and plan", persist_result=False)
async def plan_items(work: Pipeline) -> str:
    run = await work.plan(flow_run.id)
    await end_killed_runs(filter(None, (broken.prefect_flow_run_id for broken in run.broken)))
    if run.plan.sent_once:
        logged(f"Note: {run.plan.sent_once}")
    cost = f" for {run.cost}" if run.cost.worst else ""
    left_out = f". {run.left_out.message}" if run.left_out else ""
    return logged(f"Run {run.record.run_id}: {goods(run.plan.purchases())} to buy{cost}{left_out}")


@task(name="choose", task_run_name="choose the rows", persist_result=False)
async def choose_rows(request: RetryRequest | RemakeRequest) -> RunSpec:
    """Return the rows of a retry or a remake, and log which they are. Raises ConfigurationError."""
    spec = await asyncio.to_thread(requested, request)
    if spec.remake is not None:
        logged("\n".join(spec.remake.lines()))
    elif spec.selection is not None and spec.selection.left_out:
        logged("\n".join(spec.selection.left_out_lines(10)))
    return spec


@task(name="publish", task_run_name="write the results", persist_result=False)
async def publish(work: Pipeline) -> str:
    results = await work.finish()
    logged(f"Results, failures and gallery: {results.out.resolve()}")
    return str(results.out)


def draw_pictures(out: Path, settings: Settings) -> None:
    """Have an embedded studio draw a run's pictures; the process ends with the last one, and nothing else waits."""
    assert settings.studio_url is not None, "the embedded studio has an address"
    threading.Thread(
        target=keep_pictures, args=(out, settings.home, settings.studio_url), name="pictures"
    ).start()
