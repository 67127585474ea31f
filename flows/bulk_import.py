"""The bulk import: a sheet of prompts and category selections becomes patterns and products."""

from pathlib import Path
from typing import Any

from prefect import State, flow

from patternmill import parameters
from patternmill.errors import PatternmillError
from patternmill.runs.request import ImportRequest, Request, SheetRequest
from patternmill.runs.run_text import RunSummary
from tasks.approval_form import approve
from tasks.flow_parameters import Box, documented_by
from tasks.rows import make_rows
from tasks.run_steps import (
    begin,
    check_rows,
    end,
    end_checked,
    end_planned,
    make_plan,
    nothing_to_retry,
    open_run,
    read_sheet,
    state_of_refusal,
    summary_of,
    write_results,
)


@flow(name="bulk-import", flow_run_name="import {file}", retries=0, persist_result=False)
@documented_by(ImportRequest)
async def bulk_import(
    file: parameters.SourceName,
    catalog: Box[str] = None,
    environment: Box[parameters.EnvironmentName] = None,
    mapping: Box[Path] = None,
    whole: bool = False,
    takes: parameters.Takes = 1,
    out: Box[parameters.Place] = None,
    budget: Box[parameters.AmountText] = None,
    max_items: Box[parameters.Count] = None,
    max_failures: Box[parameters.MaxFailures] = None,
    change_at_most: Box[str] = None,
    confirm: Box[parameters.Confirmation] = None,
    plan_only: bool = False,
    check: bool = False,
) -> State[Any]:
    """Turn a sheet of prompts and selections into products. Run it again: nothing is bought twice."""
    return await make_products(ImportRequest(**locals()))  # its fields are the parameters


async def run_import(request: ImportRequest) -> RunSummary:
    """Run the flow, and return what came of it, even if rows failed. Raises PatternmillError for a refusal."""
    return await summary_of(bulk_import, request)


async def make_products(request: Request) -> State[Any]:
    """Carry out a run of any flow, step by step; the state that it ends in is named by the run's outcome."""
    try:
        async with open_run(request) as run:
            if run.spec.has_no_rows:
                return nothing_to_retry(run)
            await read_sheet(run)
            await check_rows(run)
            if isinstance(request, SheetRequest) and request.check:
                return await end_checked(run)
            await make_plan(run)
            if request.plan_only:
                return await end_planned(run)
            await approve(run)
            await begin(run)
            await make_rows(run)
            await write_results(run)
            return await end(run)
    except PatternmillError as refusal:
        return state_of_refusal(refusal)
