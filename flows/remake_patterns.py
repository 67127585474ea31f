"""Remake patterns: rows of a catalog as it is now, each on another take of its pattern."""

from typing import Any

from prefect import State, flow

from flows.bulk_import import import_rows
from patternmill.runs.request import RemakeRequest
from tasks.flow_parameters import asks_for
from tasks.run_steps import choose_rows


@flow(name="remake-patterns", flow_run_name="remake {catalog}", persist_result=False)
@asks_for(RemakeRequest, "catalog", "environment", "sku")
async def remake_patterns(**asked: Any) -> State[Any]:
    """Choose the rows and their takes, and import them from the catalog as the ledger has it."""
    return await import_rows(await choose_rows(RemakeRequest(**asked)))
