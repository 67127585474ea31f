"""Retry what failed: the unfinished rows of an earlier run, and nothing else."""

from pathlib import Path
from typing import Any

from prefect import State, flow

from flows.bulk_import import make_products
from patternmill import parameters
from patternmill.runs.request import RetryRequest
from patternmill.runs.run_text import RunSummary
from patternmill.tables.row_filter import Since, Statuses
from tasks.flow_parameters import Box, documented_by
from tasks.run_steps import summary_of


@flow(name="retry-failed", flow_run_name="retry {catalog} {run}", retries=0, persist_result=False)
@documented_by(RetryRequest)
async def retry_failed(
    catalog: Box[str] = None,
    environment: Box[parameters.EnvironmentName] = None,
    run: str = "latest",
    status: Statuses = (),
    code: tuple[str, ...] = (),
    sku: tuple[str, ...] = (),
    category: tuple[str, ...] = (),
    changed_since: Box[Since] = None,
    picks: Box[Path] = None,
    out: Box[parameters.Place] = None,
    budget: Box[parameters.AmountText] = None,
    max_items: Box[parameters.Count] = None,
    max_failures: Box[parameters.MaxFailures] = None,
    change_at_most: Box[str] = None,
    confirm: Box[parameters.Confirmation] = None,
    plan_only: bool = False,
) -> State[Any]:
    """Choose the rows, and import them again from the ledger's copy of the file."""
    return await make_products(RetryRequest(**locals()))  # its fields are the parameters


async def run_retry(request: RetryRequest) -> RunSummary:
    """Run the flow, and return what came of it, even if rows failed. Raises PatternmillError for a refusal."""
    return await summary_of(retry_failed, request)
