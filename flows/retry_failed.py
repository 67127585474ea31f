"""Retry what failed: the unfinished rows of an earlier run, and nothing else."""

from pathlib import Path
from typing import Any

from prefect import State, flow

from flows.bulk_import import make_products
from patternmill.parameters import (
    AmountText,
    Confirmation,
    Count,
    EnvironmentName,
    Folder,
    MaxFailures,
)
from patternmill.results.row_filter import Since, Statuses
from patternmill.runs.request import RetryRequest
from patternmill.states import Outcome
from tasks.flow_parameters import Box, documented_by
from tasks.prefect_states import state_of
from tasks.run_steps import open_run, with_expected_ends


@flow(name="retry-failed", flow_run_name="retry {catalog} {run}", retries=0, persist_result=False)
@with_expected_ends
@documented_by(RetryRequest)
async def retry_failed(
    catalog: Box[str] = None,
    environment: Box[EnvironmentName] = None,
    run: str = "latest",
    status: Statuses = (),
    code: tuple[str, ...] = (),
    sku: tuple[str, ...] = (),
    category: tuple[str, ...] = (),
    changed_since: Box[Since] = None,
    picks: Box[Path] = None,
    out: Box[Folder] = None,
    budget: Box[AmountText] = None,
    max_items: Box[Count] = None,
    max_failures: Box[MaxFailures] = None,
    confirm: Box[Confirmation] = None,
) -> State[Any]:
    """Choose the rows, and import them again from the ledger's copy of the file."""
    request = RetryRequest(**locals())  # its fields are the parameters
    async with open_run(request) as opened:
        selection = opened.spec.selection
        if selection is not None and not selection.rows:
            why = (selection.nothing_to_retry, *selection.left_out_lines(0))
            return state_of(Outcome.COMPLETED, " ".join(why))
        return await make_products(opened)
