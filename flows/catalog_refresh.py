"""The catalog refresh: updates a catalog from its source; makes only what has changed."""

from pathlib import Path
from typing import Any

from prefect import State, flow

from flows.bulk_import import make_products
from patternmill.parameters import (
    AmountText,
    CatalogName,
    Confirmation,
    Count,
    EnvironmentName,
    Folder,
    MaxFailures,
    SourceName,
)
from patternmill.runs.request import RefreshRequest
from tasks.flow_parameters import Box, documented_by
from tasks.run_steps import open_run, with_expected_ends


@flow(name="catalog-refresh", flow_run_name="refresh {source}", retries=0, persist_result=False)
@with_expected_ends
@documented_by(RefreshRequest)
async def catalog_refresh(
    source: SourceName,
    catalog: Box[CatalogName] = None,
    environment: Box[EnvironmentName] = None,
    retire_at_most: Box[str] = None,
    retire: Box[Count] = None,
    mapping: Box[Path] = None,
    out: Box[Folder] = None,
    budget: Box[AmountText] = None,
    max_items: Box[Count] = None,
    max_failures: Box[MaxFailures] = None,
    confirm: Box[Confirmation] = None,
) -> State[Any]:
    """Compare the source with the catalog, make what was added or changed, retire what is gone."""
    request = RefreshRequest(**locals())  # its fields are the parameters
    async with open_run(request) as run:
        return await make_products(run)
