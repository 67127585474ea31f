"""A warm process that plain imports are forked from, so that hundreds of real processes can be started and killed.

It reads orders as JSON lines. Each import gets a minder, which waits for its end and writes down how it ended.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import signal
import sys
import traceback
from pathlib import Path
from typing import Any, NoReturn

# What a run loads as it goes along, or when something goes wrong, is loaded here once.
import psycopg  # noqa: F401
import rich._emoji_codes  # noqa: F401

import patternmill.ledger.postgres
import patternmill.ledger.sqlite  # noqa: F401
from patternmill.service import client
from tests.acceptance import plain_import

_PR_SET_PDEATHSIG = 1


def main() -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # minders need no burial
    _prepare()
    gc.freeze()
    print("ready", flush=True)
    for line in sys.stdin:
        if os.fork() == 0:
            mind(json.loads(line))


def _prepare() -> None:
    """Make once what each run would make anew and alike: half of the CPU time of a run of three rows."""
    client._usual_tls(*map(os.environ.get, ("SSL_CERT_FILE", "SSL_CERT_DIR")))


def mind(order: dict[str, Any]) -> NoReturn:
    """Start one import and wait for it; its pid and its end are files."""
    _die_with_parent()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    pid = os.fork()
    if pid == 0:
        _import(order)
    _write(Path(order["pid_file"]), str(pid))
    _, status = os.waitpid(pid, 0)
    _write(Path(order["end_file"]), str(os.waitstatus_to_exitcode(status)))
    os._exit(0)


def _import(order: dict[str, Any]) -> NoReturn:
    _die_with_parent()
    os.chdir(order["cwd"])
    for number, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(order[name], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), number)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for name in [name for name in os.environ if name.startswith(("PATTERNMILL_", "PREFECT_"))]:
        del os.environ[name]
    os.environ.update(order["env"])
    code = 70
    try:
        code = plain_import.main(order["arguments"])
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _write(path: Path, text: str) -> None:
    half = path.with_suffix(".half")
    half.write_text(text)
    half.replace(path)


if __name__ == "__main__":
    main()
