"""The studio as a process: its command line, its address, its keys, and its end."""

from __future__ import annotations

import argparse
import asyncio
import fcntl
import json
import os
import secrets
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from types import FrameType

import uvicorn
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.types import ASGIApp

from studio.app import build_app
from studio.instruments.control import Control, write_control_file
from studio.instruments.fault_plan import FaultPlan, load_plan
from studio.instruments.instruments import ClockChoice, Instruments, read_clock
from studio.instruments.intervention import Intervention
from studio.openapi import VERSION
from studio.pace import Pace
from studio.pictures import Pictures
from studio.service import Service
from studio.store import DATABASE, Store
from studio.store.database import OtherSchema

LOOPBACK = "127.0.0.1"
PARENT_CHECK_SECONDS = 0.5


class StartRefused(Exception):
    """The studio cannot start; the message says why and what to do."""


class Options(argparse.Namespace):
    """The options of the studio's process."""

    port: int
    fd: int | None
    home: Path
    key_file: Path | None
    pace: Pace
    environment: str
    ready_file: Path | None
    parent: int | None
    control: bool
    clock: str
    faults: Path | None


def main(argv: Sequence[str] | None = None) -> int:
    """Serve until stopped; return 0 when stopped as asked, 2 when it could not start."""
    options = read_options(argv)
    try:
        unfired = asyncio.run(serve(options))
    except (StartRefused, OtherSchema) as refused:
        print(f"studio: {refused}", file=sys.stderr)
        return 2
    for name in unfired:
        print(f"studio: the fault {name!r} did not fire as often as expected.", file=sys.stderr)
    return 0


def read_options(argv: Sequence[str] | None) -> Options:
    parser = argparse.ArgumentParser(prog="python -m studio", description="Serve the embedded studio.")
    add = parser.add_argument
    add("--port", type=int, default=0, help="0 (default) takes a free one")
    add("--fd", type=int, help="a socket that was bound already, in place of a port")
    add("--home", type=Path, default=Path(".studio"), help="where jobs and pictures are kept")
    add("--key-file", type=Path, help="API keys, one a line; else one is made in the home")
    add("--pace", type=Pace, choices=list(Pace), default=Pace.QUICK, help="how long jobs take")
    add("--environment", default="staging", help="category IDs differ by it")
    add("--ready-file", type=Path, help="written once listening; else one line on standard output")
    add("--parent", type=int, metavar="PID", help="stop when this parent process is gone")
    add = parser.add_argument_group("for testing others").add_argument
    add("--control", action="store_true", help="POST /control/... may change it while it runs")
    clocks = "manual: time stands still until it is moved; an instant: so, beginning there"
    add("--clock", default="real", metavar="real|manual|INSTANT", help=clocks)
    add("--faults", type=Path, metavar="FILE", help="a fault plan, JSON or TOML")
    return parser.parse_args(argv, Options())


def read_keys(options: Options) -> frozenset[str]:
    """Return the bearer keys of the key file, or one made for this home. Raises StartRefused."""
    path = options.key_file or _own_key_file(options.home)
    try:
        lines = path.read_text("utf-8").splitlines()
    except OSError as error:
        raise StartRefused(f"the key file cannot be read: {error.strerror}.") from error
    keys = frozenset(line.strip() for line in lines if line.strip() and not line.startswith("#"))
    if not keys:
        raise StartRefused("there is no API key; put one into the key file.")
    return keys


def _own_key_file(home: Path) -> Path:
    path = home / "api-key"
    if not path.exists():
        path.touch(mode=0o600)
        path.write_text(f"studio_{secrets.token_urlsafe(24)}\n", "utf-8")
    return path


def _read_plan(options: Options) -> tuple[ClockChoice, FaultPlan]:
    """Return the clock, and what goes wrong. Raises StartRefused."""
    try:
        plan = FaultPlan() if options.faults is None else load_plan(options.faults)
        return read_clock(options.clock), plan
    except ValueError as error:
        raise StartRefused(str(error)) from error


@contextmanager
def _sole_user(home: Path) -> Iterator[None]:
    """Hold the home, so that two studios never answer from one file."""
    home.mkdir(parents=True, exist_ok=True)
    with (home / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise StartRefused(f"another studio runs in {home}; stop it or name another --home.") from error
        yield


async def serve(options: Options) -> list[str]:
    """Serve until stopped, and say where once it listens; return the faults that did not fire as expected.

    Raises StartRefused and OtherSchema.
    """
    home = options.home
    clock, plan = _read_plan(options)
    with _sole_user(home):
        keys = read_keys(options)
        with closing(_listen(options)) as listener, closing(Store(home / DATABASE)) as store:
            address = f"http://{LOOPBACK}:{listener.getsockname()[1]}"
            instruments = Instruments(store, clock, plan)
            service = Service(
                store,
                home=home,
                environment=options.environment,
                pace=options.pace,
                clock=instruments.clock,
                fate_of=instruments.faults.fate_of,
            )
            control = None
            if options.control:
                control = Control(service, instruments, home, write_control_file(home, address))
            pictures, intervention = Pictures(home), Intervention(instruments.faults)
            draws_ahead = control is None and options.pace is not Pace.INSTANT
            app = build_app(service, pictures, keys, intervention, control, draws_ahead=draws_ahead)
            server = intervention.server = _Server(app, lambda: announce(options, address))
            await _run(server, options, listener)
            return instruments.faults.unfired()


async def _run(server: uvicorn.Server, options: Options, listener: socket.socket) -> None:
    watch = asyncio.create_task(_stop_with_parent(server, options.parent))
    try:
        await server.serve(sockets=[listener])
    finally:
        watch.cancel()
        if options.ready_file is not None:
            options.ready_file.unlink(missing_ok=True)


def _listen(options: Options) -> socket.socket:
    if options.fd is not None:
        return socket.socket(fileno=options.fd)
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((LOOPBACK, options.port))
    except OSError as error:
        listener.close()
        raise StartRefused(f"cannot listen on {LOOPBACK}:{options.port}: {error.strerror}.") from error
    return listener


class _Server(uvicorn.Server):
    """uvicorn that says when it listens, and for which a signal to stop is not an error."""

    def __init__(self, app: ASGIApp, ready: Callable[[], None]) -> None:
        # So that a page under a foreign name that was pointed here (DNS rebinding) sees nothing.
        own_name_only = TrustedHostMiddleware(app, [LOOPBACK, "localhost"])
        super().__init__(
            uvicorn.Config(
                own_name_only,
                log_level="warning",
                access_log=False,
                timeout_graceful_shutdown=3,
                server_header=False,
            )
        )
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop serving; the server's own handler would keep the signal, and raise it after the end."""
        self.force_exit = self.should_exit and sig == signal.SIGINT
        self.should_exit = True


def announce(options: Options, address: str) -> None:
    """Say where the studio listens: in a file that appears whole, or in one line."""
    announcement = {
        "base_url": f"{address}{VERSION}",
        "environment": options.environment,
        "home": str(options.home),
        "pace": str(options.pace),
        "pid": os.getpid(),
    }
    line = json.dumps(announcement)
    if options.ready_file is None:
        print(line, flush=True)
        return
    whole = options.ready_file.with_name(f"{options.ready_file.name}.{os.getpid()}")
    whole.write_text(f"{line}\n", "utf-8")
    whole.replace(options.ready_file)


async def _stop_with_parent(server: uvicorn.Server, parent: int | None) -> None:
    """Stop once the parent is gone: a killed parent cannot stop its studio, which then has another parent."""
    with suppress(asyncio.CancelledError):
        while parent is not None:
            if os.getppid() != parent:
                server.should_exit = True
                return
            await asyncio.sleep(PARENT_CHECK_SECONDS)
