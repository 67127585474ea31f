"""The catalog refresh: updates a catalog from its source; makes only what has changed."""

from typing import Any

from prefect import State, flow

from flows.bulk_import import import_rows
from patternmill.runs.request import RefreshRequest
from tasks.flow_parameters import asks_for
from tasks.run_steps import refresh_name, requested


@flow(name="catalog-refresh", flow_run_name=refresh_name, persist_result=False)
@asks_for(RefreshRequest, "source", "catalog", "environment", "retire_at_most", "retire")
async def catalog_refresh(**asked: Any) -> State[Any]:
    """Compare the source with the catalog, make what was added or changed, retire what is gone."""
    return await import_rows(requested(RefreshRequest(**asked)))
