"""The steps at the end: the outcome from the ledger, the results files, and the embedded studio's pictures."""

from __future__ import annotations

import asyncio

from prefect import task
from prefect.cache_policies import NO_CACHE
from prefect.runtime import deployment

from patternmill.runs.pipeline import Pipeline
from prefect_host.stop_signals import Stopping
from tasks.gallery_pictures import keep_pictures
from tasks.run_log import logged


@task(name="publish", task_run_name="write the results", cache_policy=NO_CACHE, persist_result=False)
async def publish(work: Pipeline) -> str:
    await work.end()
    results = await work.publish()
    logged(f"Results, failures and gallery: {results.out.resolve()}")
    return str(results.out)


async def picture_gallery(work: Pipeline, stopping: Stopping) -> None:
    """Only for deployments: the command line draws the pictures after its run, so that Ctrl-C can skip it."""
    if work.spec.settings.embedded and deployment.id is not None:
        await draw_pictures(work, stopping)


@task(name="pictures", task_run_name="draw the pictures", cache_policy=NO_CACHE, persist_result=False)
async def draw_pictures(work: Pipeline, stopping: Stopping) -> None:
    settings, out = work.spec.settings, work.published.out
    assert settings.studio_url is not None, "the embedded studio has an address"
    lines: list[str] = []
    await asyncio.to_thread(
        keep_pictures,
        out,
        settings.home / "pictures",
        settings.studio_url,
        lines.append,
        is_stopped=lambda: stopping.is_requested,
    )
    for line in lines:
        logged(line)
