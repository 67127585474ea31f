"""Completes what the Prefect UI lacks of ended runs, from the ledger: their server was unavailable, or lost it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

from prefect import State
from prefect.client.orchestration import PrefectClient, get_client
from prefect.client.schemas.objects import StateType
from prefect.exceptions import ObjectNotFound
from prefect.runtime import flow_run

from patternmill.engine import options
from patternmill.identifiers import RunId
from patternmill.ledger.catalog_rows import RETRY_OF, counts_of
from patternmill.ledger.ledger import open_ledger
from patternmill.ledger.records import Attempt, RunRecord
from patternmill.planning.items import pattern_name, product_name, reference_name, refinement_name
from patternmill.results.row_files import ItemTrace, RowResult, input_file, row_results
from patternmill.results.summary import counts
from patternmill.runs.run import Run
from patternmill.settings import Settings, in_environment
from patternmill.states import AttemptState, Stage
from patternmill.text import plural
from prefect_host.connection import MOST_INCOMPLETE, incomplete_records, mark_complete, mark_incomplete
from prefect_host.event_batches import EventsBatch
from prefect_host.record import KnownEnds, close_inside, complete_record, correct_flow_runs
from prefect_host.task_runs import TaskRunRecord, task_run_id
from tasks.item_records import ITEM_TASK, known_ends, utc_time
from tasks.markup import line, logged
from tasks.prefect_states import counts_message, state_of

logger = logging.getLogger(__name__)

#: How long nothing may change before what is not recorded counts as lost.
_PATIENCE = timedelta(seconds=5)
#: How long a run's last events may take to reach a server that accepts some.
_SENDING_SECONDS = 10.0


async def complete_items(run: Run, settings: Settings) -> None:
    """Before a flow ends: wait until its shards and items are on record, and record again what is missing."""
    ends = known_ends(run)
    if not ends.task_runs:
        return
    await _await_sender()
    try:
        async with get_client() as client:
            flow_run_id = UUID(str(flow_run.id))
            missing = await complete_record(client, flow_run_id, ends, patience=_PATIENCE)
            await correct_flow_runs(client, flow_run_id, ends)
    except Exception as error:
        logger.info("The record of the items could not be read: %s", type(error).__name__)
        missing = len(ends.task_runs)
    if missing:
        logged(f"{plural(missing, 'task run')} are not on record yet; the next command records them.")
        mark_incomplete(settings.home, run.record.run_id, settings.environment)


async def _await_sender() -> None:
    """Until nothing waits to be sent, or the server accepts nothing."""
    accepted, since = -1, 0.0
    loop = asyncio.get_running_loop()
    while EventsBatch.waiting() and (
        EventsBatch.accepted != accepted or loop.time() - since < _SENDING_SECONDS
    ):
        if EventsBatch.accepted != accepted:
            accepted, since = EventsBatch.accepted, loop.time()
        await asyncio.sleep(0.2)


async def complete_earlier_records(settings: Settings) -> list[RunId]:
    """Complete the records of runs that were marked, as far as this server has them; returns which are complete now."""
    incomplete, done = await asyncio.to_thread(incomplete_records, settings.home), list[RunId]()
    if not incomplete:
        return done
    async with get_client() as client:
        for name, environment in list(incomplete.items())[:MOST_INCOMPLETE]:
            run_id = RunId(name)
            try:
                if await _complete(client, in_environment(settings, environment, unknown_too=True), run_id):
                    mark_complete(settings.home, name)
                    done.append(run_id)
            except ObjectNotFound:
                # It is on another server.
                continue
            except Exception as error:
                logger.info("The record of run %s stays incomplete: %s", name, type(error).__name__)
                break
    return done


async def _complete(client: PrefectClient, settings: Settings, run_id: RunId) -> bool:
    found = await asyncio.to_thread(_from_ledger, settings, run_id)
    if found is None:
        return True
    record, ends = found
    if record.outcome is None:
        # It runs now; or it was lost, and the next run of its catalog says so.
        return False
    flow_run_id = await _flow_run_of(client, settings, record)
    missing = await complete_record(client, flow_run_id, ends, patience=_PATIENCE)
    await close_inside(client, flow_run_id, ends)
    await correct_flow_runs(client, flow_run_id, ends)
    return not missing


async def _flow_run_of(client: PrefectClient, settings: Settings, record: RunRecord) -> UUID:
    """The flow run of a run; made now for one that had none. Raises ObjectNotFound when it is on another server."""
    if record.prefect_flow_run_id is not None:
        flow_run_id = UUID(record.prefect_flow_run_id)
        await client.read_flow_run(flow_run_id)
        return flow_run_id
    flow, name = _shown_as(record)
    made = await client.request(
        "POST",
        "/flow_runs/",
        json={
            "flow_id": str(await client.create_flow_from_name(flow)),
            "name": line(name),
            "state": {"type": StateType.RUNNING.value},
            # A second try, or another command's, finds the same one.
            "idempotency_key": record.run_id,
        },
    )
    flow_run_id = UUID(made.json()["id"])
    await asyncio.to_thread(_put_flow_run_on_record, settings, record.run_id, str(flow_run_id))
    return flow_run_id


def _put_flow_run_on_record(settings: Settings, run_id: RunId, flow_run_id: str) -> None:
    with open_ledger(settings, must_exist=True) as ledger, ledger.transaction():
        record = ledger.run(run_id)
        assert record is not None, "it was found before"
        ledger.update_run(replace(record, prefect_flow_run_id=flow_run_id))


def _shown_as(record: RunRecord) -> tuple[str, str]:
    """The names of the flow and of the flow run, as in flows/."""
    if RETRY_OF in record.options:
        return "retry-failed", f"retry {record.catalog} {record.options[RETRY_OF]}"
    if counts_of(record) is not None:
        return "catalog-refresh", f"refresh {record.catalog}"
    return "bulk-import", f"import {record.source}"


def _message(record: RunRecord, rows: Sequence[RowResult]) -> str:
    ran = None
    if record.prefect_flow_run_id is None:
        ran = f"It ran at {record.started_at:%Y-%m-%d %H:%M:%S} UTC, before this record was made"
    return ". ".join(text for text in (counts_message(counts(rows)), record.reason, ran) if text)


def _from_ledger(settings: Settings, run_id: RunId) -> tuple[RunRecord, KnownEnds] | None:
    """A run, and how it and its items ended; None: there is nothing to complete."""
    with open_ledger(settings, must_exist=True) as ledger:
        record = ledger.run(run_id)
        if record is None:
            return None
        if record.outcome is None:
            return (record, KnownEnds()) if record.prefect_flow_run_id is None else None
        rows = list(row_results(ledger, record, input_file(ledger, record)))
    every = len(rows) <= options.ITEM_TASK_RUNS_UP_TO
    task_runs = {
        one.id: one
        for row in rows
        for trace, name in _named_items(row)
        for one in _task_runs(record, trace, line(name))
        if every or (one.end is not None and one.end.is_failed())
    }
    return record, KnownEnds(state_of(record.outcome, _message(record, rows)), {}, task_runs)


def _named_items(row: RowResult) -> Iterator[tuple[ItemTrace, str]]:
    """The items of a row with the names under which they are shown."""
    names = {
        Stage.REFERENCE: reference_name(row.reference or ""),
        Stage.PATTERN: pattern_name(row.prompt),
        Stage.PRODUCT: product_name(row.sku),
    }
    refinements = iter(row.refinements)
    for item in row.items:
        yield item, names.get(item.stage) or refinement_name(next(refinements))


def _task_runs(record: RunRecord, trace: ItemTrace, name: str) -> Iterator[TaskRunRecord]:
    """An item's task run, if it ended in this run."""
    attempt = trace.last
    if attempt is None or attempt.ended_at is None or record.ended_at is None:
        return
    began, ended = utc_time(attempt.intended_at), utc_time(attempt.ended_at)
    if record.started_at <= ended <= record.ended_at:
        end = _end(attempt).model_copy(update={"timestamp": ended})
        yield TaskRunRecord(task_run_id(record.run_id, trace.key), name, ITEM_TASK, began, ended, end)


def _end(attempt: Attempt) -> State[Any]:
    if attempt.state is AttemptState.SUCCEEDED:
        return State(type=StateType.COMPLETED, name="Completed")
    message = f"{attempt.error_code}: {attempt.error}" if attempt.error_code else None
    return State(type=StateType.FAILED, name="Failed", message=line(message) if message else None)
