"""Retry what failed: the rows of an earlier run that did not come to their end, and nothing else."""

from pathlib import Path
from typing import Any

from prefect import State, flow

from flows.bulk_import import import_rows
from patternmill.parameters import (
    Attempts,
    Confirmation,
    Count,
    EnvironmentName,
    MaxFailures,
    Parts,
    RetriableStatus,
    Window,
)
from patternmill.runs.request import RetryRequest
from patternmill.states import Outcome
from patternmill.text import plural
from tasks.prefect_states import state_of
from tasks.retry_steps import choose_rows


@flow(name="retry-failed", flow_run_name="retry {catalog} {run}", persist_result=False)
async def retry_failed(
    catalog: str | None = None,
    environment: EnvironmentName = "staging",
    run: str = "latest",
    status: tuple[RetriableStatus, ...] = (),
    category: tuple[str, ...] = (),
    code: tuple[str, ...] = (),
    sku: tuple[str, ...] = (),
    budget: Count | None = None,
    max_patterns: Count | None = None,
    max_products: Count | None = None,
    max_failures: MaxFailures = None,
    confirm: Confirmation | None = None,
    attempts: Attempts | None = None,
    max_in_flight: Window | None = None,
    spread: Parts | None = None,
    out: Path | None = None,
) -> State[Any]:
    """Choose the rows, and import them again from the bytes that the ledger kept of the file.

    Args:
        catalog: The catalog whose run is meant; needed where there are several.
        environment: staging, production, or another name that your addresses have.
        run: The run's ID or its beginning, as its summary has it; or `latest`.
        status: Only rows that have one of these statuses; none: all of these.
        category: Only rows of these categories, as the file writes them; none: all.
        code: Only rows with these error codes, as in failures.csv; none: all.
        sku: Only these rows; none: all.
        budget: The most to spend, in minor units (50000: €500.00); none: no limit. Needs prices in the settings.
        max_patterns: The most patterns to buy; none: no limit.
        max_products: The most products to buy; none: no limit.
        max_failures: Begins nothing new when more items than this have failed: a count (25), or a share (10%).
        confirm: Says that a large purchase in production, or another catalog's products once more, is meant.
        attempts: How often an item is tried when the service says that its job failed; none: as set (2).
        max_in_flight: The most jobs in flight at once; none: as set (200).
        spread: In how many parts, for as many workers; none: this run drives all rows itself.
        out: Where the results go; none: results/<catalog>/<run>.
    """
    spec, selection = await choose_rows(RetryRequest(**locals()))
    if not selection.rows:
        left_out = (
            f"; superseded by later runs: {plural(len(selection.left_out), 'row')}"
            if selection.left_out
            else ""
        )
        return state_of(Outcome.COMPLETED, f"Nothing to retry in run {selection.record.run_id}{left_out}")
    return await import_rows(spec)
