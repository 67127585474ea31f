"""Rows on several machines: the groups of a run are task runs on Dask, each driven from the run's record.

What became of them is read in the ledger, never from futures: those of a lost scheduler end without a word.
"""

from __future__ import annotations

import asyncio
import json
import logging
from functools import partial
from pathlib import Path
from typing import Any

from prefect import get_run_logger, task
from prefect.cache_policies import NO_CACHE
from prefect.states import Cancelled, Completed

from patternmill.engine.groups import Group
from patternmill.engine.progress import HaltReason
from patternmill.errors import ConfigurationError
from patternmill.files import own_text
from patternmill.identifiers import RunId
from patternmill.ledger.records import RunGroup
from patternmill.runs.lease import HEARTBEAT_INTERVAL
from patternmill.runs.machines import Execution, Followed, record_groups
from patternmill.runs.run import Run
from patternmill.settings import load_settings, with_service
from patternmill.states import Outcome
from patternmill.text import plural
from tasks.markup import line
from tasks.prefect_states import failure_message, group_state

logger = logging.getLogger(__name__)

#: What a scheduler is started with: a frozen worker's groups are begun elsewhere, each worker gets what it has threads
#: for, and a worker that is killed is no fault of its groups.
SCHEDULER_SETTINGS = {"worker-ttl": "30s", "worker-saturation": 1.0, "allowed-failures": 100}
_PUT_BACK = "PutBack"
_LOOK_SECONDS = 1.0


@task(name="drive rows", task_run_name="{label}", retries=0, cache_policy=NO_CACHE, persist_result=False)
async def drive_rows(run_id: str, environment: str, number: int, label: str) -> Any:
    """On any machine: drive a group of a run to its end, with the key and the address that this machine has."""
    settings = with_service(load_settings(environment))
    execution = await Execution.begin(settings, RunId(run_id), number)
    if execution is None:
        return Completed(message="Driven to its end before, or closed with its run.")
    if execution.fence > 1:
        get_run_logger().warning("Begun again (%d): what was begun before goes on.", execution.fence)
    if not await execution.drive():
        return Cancelled(name=_PUT_BACK, message="To be begun again: nothing is lost.")
    for row, failed in execution.engine.failures(execution.group):
        get_run_logger().error("%s failed: %s", row.sku, failure_message(failed))
    return group_state(execution.engine, execution.group)


async def drive_on_machines(run: Run, cluster: str) -> None:
    """Drive all rows of a run on a Dask cluster: round by round, as long as each brings some group to its end."""
    await record_groups(run)
    rows, followed = {group.number: group for group in run.engine.groups}, Followed(run)
    groups = await followed.look()
    while _left(groups) and not run.halt.is_total:
        before = len(_left(groups))
        try:
            await _Round(run, followed, rows).drive(_left(groups), cluster)
        except (OSError, TimeoutError) as error:
            logger.warning("The Dask cluster cannot be reached: %s", type(error).__name__)
        except ConfigurationError as unfit:
            run.halt.begin(HaltReason(Outcome.FAILED, unfit.code, str(unfit)))
        groups = await followed.look()
        while len(_left(groups)) == before and followed.is_any_driven(groups):
            await asyncio.sleep(HEARTBEAT_INTERVAL.total_seconds())
            groups = await followed.look()
        if len(_left(groups)) == before:
            message = f"{plural(before, 'group')} of rows found no machine that drives them to their end."
            run.halt.begin(HaltReason(Outcome.FAILED, "machines_lost", message))


def _left(groups: list[RunGroup]) -> list[int]:
    """The numbers of the groups that have not ended: those with jobs in flight first."""
    left = [group for group in groups if group.ended_at is None]
    return [group.number for group in sorted(left, key=lambda group: group.beat_at is None)]


class _Round:
    """All groups that have not ended are submitted, and followed until no machine has one of them."""

    def __init__(self, run: Run, followed: Followed, rows: dict[int, Group]) -> None:
        self._run, self._followed, self._rows = run, followed, rows
        self._futures: dict[int, Any] = {}

    async def drive(self, left: list[int], cluster: str) -> None:
        # Dask's client blocks, for as long as a network may.
        runner = _runner(cluster, self._run.spec.settings.home)
        runner.__enter__()
        try:
            await asyncio.to_thread(_connect, runner)
            for number in left:
                await asyncio.to_thread(self._submit, runner, number)
            while self._futures and runner.client.status in ("running", "connecting"):
                await asyncio.sleep(_LOOK_SECONDS)
                await asyncio.to_thread(self._collect, runner)
                groups = await self._followed.look()
                if self._run.halt.is_total and not self._followed.is_any_driven(groups):
                    return
        finally:
            await asyncio.to_thread(runner.__exit__, None, None, None)

    def _submit(self, runner: Any, number: int) -> None:
        record, label = self._run.record, line(self._rows[number].describe())
        group = {"run_id": record.run_id, "environment": record.environment, "number": number, "label": label}
        self._futures[number] = runner.submit(drive_rows, group)
        self._run.progress.task_runs += 1

    def _collect(self, runner: Any) -> None:
        """Release what is done: a scheduler drives what it still holds for us again, once its worker is lost."""
        for number, future in tuple(self._futures.items()):
            dask = future.wrapped_future
            if dask.done():
                del self._futures[number]
                is_put_back = dask.status == "finished" and dask.result().name == _PUT_BACK
                dask.release()
                if is_put_back and not self._run.halt.is_total:
                    self._submit(runner, number)


def _runner(cluster: str, home: Path) -> Any:
    try:
        import dask
        from prefect_dask.task_runners import DaskTaskRunner
    except ImportError:
        raise _unfit("Dask is not installed here.", "Install the extra: pip install -e '.[dask]'.") from None
    if cluster.startswith("tls://"):
        return DaskTaskRunner(address=cluster)
    # A cluster of this process has its scheduler here.
    dask.config.set({f"distributed.scheduler.{name}": value for name, value in SCHEDULER_SETTINGS.items()})
    return DaskTaskRunner(**_cluster_of_file(home / cluster))


def _cluster_of_file(path: Path) -> dict[str, Any]:
    """Return the arguments of Prefect's DaskTaskRunner; they name code, so that the file must be the user's alone."""
    try:
        return dict(json.loads(own_text(path) or ""))
    except ValueError:
        raise _unfit(f"{path} has no cluster.", "Write one as docs/operations.md shows.") from None


def _connect(runner: Any) -> None:
    """Raises ConfigurationError for a cluster that anybody can make run code, or that would lose groups."""
    import dask

    client = runner.client
    address = client.scheduler.address
    if not address.startswith(("tls://", "inproc://")):
        why = f"{address} is not encrypted: whoever reaches it makes its workers run any code."
        raise _unfit(why, "Start it with TLS (docs/operations.md).")
    set_to = partial(client.run_on_scheduler, dask.config.get)
    found = {name: set_to(f"distributed.scheduler.{name}") for name in SCHEDULER_SETTINGS}
    if found != SCHEDULER_SETTINGS:
        remedy = f"Set distributed.scheduler to {SCHEDULER_SETTINGS} (docs/operations.md)."
        raise _unfit(f"Its scheduler has {found}.", remedy)


def _unfit(what: str, remedy: str) -> ConfigurationError:
    message = f"The cluster of PATTERNMILL_DASK cannot drive a run. {what}"
    return ConfigurationError(message, code="dask", remedy=f"{remedy} Nothing was bought.")
