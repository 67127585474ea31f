"""A warm process from which imports, commands and Prefect's servers are forked: starting one is mostly loading modules.

It only loads modules; each fork is a process like any other, with its own session, directory, environment and files.
One serves all testers of a run, on a socket of the file system, and ends with the process that has started them.
"""

from __future__ import annotations

import atexit
import ctypes
import fcntl
import gc
import importlib
import json
import os
import runpy
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import cli.main
from patternmill.service.network import tls_context
from prefect_host import shared_process

CHECKOUT = Path(__file__).resolve().parents[2]
_PR_SET_PDEATHSIG = 1
PLAIN = "tests.acceptance.plain_import"
_LONGEST_ORDER = 200_000
#: The modules that a server, a studio, a command and a flow load as they go along.
LOADED = (
    "prefect.server.api.server",
    "sqlalchemy.dialects.sqlite.aiosqlite",
    "anyio._backends._asyncio",
    "uvicorn.lifespan.on",
    "uvicorn.protocols.http.h11_impl",
    "uvicorn.protocols.websockets.websockets_sansio_impl",
    "prefect.cli.deploy",
    "prefect.deployments",
    "prefect.engine",
    "prefect_host.own_server",
    "prefect_host.internals",
    "prefect_host.connection",
    "cli.launcher",
    "cli.commands.making",
    "numpy.random",
    "psycopg",
    "rich._emoji_codes",
    "patternmill.ledger.postgres",
    "patternmill.ledger.sqlite",
    "patternmill.runs.results_files",
    "patternmill.tables.catalog",
    "patternmill.tables.checks",
    "patternmill.tables.proposals",
    "patternmill.tables.report",
    "studio.server",
    PLAIN,
)


class Forked(subprocess.Popen[Any]):
    """A process that is forked from the warm one, and is otherwise used as any other."""

    def __init__(self, address: str, arguments: Sequence[str], **how: Any) -> None:
        self._address = address
        super().__init__(arguments, **how)

    def _execute_child(
        self, args: Sequence[str], _1: Any, _2: Any, _3: Any, pass_fds: Sequence[int], cwd: Any, env: Any,
        _4: Any, _5: Any, _6: Any, stdin: int, from_us: int, to_us: int, stdout: int, errors: int, stderr: int,
        *_: Any,
    ) -> None:  # fmt: skip
        order = {
            "arguments": [str(argument) for argument in args],
            "cwd": str(cwd or Path.cwd()),
            "env": dict(os.environ if env is None else env),
        }
        streams = [
            number if number != -1 else inherited for inherited, number in enumerate((stdin, stdout, stderr))
        ]
        self._line = _connected(self._address)
        weakref.finalize(self, self._line.close)
        socket.send_fds(self._line, [json.dumps(order).encode()], [*streams, *pass_fds])
        self.pid = int(self._line.recv(64))
        self._child_created = True
        self._close_pipe_fds(stdin, from_us, to_us, stdout, errors, stderr)  # type: ignore[attr-defined]

    def _internal_poll(self, *_: Any, **__: Any) -> int | None:
        if self.returncode is None and select.select([self._line], [], [], 0)[0]:
            # It is left unread for other waiting threads; nothing comes if the warm process itself was killed.
            self.returncode = int(self._line.recv(64, socket.MSG_PEEK) or -signal.SIGKILL)
        return self.returncode

    def _wait(self, timeout: float | None) -> int:
        if self.returncode is None and not select.select([self._line], [], [], timeout)[0]:
            assert timeout is not None
            raise subprocess.TimeoutExpired(self.args, timeout)
        ended = self._internal_poll()
        assert ended is not None
        return ended


def _connected(address: str) -> socket.socket:
    line = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    line.connect(address)
    return line


class Zygote:
    """A user of the warm process of a folder, which is started by the first user that needs it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._address = ""
        self._joining = threading.Lock()

    def start(self, arguments: Sequence[str], **how: Any) -> Forked:
        """Start a process as `subprocess.Popen` does, for this interpreter and the command, in its own session."""
        with self._joining:
            self._address = self._address or self._joined()
        return Forked(self._address, arguments, **how)

    def _joined(self) -> str:
        with (self._folder / "warm.address").open("a+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            if address := file.read():
                return address
            # It has a short folder of its own, as the path of a socket has about a hundred characters at most.
            address = str(Path(tempfile.mkdtemp(prefix="warm-")) / "socket")
            _begin(address)
            file.write(address)
        return address


def _begin(address: str) -> None:
    #: The parent of all testers, where there are several.
    parent = os.getppid() if "PYTEST_XDIST_WORKER" in os.environ else os.getpid()
    ours = {n: text for n, text in os.environ.items() if not n.startswith(("PATTERNMILL_", "PREFECT_"))}
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(address)
        listener.listen(100)
        module = ["-m", "tests.acceptance.zygote"]
        subprocess.Popen(
            [sys.executable, *module, str(listener.fileno()), address, str(parent)],
            cwd=CHECKOUT,
            env={**ours, "DO_NOT_TRACK": "1", "OPENBLAS_NUM_THREADS": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=[listener.fileno()],
            start_new_session=True,
        ).returncode = 0  # it ends after its users; nobody waits for it


# The warm process


def main() -> None:
    """Serve orders until the testers are gone; what it forks goes on from here to its own end."""
    number, address, parent = sys.argv[1:]
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # minders need no burial
    read_settings = _load()
    gc.collect()
    gc.freeze()
    with socket.socket(fileno=int(number)) as listener:
        order = _serve(listener, Path("/proc", parent))
    if order is None:
        shutil.rmtree(Path(address).parent)
        return
    os.environ.clear()
    os.environ.update(order["env"])
    os.chdir(order["cwd"])
    if not is_plain(order["arguments"]):
        read_settings()
        shared_process.start_process = partial(Forked, address)  # type: ignore[assignment]
    _end(_run(order["arguments"]))


def is_plain(arguments: Sequence[str]) -> bool:
    """Return whether it is an import without Prefect."""
    return list(arguments[1:3]) == ["-m", PLAIN]


def _load() -> Callable[[], None]:
    """Import what servers and commands import; return the function that makes Prefect read its settings again."""
    gc.disable()
    for name in LOADED:
        importlib.import_module(name)
    import prefect.context
    import prefect.logging.configuration

    from prefect_host import client_settings

    def read_settings() -> None:
        prefect.context.refresh_global_settings_context()
        prefect.logging.configuration.setup_logging(incremental=False)

    use = client_settings.use_server

    def use_server(*server: Any) -> None:
        use(*server)
        read_settings()

    client_settings.use_server = use_server
    gc.enable()
    # It is made once here, as each run would make the same: half of the CPU time of a run of three rows.
    tls_context()
    return read_settings


def _serve(listener: socket.socket, parent: Path) -> dict[str, Any] | None:
    """Fork for each order, and return it in the process that is to carry it out; None once the parent is gone."""
    while parent.exists():
        if not select.select([listener], [], [], 1.0)[0]:
            continue
        asker, _ = listener.accept()
        text, descriptors, _, _ = socket.recv_fds(asker, _LONGEST_ORDER, 16)
        if text and os.fork() == 0:
            _mind(asker, descriptors)
            return dict(json.loads(text))
        asker.close()
        for descriptor in descriptors:
            os.close(descriptor)
    return None


def _mind(asker: socket.socket, descriptors: list[int]) -> None:
    """Fork the requested process, in which this returns; tell the asker its pid, then its end."""
    _die_with_parent()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    pid = os.fork()
    if pid == 0:
        _die_with_parent()
        os.setsid()
        asker.close()
        for number, descriptor in enumerate(descriptors[:3]):
            os.dup2(descriptor, number)
            os.close(descriptor)
        return
    for descriptor in descriptors:
        os.close(descriptor)
    with suppress(BrokenPipeError):
        asker.send(str(pid).encode())
        asker.send(str(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])).encode())
    os._exit(0)


def _run(arguments: Sequence[str]) -> object:
    """Do what `python ARGUMENT...` or the console script does; return the exit code."""
    program, *rest = arguments
    own_path = rest[0] != "-P"
    rest = rest if own_path else rest[1:]
    sys.argv = ["-c", *rest[2:]] if rest[0] == "-c" else rest[1:] if rest[0] == "-m" else rest
    first = {"-m": str(Path.cwd()), "-c": ""}.get(rest[0], str(Path(rest[0]).parent))
    sys.path[:1] = [
        *([first] if own_path else []),
        *filter(None, os.environ.get("PYTHONPATH", "").split(":")),
    ]
    try:
        if program != sys.executable:
            sys.argv = list(arguments)
            cli.main.main()
        elif is_plain(arguments):
            return sys.modules[PLAIN].main(rest[2:])
        elif rest[0] == "-m":
            runpy.run_module(rest[1], run_name="__main__", alter_sys=True)
        elif rest[0] == "-c":
            exec(rest[1], {"__name__": "__main__"})
        else:
            runpy.run_path(rest[0], run_name="__main__")
    except SystemExit as ended:
        return ended.code
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def _end(code: object) -> NoReturn:
    """End as an interpreter does, but without tearing down its modules."""
    if isinstance(code, str):
        print(code, file=sys.stderr)
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else int(code is not None))


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


if __name__ == "__main__":
    main()
