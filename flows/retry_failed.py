"""Retry what failed: the rows of an earlier run that did not come to their end, and nothing else."""

from pathlib import Path
from typing import Annotated, Any, Literal

from prefect import State, flow
from prefect.runtime import deployment
from pydantic import Field

from flows.bulk_import import import_rows
from patternmill.settings import Confirmation
from patternmill.states import Outcome
from patternmill.text import plural
from prefect_host.stop_signals import stop_on_signals
from tasks.prefect_states import state_of
from tasks.retry_steps import Wish, choose_rows, laid_out


@flow(name="retry-failed", flow_run_name="retry {catalog} {run}", persist_result=False)
async def retry_failed(
    catalog: str | None = None,
    environment: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,62}$")] = "staging",
    run: str = "latest",
    status: tuple[Literal["failed", "cancelled", "not_started", "in_doubt", "waiting"], ...] = (),
    category: tuple[str, ...] = (),
    code: tuple[str, ...] = (),
    sku: tuple[str, ...] = (),
    budget: Annotated[int | None, Field(ge=0)] = None,
    max_patterns: Annotated[int | None, Field(ge=0)] = None,
    max_products: Annotated[int | None, Field(ge=0)] = None,
    confirm: Confirmation | None = None,
    attempts: Annotated[int | None, Field(ge=1, le=10)] = None,
    max_in_flight: Annotated[int | None, Field(ge=1, le=5000)] = None,
    spread: Annotated[int | None, Field(ge=1, le=64)] = None,
    out: Path | None = None,
) -> State[Any]:
    """Choose the rows, and import them again from the bytes that the ledger kept of the file.

    Args:
        catalog: The catalog whose run is meant; needed where there are several.
        environment: staging, production, or another name that your addresses have.
        run: The run's ID or its beginning, as its summary has it; or `latest`.
        status: Only rows that stand so; none: all of these.
        category: Only rows of these categories, as the file writes them; none: all.
        code: Only rows with these error codes, as in failures.csv; none: all.
        sku: Only these rows; none: all.
        budget: The most to spend, in minor units (50000: €500.00); none: no limit. Needs prices in the settings.
        max_patterns: The most patterns to buy; none: no limit.
        max_products: The most products to buy; none: no limit.
        confirm: Says that a large purchase in production, or another catalog's products once more, is meant.
        attempts: How often an item is tried when the service says that its job failed; none: as set (2).
        max_in_flight: The most jobs in flight at once; none: as set (200).
        spread: In how many parts, for as many workers; none: this run drives all rows itself.
        out: Where the results go; none: results/<catalog>/<run>.
    """
    chosen = await choose_rows(Wish(run, catalog, environment, status, category, code, sku))
    if not chosen.rows:
        left_out = (
            f"; superseded by later runs: {plural(len(chosen.left_out), 'row')}" if chosen.left_out else ""
        )
        return state_of(Outcome.COMPLETED, f"Nothing to retry in run {chosen.record.run_id}{left_out}")
    limits = {
        "attempts": attempts,
        "max_in_flight": max_in_flight,
        "max_patterns": max_patterns,
        "max_products": max_products,
        "budget": budget,
        "confirm": confirm,
        "spread": spread,
        "out": out,
        "by_deployment": deployment.id is not None,
    }
    with laid_out(chosen, limits) as spec, stop_on_signals() as stopping:
        return await import_rows(spec, stopping)
