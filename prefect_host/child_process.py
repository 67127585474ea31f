"""Run as a process: the Prefect server or the embedded studio, which ends itself once nobody uses it any more.

The users of the server hold a shared lock; this process waits for the exclusive one. The kernel gives locks
back however a process ends, so that not even SIGKILL of the last user leaves a server behind.
"""

from __future__ import annotations

import fcntl
import os
import runpy
import signal
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncSession, AsyncSessionTransaction

#: How long an orderly shutdown may take.
SHUTDOWN_SECONDS = 10.0


def main() -> None:
    """`python -P child_process.py USERS_LOCK MODULE ARGUMENT...`, where the module is `prefect` or `studio`."""
    lock_path, module, *arguments = sys.argv[1:]
    threading.Thread(target=end_without_users, args=(lock_path,), daemon=True).start()
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    if module == "prefect":
        serve_prefect()
    else:
        run_module(module, arguments)


def end_without_users(lock_path: str) -> None:
    """Block until the last user is gone, then end this process, holding newcomers off until it has ended."""
    descriptor = os.open(lock_path, os.O_RDWR)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(SHUTDOWN_SECONDS)
    os._exit(1)


def serve_prefect() -> None:
    from prefect_host.guarded_server import serve

    take_the_write_lock_first()
    serve()


def run_module(module: str, arguments: Sequence[str]) -> None:
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def take_the_write_lock_first() -> None:
    """Let Prefect's SQLite transactions wait for their turn as they begin, instead of failing in their middle.

    Prefect begins most of them as readers. One that reads and then writes is refused at once when another has
    written in between; the client answers by pausing 2, 4, 8 seconds, and nested flow runs that start
    together do just that to one another (four took 16 s to start, and 3 s with this).
    """
    from prefect.server.database.configurations import AioSqliteConfiguration

    begin = AioSqliteConfiguration.begin_transaction

    def begin_as_writer(
        self: AioSqliteConfiguration, session: AsyncSession, with_for_update: bool = False
    ) -> AbstractAsyncContextManager[AsyncSessionTransaction]:
        return begin(self, session, with_for_update=True)

    setattr(AioSqliteConfiguration, begin.__name__, begin_as_writer)


if __name__ == "__main__":
    main()
