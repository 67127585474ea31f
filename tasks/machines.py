"""Groups of rows on several machines: task runs on Dask, submitted as the run's window has room for them.

What became of a group is read in the ledger, never from its future: those of a lost scheduler end without a word.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any

from patternmill.engine.progress import HaltReason
from patternmill.errors import ConfigurationError
from patternmill.files import own_text
from patternmill.ledger.records import RunGroup
from patternmill.runs.machines import FollowedGroups
from patternmill.runs.run import Run
from patternmill.states import Outcome
from patternmill.text import plural
from tasks.markup import line

#: What a scheduler is started with: a frozen worker's groups are begun elsewhere, each worker gets what it has threads
#: for, and a worker that is killed is no fault of its groups.
SCHEDULER_SETTINGS = {"worker-ttl": "30s", "worker-saturation": 1.0, "allowed-failures": 100}
_LOOK_SECONDS = 1.0
#: Seconds after which a group that a machine could not drive is submitted again.
_AGAIN_AFTER = 30.0
#: Seconds without any group being driven after which the run ends: machines may take minutes to start.
_PATIENCE = 300.0


async def drive_on_machines(run: Run, cluster: str, make_group: Any) -> None:
    """Drive all rows of a run on a Dask cluster, each group as a task run of `make_group`."""
    followed = await FollowedGroups.begin(run)
    try:
        async with _task_runner(cluster, run.spec.settings.home) as runner:
            await _Submitted(run, runner, make_group).follow(followed)
    except ConfigurationError as unfit:
        run.halt.begin(HaltReason(Outcome.FAILED, unfit.code, str(unfit)))
    except (OSError, TimeoutError) as error:
        run.halt.begin(_lost(f"The Dask cluster cannot be reached: {type(error).__name__}."))


class _Submitted:
    """The groups of a run that a Dask cluster has."""

    def __init__(self, run: Run, runner: Any, make_group: Any) -> None:
        self._run, self._runner, self._make_group = run, runner, make_group
        self._futures: dict[int, Any] = {}
        self._submitted_at: dict[int, float] = {}
        self._driven_at = monotonic()

    async def follow(self, followed: FollowedGroups) -> None:
        """Submit each group once it has a share of the window, and follow all to their ends."""
        while left := [group for group in await followed.look() if group.ended_at is None]:
            if followed.is_any_driven(left):
                self._driven_at = monotonic()
            elif self._run.halt.is_total:
                return
            elif self._is_lost():
                groups = plural(len(left), "group")
                self._run.halt.begin(_lost(f"No machine drives the {groups} of rows left."))
            # Dask's client blocks, for as long as a network may.
            await asyncio.to_thread(self._submit, left)
            await asyncio.sleep(_LOOK_SECONDS)

    def _is_lost(self) -> bool:
        return self._runner.client.status == "closed" or monotonic() - self._driven_at > _PATIENCE

    def _submit(self, left: Sequence[RunGroup]) -> None:
        self._release()
        if self._run.halt.is_total or self._runner.client.status != "running":
            return
        record = self._run.record
        for number in (group.number for group in left if group.share and group.number not in self._futures):
            if monotonic() - self._submitted_at.get(number, -_AGAIN_AFTER) >= _AGAIN_AFTER:
                label = line(self._run.engine.groups[number - 1].describe())
                place = {"run_id": record.run_id, "environment": record.environment, "number": number}
                self._futures[number] = self._runner.submit(self._make_group, {**place, "label": label})
                self._submitted_at[number] = monotonic()
                self._run.progress.task_runs += 1

    def _release(self) -> None:
        """Release what is done: a scheduler drives what it still holds for us again, once its worker is lost."""
        for number, future in tuple(self._futures.items()):
            if future.wrapped_future.done():
                self._futures.pop(number).wrapped_future.release()


def _lost(what: str) -> HaltReason:
    remedy = "See that workers are up, and run the same command again."
    return HaltReason(Outcome.FAILED, "machines_lost", f"{what} {remedy}")


@asynccontextmanager
async def _task_runner(cluster: str, home: Path) -> AsyncIterator[Any]:
    """Run Prefect's task runner on a cluster that is fit. Raises ConfigurationError, and OSError."""
    runner = _runner(cluster, home)
    runner.__enter__()
    try:
        await asyncio.to_thread(_connect, runner)
        yield runner
    finally:
        await asyncio.to_thread(runner.__exit__, None, None, None)


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
    try:
        # What is passed on names code, so that the file must be the user's alone.
        return DaskTaskRunner(**json.loads(own_text(home / cluster) or ""))
    except ValueError:
        raise _unfit(f"{home / cluster} has no cluster.", "Write one as docs/operations.md shows.") from None


def _connect(runner: Any) -> None:
    """Connect to a cluster. Raises ConfigurationError for one that runs anybody's code, or that would lose groups."""
    import dask

    client = runner.client
    address = client.scheduler.address
    if not address.startswith(("tls://", "inproc://")):
        why = f"{address} is not encrypted: whoever reaches it makes its workers run any code."
        raise _unfit(why, "Start it with TLS (docs/operations.md).")
    set_to = partial(client.run_on_scheduler, dask.config.get)
    settings = {name: set_to(f"distributed.scheduler.{name}") for name in SCHEDULER_SETTINGS}
    if settings != SCHEDULER_SETTINGS:
        remedy = f"Set distributed.scheduler to {SCHEDULER_SETTINGS} (docs/operations.md)."
        raise _unfit(f"Its scheduler has {settings}.", remedy)


def _unfit(what: str, remedy: str) -> ConfigurationError:
    message = f"The cluster of PATTERNMILL_DASK cannot drive a run. {what}"
    return ConfigurationError(message, code="dask", remedy=f"{remedy} Nothing was bought.")
