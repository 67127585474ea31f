"""Retry what failed: the unfinished rows of an earlier run, and nothing else."""

from pathlib import Path
from typing import Any

from prefect import State, flow

from flows.bulk_import import import_rows
from patternmill.parameters import (
    Confirmation,
    Count,
    EnvironmentName,
    MaxFailures,
    RetriableStatus,
)
from patternmill.runs.request import RetryRequest
from patternmill.states import Outcome
from patternmill.text import plural
from tasks.prefect_states import state_of
from tasks.run_steps import choose_rows


@flow(name="retry-failed", flow_run_name="retry {catalog} {run}", persist_result=False)
async def retry_failed(
    catalog: str | None = None,
    environment: EnvironmentName = "staging",
    run: str = "latest",
    status: tuple[RetriableStatus, ...] = (),
    code: tuple[str, ...] = (),
    sku: tuple[str, ...] = (),
    budget: Count | None = None,
    max_items: Count | None = None,
    max_failures: MaxFailures = None,
    confirm: Confirmation | None = None,
    out: Path | None = None,
) -> State[Any]:
    """Choose the rows, and import them again from the ledger's copy of the file.

    Args:
        catalog: The catalog whose run to retry; needed if there are several.
        environment: staging, production, or another configured environment.
        run: The run's ID or its beginning, from its summary; or `latest`.
        status: Only rows with one of these statuses. Default: all of these.
        code: Only rows with these error codes, as in failures.csv. Default: all.
        sku: Only rows with these skus. Default: all.
        budget: The most that one run spends, in minor units (50000 is €500.00); needs prices set. Default: no limit.
        max_items: The most items to buy: patterns, refinements and products. Default: no limit.
        max_failures: Begin nothing new once more items than this have failed: a count (25), or a share (10%).
        confirm: Confirm what is asked: the environment's name (a large purchase), duplicates, or new-ledger.
        out: Where the results go. Default: results/CATALOG/RUN.
    """
    spec, selection = await choose_rows(RetryRequest(**locals()))
    if not selection.rows:
        left_out = plural(len(selection.left_out), "row")
        superseded = f" Superseded by later runs: {left_out}." if selection.left_out else ""
        return state_of(Outcome.COMPLETED, selection.nothing_to_retry + superseded)
    return await import_rows(spec)
