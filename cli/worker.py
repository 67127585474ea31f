"""Prefect's process worker, which lets its runs end in order: Prefect's own kills them when it is stopped."""

import asyncio
import contextlib
import os
import signal
import time
from abc import ABC
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from prefect import get_client
from prefect.states import AwaitingRetry
from prefect.workers.process import ProcessJobConfiguration, ProcessWorker, ProcessWorkerResult

from patternmill.errors import Refusal
from tasks.deployments import POOL

if TYPE_CHECKING:
    from anyio.abc import TaskStatus
    from prefect.client.schemas.objects import FlowRun

#: A stopped run follows its jobs for 20 seconds, and then writes its results.
_DRAINING = 45.0


class DrainingWorker(
    ProcessWorker, ABC
):  # an ABC: Prefect does not register it as its own worker of this type
    """Begins no more runs once it drains."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._is_draining = False
        #: The process of each run, once it has one. It leads a session of its own, which no Ctrl-C reaches.
        self._processes: dict[Any, int | None] = {}

    async def get_and_submit_flow_runs(self) -> "list[FlowRun]":
        """Begin the runs that are due."""
        return [] if self._is_draining else await super().get_and_submit_flow_runs()

    async def run(
        self,
        flow_run: "FlowRun",
        configuration: ProcessJobConfiguration,
        task_status: "TaskStatus[int] | None" = None,
    ) -> ProcessWorkerResult:
        """Run a flow run in a process, and remember the process while it lives."""
        processes = self._processes

        class Started:
            def started(self, value: Any = None) -> None:
                processes[flow_run.id] = value
                if task_status is not None:
                    task_status.started(value)

        processes[flow_run.id] = None
        try:
            return await super().run(flow_run, configuration, Started())
        finally:
            del processes[flow_run.id]

    async def drain(self) -> None:
        """Stop each run with SIGTERM, and wait for its end; by Prefect's own setting they are due again then."""
        self._is_draining = True
        told: dict[int, Any] = {}
        until = time.monotonic() + _DRAINING
        while self._processes and time.monotonic() < until:
            for run, process in list(self._processes.items()):
                if process and process not in told:
                    told[process] = run
                    _send(process, signal.SIGTERM)
            await asyncio.sleep(0.1)
        self.kill()
        if os.environ.get("PREFECT_FLOW_RUN_EXECUTE_SIGTERM_BEHAVIOR") == "reschedule":
            await asyncio.gather(*map(_reschedule, told.values()))

    def kill(self) -> None:
        """End all runs at once."""
        for process in filter(None, self._processes.values()):
            _send(process, signal.SIGKILL)


async def _reschedule(run: Any) -> None:
    """Have another worker, or the next one, go on with a run that was stopped, unless a person has cancelled it."""
    async with get_client() as client:
        states = sorted(await client.read_flow_run_states(run), key=attrgetter("timestamp"))[-2:]
        is_stopped = states[-1].name in ("Cancelled", "Crashed", "Running", "Pending")
        if is_stopped and not any(state.is_cancelling() for state in states):
            await client.set_flow_run_state(run, AwaitingRetry(), force=True)


def _send(process: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, number)


async def work(limit: int | None) -> None:
    """Carry out the runs of our pool until SIGINT or SIGTERM, and let them drain; a second signal ends them at once.

    Raises Refusal where the worker ends by itself.
    """
    worker = DrainingWorker(work_pool_name=POOL, limit=limit)
    stop = asyncio.Event()

    def interrupt() -> None:
        if stop.is_set():
            worker.kill()
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, interrupt)
    tasks = [asyncio.create_task(worker.start(printer=lambda text: None)), asyncio.create_task(stop.wait())]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    is_stopped = stop.is_set()
    await worker.drain()
    for task in tasks:
        task.cancel()
    end, _ = await asyncio.gather(*tasks, return_exceptions=True)
    if not is_stopped:
        raise Refusal("worker", f"The worker ended by itself: {end!r}.", "Start it again.")
