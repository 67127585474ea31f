"""The bulk import: a CSV of prompts and category selections becomes patterns and products."""

from pathlib import Path
from typing import Any

from prefect import State, flow

from flows.shard_runs import make_rows
from patternmill.errors import ApprovalNeeded, Overlap
from patternmill.parameters import Attempts, Confirmation, Count, EnvironmentName, MaxFailures, Parts, Window
from patternmill.runs.context import announce
from patternmill.runs.pipeline import Pipeline
from patternmill.runs.request import ImportRequest
from patternmill.runs.spec import RunSpec
from patternmill.states import Outcome
from prefect_host.internals import batch_events
from prefect_host.record import close_earlier_attempts
from prefect_host.service_blocks import addressed
from prefect_host.stop_signals import stop_on_signals
from tasks.approval_form import await_approval
from tasks.part_runs import require_workers
from tasks.prefect_states import ending_message, state_of
from tasks.publication import picture_gallery, publish
from tasks.run_events import run_finished, run_started
from tasks.run_page import show_ending
from tasks.run_steps import check_rows, plan_items, read_file, requested


@flow(name="bulk-import", flow_run_name="import {file}", persist_result=False)
async def bulk_import(
    file: Path,
    catalog: str | None = None,
    environment: EnvironmentName | None = None,
    budget: Count | None = None,
    max_patterns: Count | None = None,
    max_products: Count | None = None,
    max_failures: MaxFailures = None,
    confirm: Confirmation | None = None,
    attempts: Attempts | None = None,
    max_in_flight: Window | None = None,
    spread: Parts | None = None,
    edition: str | None = None,
    encoding: str | None = None,
    out: Path | None = None,
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
    """
    return await import_rows(requested(ImportRequest(**locals())))


async def import_rows(spec: RunSpec) -> State[Any]:
    batch_events()
    await close_earlier_attempts()
    await require_workers(spec)
    with stop_on_signals() as stopping:
        async with Pipeline(await addressed(spec), announce) as work:
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
            await make_rows(work.begun)
            await publish(work)
            await show_ending(work.begun, work.ended, work.published)
            run_finished(work.begun, work.published)
            await picture_gallery(work, stopping)
            return state_of(work.ended.outcome, ending_message(work.ended))
