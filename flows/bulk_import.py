"""The bulk import: a CSV of prompts and category selections becomes patterns and products."""

from pathlib import Path
from typing import Annotated, Any

from prefect import State, flow
from prefect.runtime import deployment
from pydantic import Field

from flows.shard_runs import make_all
from patternmill.errors import ApprovalNeeded, Overlap
from patternmill.runs.pipeline import import_spec
from patternmill.runs.refresh import pipeline_for
from patternmill.runs.request import RunSpec
from patternmill.settings import Confirmation
from patternmill.states import Outcome
from prefect_host.internals import batch_events
from prefect_host.record import close_earlier_attempts
from prefect_host.service_blocks import addressed
from prefect_host.stop_signals import Stopping, stop_on_signals
from tasks.approval_form import await_approval
from tasks.part_runs import require_workers
from tasks.prefect_states import ending_message, state_of
from tasks.publication import picture_gallery, publish
from tasks.run_events import run_finished, run_started
from tasks.run_page import show_ending
from tasks.run_steps import check_rows, plan_items, read_file


@flow(name="bulk-import", flow_run_name="import {file}", persist_result=False)
async def bulk_import(
    file: Path,
    catalog: str | None = None,
    environment: Annotated[str | None, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,62}$")] = None,
    budget: Annotated[int | None, Field(ge=0)] = None,
    max_patterns: Annotated[int | None, Field(ge=0)] = None,
    max_products: Annotated[int | None, Field(ge=0)] = None,
    # Refused by the form and the server; elsewhere the reading of it says more about what is wrong.
    max_failures: Annotated[
        str | None, Field(json_schema_extra={"pattern": r"^(\d{1,9}|(\d{1,2}(\.\d+)?|100)\s*%)$"})
    ] = None,
    confirm: Confirmation | None = None,
    attempts: Annotated[int | None, Field(ge=1, le=10)] = None,
    max_in_flight: Annotated[int | None, Field(ge=1, le=5000)] = None,
    spread: Annotated[int | None, Field(ge=1, le=64)] = None,
    edition: str | None = None,
    encoding: str | None = None,
    out: Path | None = None,
    only: Path | None = None,
) -> State[Any]:
    """Read the file, check its rows, make what is missing, write the results; the state is named by the outcome.

    Args:
        file: The CSV, as the worker sees its path: from the project's folder, or absolute.
        catalog: The catalog that the rows belong to; none: named after the file.
        environment: staging, production, or another name that your addresses have; scopes all identity.
        budget: The most to spend, in minor units (50000: €500.00); none: no limit. Needs prices in the settings.
        max_patterns: The most patterns to buy; none: no limit.
        max_products: The most products to buy; none: no limit.
        max_failures: Begins nothing new when more items than this have failed: a count (25), or a share (10%).
        confirm: Says that a large purchase in production, or another catalog's products once more, is meant.
        attempts: How often an item is tried when the service says that its job failed; none: as set (2).
        max_in_flight: The most jobs in flight at once; none: as set (200).
        spread: In how many parts, for as many workers; none: this run drives all rows itself.
        edition: A name under which everything is bought again, on purpose.
        encoding: Of the file, when it is not UTF-8 or UTF-16: cp1252, for instance.
        out: Where the results go; none: results/<catalog>/<run>.
        only: A selection of rows, as `patternmill retry` writes it; none: all rows.
    """
    spec = import_spec(
        file,
        catalog=catalog,
        environment=environment,
        out=out,
        encoding=encoding,
        max_in_flight=max_in_flight,
        attempts=attempts,
        edition=edition,
        max_failures=max_failures,
        max_patterns=max_patterns,
        max_products=max_products,
        budget=budget,
        confirm=confirm,
        spread=spread,
        only=only,
        by_deployment=deployment.id is not None,
    )
    with stop_on_signals() as stopping:
        return await import_rows(spec, stopping)


async def import_rows(spec: RunSpec, stopping: Stopping) -> State[Any]:
    batch_events()
    await close_earlier_attempts()
    await require_workers(spec)
    async with pipeline_for(await addressed(spec)) as work:
        await read_file(work)
        await check_rows(work)
        await await_approval(work)
        try:
            await plan_items(work)
        except Overlap as overlap:
            return state_of(Outcome.SKIPPED_OVERLAP, str(overlap))
        except ApprovalNeeded:
            # It became another plan in the last moment, which is put before a person as well, where one can be.
            await await_approval(work)
            raise
        stopping.attach(work.begun)
        run_started(work.begun)
        await make_all(work.begun)
        await publish(work)
        await show_ending(work.begun, work.ended, work.published)
        run_finished(work.begun, work.published)
        await picture_gallery(work, stopping)
        return state_of(work.ended.outcome, ending_message(work.ended))
