"""The worker of `up`: runs what is scheduled or started from the Prefect UI.

Prefect's own `prefect worker start` kills its flow runs when it is stopped, and leaves them shown as running. This is
the same worker, which first lets each run drain, write its results, and report its state.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from socket import gethostname

import psutil

from cli.terminal import echo, echo_lines
from patternmill.errors import PatternmillError
from patternmill.files import make_home
from patternmill.logs import masked
from patternmill.settings import Settings, load_settings
from patternmill.text import plural
from patternmill.upkeep.facts import own_facts
from prefect_host import client_settings
from prefect_host.client_settings import POOL, WORKER_FOLDER
from prefect_host.server_facts import facts_at

#: Seconds in which stopped runs have to end: a run drains for 18 seconds, and then writes its results.
STOP_SECONDS = 40.0
_POLL_SECONDS = 0.3


def serve_worker(settings: Settings, limit: int | None, *, with_parent: bool = False) -> None:
    """Run what the server of PREFECT_API_URL has for our pool, until a signal; `limit`: the most runs at once.

    `with_parent`: it also stops when standard input ends. Raises PatternmillError when it ends by itself.
    """
    with suppress(OSError):
        make_home(settings.home)
    os.environ.setdefault(WORKER_FOLDER, str(Path.cwd()))
    url = client_settings.use_address(os.environ[client_settings.API_URL])
    echo(f"A worker for {plural(limit, 'run') if limit else 'any number of runs'} at once.")
    for fact in own_facts(settings, Path(os.environ[WORKER_FOLDER])):
        echo_lines(fact.lines)
    # Not under `up`, which is still registering the deployments.
    for fact in facts_at(url) if not with_parent else ():
        if fact.about != "workers":  # this one is not online yet
            echo_lines(fact.lines)
    # Keeps a run from importing modules from the folder that it begins in.
    os.environ["PYTHONSAFEPATH"] = "1"
    asyncio.run(_serve(settings, limit, with_parent=with_parent))


async def _serve(settings: Settings, limit: int | None, *, with_parent: bool) -> None:
    # Imported only once the server is known: Prefect reads its address as it is imported.
    from prefect_host.process_worker import DrainingWorker
    from tasks.crashed_runs import watch_for_crashes

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, _request_stop, stop)
    if with_parent:
        loop.add_reader(sys.stdin.fileno(), _read_lifeline, loop, stop)
    worker = DrainingWorker(stop, name=f"{gethostname()} {os.getpid()}", work_pool_name=POOL, limit=limit)
    # Where a port is set, /health there tells whether the worker still asks for runs.
    has_health = "PREFECT_WORKER_WEBSERVER_PORT" in os.environ
    working = asyncio.create_task(worker.start(with_healthcheck=has_health, printer=echo))
    stopped = asyncio.create_task(stop.wait())
    watching = asyncio.create_task(watch_for_crashes(settings, echo))
    await asyncio.wait({working, stopped}, return_when=asyncio.FIRST_COMPLETED)
    by_itself = working.done() and not stop.is_set()
    # The runs are ended even if Prefect's worker has ended by itself: nobody else would stop them.
    await _end_runs()
    for task in (working, stopped, watching):
        task.cancel()
    end, *_ = await asyncio.gather(working, stopped, watching, return_exceptions=True)
    if by_itself:
        raise ended_by_itself(end)


def ended_by_itself(end: BaseException | None) -> PatternmillError:
    """Return the error of a worker that nobody stopped: what it raised, if anything; of a group the first error."""
    while isinstance(end, BaseExceptionGroup):
        end = end.exceptions[0]
    if isinstance(end, PatternmillError):
        return end
    why = masked(f": {type(end).__name__}: {end}").partition("\n")[0].rstrip(".") if end is not None else ""
    return PatternmillError(
        f"The worker ended by itself{why}.",
        code="worker",
        remedy="See that the Prefect server at PREFECT_API_URL answers, and start the worker again.",
    )


def _request_stop(stop: asyncio.Event) -> None:
    """Stop at the first signal; end this process and its runs at once at the second."""
    if stop.is_set():
        for run in children():
            _send(run, signal.SIGKILL)
        os._exit(1)
    stop.set()


def _read_lifeline(loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
    """Stop when standard input ends, as it does with the process that started this one; ignore what it writes."""
    if not os.read(sys.stdin.fileno(), 4096):
        loop.remove_reader(sys.stdin.fileno())
        stop.set()


async def _end_runs() -> None:
    """Send each run SIGTERM, and wait for their ends."""
    signalled: set[psutil.Process] = set()
    deadline = time.monotonic() + STOP_SECONDS
    while (running := set(children())) and time.monotonic() < deadline:
        for run in running - signalled:
            _send(run, signal.SIGTERM)
        signalled |= running
        await asyncio.sleep(_POLL_SECONDS)


def _send(process: psutil.Process, number: signal.Signals) -> None:
    with suppress(psutil.NoSuchProcess):
        process.send_signal(number)


def children(pid: int | None = None) -> list[psutil.Process]:
    """Return the running child processes of a process, by default this one."""
    running = []
    for child in psutil.Process(pid).children():
        with suppress(psutil.NoSuchProcess):
            if child.status() != psutil.STATUS_ZOMBIE:
                running.append(child)
    return running


if __name__ == "__main__":
    from cli.main import guarded

    # Started by `up`, which keeps its standard input open.
    most = int(sys.argv[1]) if len(sys.argv) > 1 else None
    sys.exit(guarded(lambda: serve_worker(load_settings(), most, with_parent=True)))
