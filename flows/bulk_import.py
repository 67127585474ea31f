"""The bulk import: a sheet of prompts and category selections becomes patterns and products."""

from dataclasses import replace
from typing import Any

from prefect import State, flow

from patternmill.errors import ApprovalNeeded, Overlap
from patternmill.runs.pipeline import opened
from patternmill.runs.request import ImportRequest
from patternmill.runs.spec import RunSpec
from patternmill.settings import with_service
from patternmill.states import Outcome
from prefect_host.stop_signals import stop_on_signals
from tasks.approval_form import await_approval
from tasks.cancellation import final_state, heed_stop
from tasks.flow_parameters import asks_for
from tasks.prefect_states import ending_message, state_of
from tasks.rows import make_rows
from tasks.run_page import show_ending
from tasks.run_steps import (
    check_rows,
    draw_pictures,
    plan_items,
    publish,
    read_file,
    requested,
)


@flow(name="bulk-import", flow_run_name="import {file}", persist_result=False)
@asks_for(ImportRequest, "file", "catalog", "environment")
async def bulk_import(**asked: Any) -> State[Any]:
    """Read the file, check its rows, make what is missing, write the results; the state is named by the outcome."""
    return await import_rows(requested(ImportRequest(**asked)))


async def import_rows(spec: RunSpec) -> State[Any]:
    with stop_on_signals() as stopping:
        spec = replace(spec, settings=with_service(spec.settings))
        async with opened(spec) as work:
            await read_file(work)
            await check_rows(work)
            await await_approval(work)
            try:
                await plan_items(work)
            except Overlap as overlap:
                return state_of(Outcome.SKIPPED_OVERLAP, str(overlap))
            except ApprovalNeeded:
                # The plan changed at the last moment; the new one needs an approval too.
                await await_approval(work)
                raise
            stopping.attach(work.begun)
            await make_rows(work)
            await heed_stop(work)
            await publish(work)
            await show_ending(work.begun, work.ended, work.published)
            if spec.settings.embedded and spec.by_deployment and stopping.reason is None:
                # The command line draws them itself, so that Ctrl-C can skip it.
                draw_pictures(work.published.out, spec.settings)
            state = state_of(work.ended.outcome, ending_message(work.ended, work.published.causes))
            return await final_state(state)
