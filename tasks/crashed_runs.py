"""Runs of deployments that crashed, as the ledger shows them: each is begun again once, within what is left to it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

from prefect import get_client
from prefect.client.orchestration import PrefectClient
from prefect.client.schemas.objects import FlowRun
from prefect.exceptions import ObjectNotFound
from prefect.states import Crashed

from patternmill.ledger.records import holder_of
from patternmill.money import money, read_money, sums
from patternmill.runs.lease import DeployedRun, crashed_runs
from patternmill.settings import Settings
from patternmill.states import UNFINISHED_ROWS
from tasks.markup import line

LOOK_EVERY = timedelta(minutes=5)
#: The beginning of the idempotency key of a flow run that resumes a crashed run, whose ID follows.
_RESUMES = "resumes "

logger = logging.getLogger(__name__)


async def watch_for_crashes(settings: Settings, notify: Callable[[str], None]) -> None:
    """Look every five minutes, until it is cancelled; `notify` is called with a sentence for each crashed run."""
    while True:
        try:
            for sentence in await resume_crashed_runs(settings):
                notify(sentence)
        except Exception as error:
            logger.warning("Crashed runs are looked for again later: %s", type(error).__name__)
        await asyncio.sleep(LOOK_EVERY.total_seconds())


async def resume_crashed_runs(settings: Settings) -> list[str]:
    """Begin the crashed runs of this server's deployments again; a sentence for each that was not seen before.

    Whoever looks at the same time, or again, begins nothing twice. What crashes again stays so.
    """
    crashed = await crashed_runs(settings)
    if not crashed:
        return []
    async with get_client() as client:
        return [sentence for run in crashed if (sentence := await _resume(client, run, settings.currency))]


async def _resume(client: PrefectClient, crashed: DeployedRun, currency: str | None) -> str | None:
    """Begin it again, and say on its page what became of it; None where there is nothing new to say."""
    run_id = crashed.lease.run_id
    try:
        flow_run = await client.read_flow_run(UUID(holder_of(crashed.lease)["flow_run_id"]))
    except ObjectNotFound:
        return None
    state = flow_run.state
    # In any other state a person, or Prefect, has ended it, or begun it again.
    if flow_run.deployment_id is None or state is None or not (state.is_running() or state.is_crashed()):
        return None
    if (flow_run.idempotency_key or "").startswith(_RESUMES):
        what = "It had resumed a crashed run: begin it again once you know why."
    else:
        again = await client.create_flow_run_from_deployment(
            flow_run.deployment_id,
            parameters=parameters_left(flow_run, crashed, currency),
            tags=flow_run.tags,
            idempotency_key=f"{_RESUMES}{run_id}",
        )
        what = f"Begun again: flow run {again.id}."
    spent = sums(crashed.spent.amounts)
    message = line(
        f"The process that drove run {run_id}{f' ({spent} spent)' if spent else ''} is gone. {what}"
    )
    if state.message == message:
        return None
    await client.set_flow_run_state(flow_run.id, Crashed(message=message), force=True)
    return f"{flow_run.name}: {message}"


def parameters_left(flow_run: FlowRun, crashed: DeployedRun, currency: str | None) -> dict[str, Any]:
    """Return the parameters of the crashed run, with what is left of its limits.

    A retry goes on with what it had begun or not come to: what has failed in it was retried already.
    """
    spent, unit = crashed.spent, currency or ""
    left = dict(flow_run.parameters)
    if left.get("max_items") is not None:
        left["max_items"] = max(0, left["max_items"] - spent.items.total())
    if left.get("budget") not in (None, ""):
        amount = max(0, read_money(str(left["budget"]), currency) - spent.amounts[unit])
        if set(+spent.amounts) - {unit}:
            amount = 0  # nothing is known to be left of a budget in another currency
        left["budget"] = money(amount, currency) if currency else str(amount)
    if crashed.is_retry:
        left |= {"run": crashed.lease.run_id, "status": sorted(UNFINISHED_ROWS), "code": []}
    return left
