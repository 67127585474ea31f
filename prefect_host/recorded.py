"""The end of a command: what Prefect still has to send is sent, and its server has recorded it. Both are bounded.

Call these outside of an event loop, once the flow has returned.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import Any
from uuid import UUID

from prefect.client.orchestration import PrefectClient, get_client
from prefect.events.worker import EventsWorker
from prefect.logging.handlers import APILogWorker

logger = logging.getLogger(__name__)

_OPEN_STATES = ("SCHEDULED", "PENDING", "RUNNING")
_POLL_SECONDS = 0.3


def drain_senders(seconds: float, goes_on: Callable[[], bool] = lambda: False) -> bool:
    """Have Prefect send the events and log lines that it still has, and longer while `goes_on`; whether it could.

    A process that ends without this waits minutes for a server that is gone.
    """
    left: set[Future[bool]] = set()
    for sender in (EventsWorker, APILogWorker):
        drained = sender.drain_all(timeout=0)
        assert isinstance(drained, tuple), "called outside of an event loop"
        left |= drained[1]
    left = wait(left, seconds).not_done
    while left and goes_on():
        left = wait(left, 1.0).not_done
    return not left


def wait_for_record(flow_run_id: str, seconds: float, *, at_least: int = 0) -> bool:
    """Wait until the server has so many task runs of the flow run, and none that is open; whether it came to that."""

    async def recorded() -> None:
        async with asyncio.timeout(seconds), get_client() as client:
            while True:
                count = await _count(client, flow_run_id)
                if count >= at_least and not await _count(client, flow_run_id, is_open=True):
                    return
                await asyncio.sleep(_POLL_SECONDS)

    try:
        asyncio.run(recorded())
    except Exception as error:
        logger.info("The record of flow run %s is not complete: %s", flow_run_id, type(error).__name__)
        return False
    return True


async def _count(client: PrefectClient, flow_run_id: str, *, is_open: bool = False) -> int:
    wanted: dict[str, Any] = {"flow_runs": {"id": {"any_": [str(UUID(flow_run_id))]}}}
    if is_open:
        wanted["task_runs"] = {"state": {"type": {"any_": list(_OPEN_STATES)}}}
    return int((await client.request("POST", "/task_runs/count", json=wanted)).json())
