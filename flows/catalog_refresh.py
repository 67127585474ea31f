"""The catalog refresh: updates a catalog from its source; makes only what has changed."""

from pathlib import Path
from typing import Any

from prefect import State, flow

from flows.bulk_import import make_products
from patternmill import parameters
from patternmill.runs.request import RefreshRequest
from patternmill.runs.run_text import RunSummary
from tasks.flow_parameters import Box, documented_by
from tasks.run_steps import summary_of


@flow(name="catalog-refresh", flow_run_name="refresh {source}", retries=0, persist_result=False)
@documented_by(RefreshRequest)
async def catalog_refresh(
    source: parameters.SourceName,
    catalog: Box[parameters.CatalogName] = None,
    environment: Box[parameters.EnvironmentName] = None,
    retire_at_most: Box[str] = None,
    retire: Box[parameters.Count] = None,
    mapping: Box[Path] = None,
    out: Box[parameters.Place] = None,
    budget: Box[parameters.AmountText] = None,
    max_items: Box[parameters.Count] = None,
    max_failures: Box[parameters.MaxFailures] = None,
    change_at_most: Box[str] = None,
    confirm: Box[parameters.Confirmation] = None,
    plan_only: bool = False,
    check: bool = False,
) -> State[Any]:
    """Compare the source with the catalog, make what was added or changed, retire what is gone."""
    return await make_products(RefreshRequest(**locals()))  # its fields are the parameters


async def run_refresh(request: RefreshRequest) -> RunSummary:
    """Run the flow, and return what came of it, even if rows failed. Raises PatternmillError for a refusal."""
    return await summary_of(catalog_refresh, request)
