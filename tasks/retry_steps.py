"""The step before a retry: choosing the rows of the earlier run."""

from __future__ import annotations

import asyncio

from prefect import task
from prefect.cache_policies import NO_CACHE
from prefect.runtime import deployment

from patternmill.ledger.ledger import open_ledger
from patternmill.runs.context import launched
from patternmill.runs.request import RetryRequest
from patternmill.runs.retry import RetrySelection, select_rows
from patternmill.runs.spec import RunSpec, retry_spec
from patternmill.settings import in_environment, read_settings
from tasks.run_log import logged

_MOST_LEFT_OUT = 10


@task(name="choose", task_run_name="choose the rows", cache_policy=NO_CACHE, persist_result=False)
async def choose_rows(request: RetryRequest) -> tuple[RunSpec, RetrySelection]:
    """Raises ConfigurationError when the run, or one of the rows, is unknown."""
    launch, by_deployment = launched.get(), deployment.id is not None
    spec = launch.spec if launch else await asyncio.to_thread(_spec_of, request, by_deployment)
    selection = spec.selection
    assert selection is not None, "a retry has a selection"
    if selection.left_out:
        logged("\n".join(selection.left_out_lines(_MOST_LEFT_OUT)))
    return spec, selection


def _spec_of(request: RetryRequest, by_deployment: bool) -> RunSpec:
    settings = read_settings()
    with open_ledger(in_environment(settings, request.environment), must_exist=True) as ledger:
        selection = select_rows(ledger, request)
    return retry_spec(request, selection, settings, by_deployment=by_deployment)
