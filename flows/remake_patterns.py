"""Remake patterns: rows of a catalog as it is now, each on another take of its pattern."""

from pathlib import Path
from typing import Any

from prefect import State, flow

from flows.bulk_import import make_products
from patternmill import parameters
from patternmill.runs.request import RemakeRequest
from patternmill.runs.run_text import RunSummary
from tasks.flow_parameters import Box, documented_by
from tasks.run_steps import summary_of


@flow(name="remake-patterns", flow_run_name="remake {catalog}", retries=0, persist_result=False)
@documented_by(RemakeRequest)
async def remake_patterns(
    catalog: Box[str] = None,
    environment: Box[parameters.EnvironmentName] = None,
    sku: tuple[str, ...] = (),
    picks: Box[Path] = None,
    takes: parameters.Takes = 1,
    take: Box[parameters.Takes] = None,
    again: bool = False,
    budget: Box[parameters.AmountText] = None,
    max_items: Box[parameters.Count] = None,
    max_failures: Box[parameters.MaxFailures] = None,
    change_at_most: Box[str] = None,
    confirm: Box[parameters.Confirmation] = None,
    plan_only: bool = False,
) -> State[Any]:
    """Choose the rows and their takes, and import them from the catalog as the ledger has it."""
    return await make_products(RemakeRequest(**locals()))  # its fields are the parameters


async def run_remake(request: RemakeRequest) -> RunSummary:
    """Run the flow, and return what came of it, even if rows failed. Raises PatternmillError for a refusal."""
    return await summary_of(remake_patterns, request)
