"""The bulk import: a sheet of prompts and category selections becomes patterns and products."""

from pathlib import Path
from typing import Any

from prefect import State, flow

from patternmill.parameters import (
    AmountText,
    Confirmation,
    Count,
    EnvironmentName,
    Folder,
    MaxFailures,
    Takes,
)
from patternmill.runs.pipeline import Pipeline
from patternmill.runs.request import ImportRequest
from tasks.flow_parameters import Box, documented_by
from tasks.rows import make_rows
from tasks.run_steps import (
    approve,
    begin,
    check_rows,
    end,
    make_plan,
    open_run,
    read_sheet,
    with_expected_ends,
    write_results,
)


@flow(name="bulk-import", flow_run_name="import {file}", retries=0, persist_result=False)
@with_expected_ends
@documented_by(ImportRequest)
async def bulk_import(
    file: Path,
    catalog: Box[str] = None,
    environment: Box[EnvironmentName] = None,
    mapping: Box[Path] = None,
    whole: bool = False,
    takes: Takes = 1,
    out: Box[Folder] = None,
    budget: Box[AmountText] = None,
    max_items: Box[Count] = None,
    max_failures: Box[MaxFailures] = None,
    confirm: Box[Confirmation] = None,
) -> State[Any]:
    """Turn a sheet of prompts and selections into products. Run it again: nothing is bought twice."""
    request = ImportRequest(**locals())  # its fields are the parameters
    async with open_run(request) as run:
        return await make_products(run)


async def make_products(run: Pipeline) -> State[Any]:
    """Carry out a run of any flow, step by step; the state that it ends in is named by the run's outcome."""
    await read_sheet(run)
    await check_rows(run)
    await make_plan(run)
    await approve(run)
    await begin(run)
    await make_rows(run)
    await write_results(run)
    return await end(run)
