"""What an attempt of this flow run left open that was killed: nobody will ever say how those ended."""

from __future__ import annotations

import logging
from uuid import UUID

from prefect import get_client
from prefect.client.orchestration import PrefectClient
from prefect.client.schemas.filters import (
    FlowRunFilter,
    FlowRunFilterId,
    FlowRunFilterParentFlowRunId,
    TaskRunFilter,
    TaskRunFilterState,
    TaskRunFilterStateType,
)
from prefect.client.schemas.objects import FlowRun, StateType, TaskRun
from prefect.runtime import flow_run
from prefect.states import Crashed

logger = logging.getLogger(__name__)

_OPEN = [StateType.PENDING, StateType.RUNNING]
_PAGE = 200
_MOST_PAGES = 50
_GONE = "The process that ran this was lost. What it had begun is in the ledger, and was taken up from there."


async def close_earlier_attempts() -> None:
    """Close the task runs and nested flow runs that are still open, before this attempt has any of its own."""
    if (flow_run.run_count or 1) < 2:
        return
    try:
        async with get_client() as client:
            await close_inside(client, UUID(str(flow_run.id)))
    except Exception as error:
        # A page that looks wrong is no reason not to run.
        logger.info("Earlier attempts stay open on the page: %s", type(error).__name__)


async def close_inside(client: PrefectClient, run_id: UUID) -> None:
    """Close what is open inside a flow run whose process is gone."""
    nested = await _nested(client, run_id)
    family = FlowRunFilter(id=FlowRunFilterId(any_=[run_id, *(run.id for run in nested)]))
    for _ in range(_MOST_PAGES):
        page = await _open_task_runs(client, family)
        for task_run in page:
            await client.set_task_run_state(task_run.id, Crashed(message=_GONE), force=True)
        if len(page) < _PAGE:
            break
    for run in nested:
        if run.state is None or run.state.type in _OPEN:
            await client.set_flow_run_state(run.id, Crashed(message=_GONE), force=True)


async def _nested(client: PrefectClient, run_id: UUID) -> list[FlowRun]:
    ours = FlowRunFilter(parent_flow_run_id=FlowRunFilterParentFlowRunId(any_=[run_id]))
    found: list[FlowRun] = []
    while page := await client.read_flow_runs(flow_run_filter=ours, limit=_PAGE, offset=len(found)):
        found += page
    return found


async def _open_task_runs(client: PrefectClient, family: FlowRunFilter) -> list[TaskRun]:
    unfinished = TaskRunFilter(state=TaskRunFilterState(type=TaskRunFilterStateType(any_=_OPEN)))
    return await client.read_task_runs(flow_run_filter=family, task_run_filter=unfinished, limit=_PAGE)
