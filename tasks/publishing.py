"""The steps at the end: the outcome from the ledger, and the results files."""

from __future__ import annotations

from prefect import task
from prefect.cache_policies import NO_CACHE

from patternmill.mill.importing import Import


@task(name="publish", task_run_name="write the results", cache_policy=NO_CACHE, persist_result=False)
async def publish(work: Import) -> str:
    await work.end()
    results = await work.publish()
    return str(results.published.out)
