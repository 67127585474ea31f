"""Retry what failed: the unfinished rows of an earlier run, and nothing else."""

from typing import Any

from prefect import State, flow

from flows.bulk_import import import_rows
from patternmill.runs.request import RetryRequest
from patternmill.states import Outcome
from patternmill.text import plural
from tasks.flow_parameters import asks_for
from tasks.prefect_states import state_of
from tasks.run_steps import choose_rows


@flow(name="retry-failed", flow_run_name="retry {catalog} {run}", persist_result=False)
@asks_for(RetryRequest, "catalog", "environment", "run", "status", "code", "sku")
async def retry_failed(**asked: Any) -> State[Any]:
    """Choose the rows, and import them again from the ledger's copy of the file."""
    spec = await choose_rows(RetryRequest(**asked))
    if (selection := spec.selection) is not None and not selection.rows:
        left_out = plural(len(selection.left_out), "row")
        superseded = f" Superseded by later runs: {left_out}." if selection.left_out else ""
        return state_of(Outcome.COMPLETED, selection.nothing_to_retry + superseded)
    return await import_rows(spec)
