"""The process of the Prefect server or the embedded studio, which ends itself when it has no users left.

Its users have a shared lock; this process waits for the exclusive one. The kernel releases locks however a process
ends, so that not even SIGKILL of the last user leaves a server behind.
"""

from __future__ import annotations

import fcntl
import os
import runpy
import signal
import sys
import threading
import time
from pathlib import Path

#: How long an orderly shutdown may take.
SHUTDOWN_SECONDS = 10.0


def main() -> None:
    """`python -P child_process.py USERS_LOCK MODULE ARGUMENT...`, where the module is `prefect` or `studio`."""
    lock_path, module, *arguments = sys.argv[1:]
    threading.Thread(target=end_without_users, args=(lock_path,), daemon=True).start()
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    from patternmill.processes import collect_rarely

    collect_rarely()  # a fifth of the time that Prefect takes to load
    if module == "prefect":
        serve_prefect()
    else:
        sys.argv = [module, *arguments]
        runpy.run_module(module, run_name="__main__", alter_sys=True)


def end_without_users(lock_path: str) -> None:
    """Block until there are no users, then end this process; the exclusive lock keeps new users waiting meanwhile."""
    descriptor = os.open(lock_path, os.O_RDWR)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(SHUTDOWN_SECONDS)
    os._exit(1)


def serve_prefect() -> None:
    from prefect_host.guarded_server import serve
    from prefect_host.internals import begin_as_writers

    begin_as_writers()
    serve()


if __name__ == "__main__":
    main()
